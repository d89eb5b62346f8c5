"""Keys frozen per schema version: a store filled by an earlier release must still be found.

A key may only change together with its tag (`lqcd-aot/spec/v1`, `lqcd-aot/build/v1`); then a new file is added beside the old.
The conventions are a component of the build key, so changing them is a new set of keys as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lqcd_aot.keys import BUILD_TAG, build_key
from lqcd_runtime.signature import SPEC_TAG, Spec

GOLDEN = json.loads((Path(__file__).parent / "keys-v1.json").read_text(encoding="utf-8"))


def test_the_golden_file_is_of_this_schema_version() -> None:
    assert (GOLDEN["spec_tag"], GOLDEN["build_tag"]) == (SPEC_TAG, BUILD_TAG)
    assert len({row["spec_key"] for row in GOLDEN["keys"]}) == len({row["build_key"] for row in GOLDEN["keys"]}) == 9


@pytest.mark.parametrize("row", GOLDEN["keys"], ids=lambda row: row["name"])
def test_keys_are_those_of_the_first_release(row: dict[str, Any]) -> None:
    spec = Spec.from_dict(row["spec"])
    assert (spec.name, spec.key) == (row["name"], row["spec_key"])
    fixed = GOLDEN["fixed"]
    key = build_key(spec, fixed["program"], fixed["toolchain"], fixed["flags"], row["target"], row["salt"])
    assert key.hex == row["build_key"]
