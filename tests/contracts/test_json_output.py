"""One spelling of what JSON has no word for, by both command lines: strict JSON that gives the same numbers back."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from lqcd_aot.cli.output import print_json
from lqcd_runtime import __main__ as runtime_cli
from lqcd_runtime.json_output import plain
from lqcd_runtime.self_check import FAILED, Check

VALUES = {
    "nan": math.nan, "up": math.inf, "down": -math.inf, "half": 0.5, "absent": None, "yes": True, "n": 3,
    "complex": complex(1.5, math.nan), "single": np.float32("inf"), "array": np.array([1.0, np.nan]),
    "complexes": np.array([1j]), "tuple": (math.inf, "x"), "path": Path("a/b"), 4: {"deep": [math.nan]},
}  # fmt: skip
SPELT = {
    "nan": "nan", "up": "inf", "down": "-inf", "half": 0.5, "absent": None, "yes": True, "n": 3, "complex": [1.5, "nan"],
    "single": "inf", "array": [1.0, "nan"], "complexes": [[0.0, 1.0]], "tuple": ["inf", "x"], "path": "a/b",
    "4": {"deep": ["nan"]},
}  # fmt: skip


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


@pytest.mark.parametrize("printer", [print_json, runtime_cli._print_json])
def test_both_command_lines_spell_alike(printer, capsys):
    printer(VALUES)
    assert json.loads(capsys.readouterr().out, parse_constant=refuse) == SPELT


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.1, -0.0])
def test_the_strings_read_back_as_the_numbers(value):
    back = float(plain(value))
    assert back == value or (math.isnan(back) and math.isnan(value))
    assert np.array([plain(value)], float).tobytes() == np.array([value]).tobytes()


def test_a_wrong_number_that_is_infinite_is_no_absent_one(capsys):
    print_json([Check("x", FAILED, "holds NaN", math.inf, 1e-6).as_dict(), Check("y", FAILED, "cannot be read").as_dict()])
    assert [c["worst"] for c in json.loads(capsys.readouterr().out)] == ["inf", None]
