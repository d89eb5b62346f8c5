"""Real artifacts for this host: compiled by the pinned compiler, witnessed by the torch judge, packed as one bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from lqcd_aot.compilers import find_toolchain
from lqcd_aot.dirac import judge as dirac_judge
from lqcd_aot.observables import judge as gauge_judge
from lqcd_aot.program import program_for
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import this_host
from lqcd_runtime.witness import Question, Witness, question, summary
from tests.made import bundle_bytes, record

LATTICE = (4, 2, 3, 4)
SPECS = [
    Spec("wilson", LATTICE, "float64", batch=2),
    Spec("wilson_dagger", LATTICE, "float64", batch=2),
    Spec("wilson_normal", LATTICE, "float64", batch=2),
    Spec("wilson", LATTICE, "float64", batch=2, fused=True),
    Spec("wilson_blocks", LATTICE, "float64"),
    Spec("wilson", LATTICE, "float32", batch=3),
    Spec("wilson", LATTICE, "float32", batch=3, shards=2),
    Spec("clover", LATTICE, "float64"),
    Spec("plaquette", LATTICE, "float64"),
    Spec("wilson_action", LATTICE, "float64"),
    Spec("stout_smear", LATTICE, "float64"),
]


def judged(asked: Question) -> list[Any]:
    """The judge's answers to a question."""
    links = torch.from_numpy(asked.links())
    if asked.kind == "dirac":
        options = {**asked.inputs, "phases": asked.phases, "anisotropy": asked.anisotropy}
        return [dirac_judge.apply(asked.operator, torch.from_numpy(psi), links, **options).numpy() for psi in asked.columns()]
    if asked.kind == "observable":
        return [gauge_judge.observe(asked.operator, links, **asked.inputs)]
    return [gauge_judge.gauge_map(asked.operator, links, **asked.inputs).numpy()]


def build(folder: Path, specs: list[Spec] = SPECS, target: str | None = None) -> Path:
    """Compile, judge and pack: folder/real.lqcd."""
    toolchain, at = find_toolchain(), target or this_host().best_target()
    assert at is not None
    records, codes, rows = [], [], {}
    for spec in specs:
        code = toolchain.compile(program_for(spec, at), at, timeout=120, workdir=folder)
        asked = question(spec)
        key = asked.key, asked.batch
        if asked.kind != "builder" and key not in rows:
            rows[key] = summary(asked, judged(asked))
        witness = Witness.make(spec, rows.get(key))
        records.append(record(spec, at, code, witness.as_dict()))
        codes.append(code)
    path = folder / "real.lqcd"
    path.write_bytes(bundle_bytes(records, codes))
    return path
