"""A double of AWS's nrtpy: the classes, functions and exceptions its documentation names, over numpy.

`module()` makes one as nrtpy would be imported. It computes through a function, (code of the NEFF, {input: array}) ->
{output: array}, and counts what it is asked for.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


class NrtError(Exception):
    """Carries the status of libnrt."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class NrtpyError(RuntimeError):
    """Wrong use of nrtpy itself."""


def module(
    compute: Callable[[bytes, dict[str, np.ndarray]], dict[str, np.ndarray]], infos: tuple[dict[str, int], dict[str, int]]
) -> Any:
    """infos: ({input tensor: bytes}, {output tensor: bytes}) of every NEFF."""
    made: Any = types.ModuleType("nrtpy")
    made.NrtError, made.NrtpyError = NrtError, NrtpyError
    made.counts = {"load": 0, "upload": 0, "write": 0, "run": 0, "reset": 0}
    made.fail = None  # (what, exception): raised once

    def count(what: str) -> None:
        made.counts[what] += 1
        if made.fail is not None and made.fail[0] == what:
            error, made.fail = made.fail[1], None
            raise error

    class NrtpyTensor:
        """A device tensor; `numpy()` of an output comes back without a type, as the documentation warns."""

        def __init__(self, array: np.ndarray, core: int) -> None:
            self.bytes = np.array(array).reshape(-1).view(np.uint8)
            self.itemsize, self.core = array.dtype.itemsize, core

        @classmethod
        def from_numpy(cls, array: np.ndarray, name: str | None = None, core_id: int = 0) -> NrtpyTensor:
            count("upload")
            return cls(array, core_id)

        def write_from_numpy(self, array: np.ndarray) -> None:
            count("write")
            self.bytes[:] = array.reshape(-1).view(np.uint8)

        def numpy(self) -> np.ndarray:
            return self.bytes.view(f"V{self.itemsize}")

    class NrtpyModel:
        """A loaded NEFF."""

        def __init__(self, code: bytes, core: int) -> None:
            self.code, self.core = code, core
            describe = types.SimpleNamespace
            self.input_tensors_info = {name: describe(size=size) for name, size in infos[0].items()}
            self.output_tensors_info = {name: describe(size=size) for name, size in infos[1].items()}

        @classmethod
        def load_from_neff(
            cls, neff_path: str, name: str | None = None, core_id: int = 0, cc_enabled: bool = False, rank_id: int = 0,
            world_size: int = 1,
        ) -> NrtpyModel:  # fmt: skip
            count("load")
            return cls(Path(neff_path).read_bytes(), core_id)

        def __call__(
            self, inputs: dict[str, NrtpyTensor], outputs: dict[str, NrtpyTensor] | None = None, save_trace: bool = False,
            ntff_name: str | None = None,
        ) -> dict[str, NrtpyTensor]:  # fmt: skip
            count("run")
            assert outputs is not None
            assert {t.core for t in [*inputs.values(), *outputs.values()]} == {self.core}
            assert set(inputs) == set(self.input_tensors_info)
            for name, array in compute(self.code, {n: t.bytes for n, t in inputs.items()}).items():
                outputs[name].bytes[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            return outputs

    made.NrtpyTensor, made.NrtpyModel = NrtpyTensor, NrtpyModel
    made.reset = lambda: count("reset")
    return made
