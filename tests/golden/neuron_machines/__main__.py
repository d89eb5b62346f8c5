"""Writes the expected descriptors of every instance type again."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from lqcd_runtime.hardware import devices
from lqcd_runtime.hardware.descriptor import NeuronCore
from lqcd_runtime.settings import NeuronSettings
from tests.golden.neuron_machines.trees import INSTANCES, plant

HERE = Path(__file__).parent


def text_of(cores: list[NeuronCore]) -> str:
    """One line of JSON per descriptor."""
    return "".join(json.dumps(core.as_dict(), separators=(",", ":")) + "\n" for core in cores)


def main() -> None:
    for instance in INSTANCES:
        with tempfile.TemporaryDirectory() as folder:
            found = devices(roots=plant(Path(folder), instance), settings=NeuronSettings(), ask_libnrt=lambda: None)
        (HERE / f"{instance}.jsonl").write_text(text_of(found), encoding="ascii")


if __name__ == "__main__":
    main()
