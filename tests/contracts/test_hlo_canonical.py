"""The bytes of an HLO program: one form whatever the process, the names, the order of the text or the template lattice."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from lqcd_aot.keys import build_key
from lqcd_aot.program import program_for
from lqcd_aot.program.hlo.canonical import serialise
from lqcd_aot.program.hlo.emit import Emitter
from lqcd_aot.program.hlo.graph import Graph
from lqcd_aot.program.hlo.lower import export, exported_module, lower
from lqcd_aot.program.hlo.read import Message, parse
from lqcd_aot.program.hlo.schema import MESSAGES, message_classes
from lqcd_runtime.digest import sha256_hex, tagged_sha256
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import Spec

LATTICE = (4, 4, 2, 6)
SPECS = [
    Spec("wilson_hop", LATTICE, "float32"), Spec("clover", LATTICE, "bfloat16", batch=2),
    Spec("wilson", LATTICE, "bfloat16", batch=2, fused=True, shards=2), Spec("wilson_schur", LATTICE, "float32"),
    Spec("wilson_cg_chunk", LATTICE, "float32", fused=True, iterations=2),
]  # fmt: skip
PRINT = (
    "import sys; from lqcd_aot.program.hlo.lower import lower; from lqcd_runtime.signature import Spec; import hashlib, json\n"
    "for d in json.loads(sys.argv[1]): print(hashlib.sha256(lower(Spec.from_dict(d))).hexdigest())"
)
ROOT = Path(__file__).resolve().parents[2]


def lowered_elsewhere(specs: list[Spec], seed: str, folder: Path, **environment: str) -> list[str]:
    import json

    path = os.pathsep.join([str(ROOT), str(ROOT / "runtime")])
    clean = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": seed, "PYTHONPATH": path, "HOME": str(folder), **environment}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PRINT, json.dumps([s.as_dict() for s in specs])],
        cwd=folder, env=clean, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stdout.split()


def test_other_processes_make_the_same_bytes(tmp_path: Path) -> None:
    """Other hash seed, folder, environment and order of lowering."""
    here = [hashlib.sha256(lower(spec)).hexdigest() for spec in SPECS]
    other = lowered_elsewhere(SPECS[::-1], "12345", tmp_path, XLA_FLAGS="--xla_dump_to=x", XLA_HLO_DEBUG="1", OMP_NUM_THREADS="2")
    assert other[::-1] == here
    assert len(set(here)) == len(here)


MORE = [Spec("wilson_blocks", LATTICE, "float32"), Spec("plaquette", LATTICE, "float32")]


@pytest.mark.parametrize("spec", [*SPECS, *MORE], ids=lambda s: s.name)
def test_the_template_lattice_leaves_no_trace(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exported at the spec's own extents, batch and slabs, the graph gives the same program."""
    from lqcd_aot.program.hlo import lower as module

    shared = lower(spec)
    own = export(spec.replace(iterations=min(spec.iterations, 1)) if spec.iterations else spec)
    monkeypatch.setattr(module, "exported_module", lambda _: own)
    assert lower(spec) == shared


def small(module: Any, *shapes: tuple[int, ...]) -> bytes:
    """The program of a torch module over float32 arguments."""
    graph = Graph()
    exported = torch.export.export(module, tuple(torch.empty(s, device="meta") for s in shapes), strict=False)
    parameters = [graph.parameter(i, "float32", shape) for i, shape in enumerate(shapes)]
    return serialise(parameters, graph.results(Emitter(graph).run(exported, parameters)))


class First(torch.nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        left = a * 2.0
        right = torch.cat([b[1:], b[:1]], dim=0)
        return left + right * left


class Renamed(torch.nn.Module):
    """`First` in other words: other names and order of statements, dead code, a repetition, other lines."""

    def forward(self, psi: Any, links: Any) -> Any:
        moved = torch.cat([links[1:], links[:1]], dim=0)
        unused = psi - links

        assert unused is not None
        scaled = psi * 2.0
        again = psi * 2.0
        return scaled + moved * again


class Turned(torch.nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        left = a * 2.0
        right = torch.cat([b[1:], b[:1]], dim=0)
        return right * left + left


def test_names_order_dead_code_and_repetitions_leave_no_trace() -> None:
    shapes = ((4, 3), (4, 3))
    assert small(First(), *shapes) == small(Renamed(), *shapes)
    assert small(First(), *shapes) != small(Turned(), *shapes), "another program, though equal mathematics"


def test_every_axis_makes_another_program_and_targets_share_it() -> None:
    base = Spec("wilson", LATTICE, "float32")
    chunk = Spec("wilson_cg_chunk", LATTICE, "float32", iterations=2)
    others = [
        base.replace(operator="wilson_dagger"), base.replace(lattice=(4, 4, 6, 2)), base.replace(dtype="bfloat16"),
        base.replace(batch=2), base.replace(fused=True), base.replace(shards=2), base.replace(shards=4), chunk,
        chunk.replace(iterations=3),
    ]  # fmt: skip
    digests = {program_for(spec, "trn1").digest for spec in [base, *others]}
    assert len(digests) == 1 + len(others)
    same = {program_for(base, target).digest for target in ("inf2", "trn1", "trn2", "trn3", "sim")}
    assert len(same) == 1
    keys = {build_key(base, program_for(base, t).digest, {"compiler": "c"}, (), t).hex for t in ("inf2", "trn1", "sim")}
    assert len(keys) == 3, "the target is a component of the key, not of the program"


def test_mass_and_gauge_field_cannot_reach_a_key() -> None:
    """Neither is an attribute of a spec, and the exported module holds no tensor and no number that came from one."""
    spec = Spec("clover", LATTICE, "float32")
    program = program_for(spec, "trn1")
    assert {p["name"] for p in program.binding["parameters"]} == {"psi", "links", "clover", "diagonal", "csw"}
    constants = {i.literal.f32s[0] for i in parse(program.hlo).computations[-1].instructions if i.opcode == "constant"}
    assert constants == {-0.5}
    assert not exported_module(spec).state_dict


def test_the_digest_is_the_documented_one() -> None:
    program = program_for(SPECS[0], "sim")
    value = {"hlo": sha256_hex(program.hlo), "binding": program.binding}
    assert program.digest == tagged_sha256("lqcd-aot/hlo-program/v1", value)
    assert program.identity == f"{SPECS[0].name}@sim"


class Uses(torch.nn.Module):
    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.register_buffer("field", torch.ones(3, device="meta"))

    def forward(self, a: Any) -> Any:
        if self.what == "roll":
            return torch.roll(a, 1, 0) + torch.sin(a)
        return a + self.field if self.what == "buffer" else a.reshape(3, 4)


@pytest.mark.parametrize(
    ("what", "named"),
    [("roll", ("aten.roll.default", "aten.sin.default")), ("reshape", ("aten.reshape.default",)), ("buffer", ("field",))],
)  # fmt: skip
def test_what_has_no_lowering_is_refused_by_name(what: str, named: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as refusal:
        small(Uses(what), (4, 3))
    assert tuple(refusal.value.details) == named


def test_protobuf_and_the_standard_library_read_the_same_module() -> None:
    """Two readers of one table: field by field, and nothing in the bytes that the table lacks."""
    for spec in SPECS[1::2]:
        hlo = lower(spec)
        proto = message_classes()["Module"].FromString(hlo)
        assert proto.SerializeToString(deterministic=True) == hlo
        assert_same(parse(hlo), proto, "Module")


def assert_same(mine: Message | None, theirs: Any, kind: str) -> None:
    assert mine is not None
    assert mine.unknown == 0
    for name, (_, base) in MESSAGES[kind].items():
        own, other = getattr(mine, name), getattr(theirs, name)
        if base.rstrip("*") not in MESSAGES:
            assert (list(own) == list(other)) if base.endswith("*") else (own == other), f"{kind}.{name}"
        elif base.endswith("*"):
            assert len(own) == len(other)
            for a, b in zip(own, other, strict=True):
                assert_same(a, b, base[:-1])
        else:
            assert (own is not None) == theirs.HasField(name)
            if own is not None:
                assert_same(own, other, base)


def test_instructions_stand_in_post_order_behind_the_parameters() -> None:
    (_, entry) = parse(lower(Spec("plaquette", LATTICE, "float32"))).computations
    ids = [i.id for i in entry.instructions]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    assert entry.instructions[0].opcode == "parameter"
    assert entry.instructions[-1].opcode == "tuple"
    used = {operand for i in entry.instructions for operand in i.operand_ids}
    assert used == set(ids[:-1]), "no instruction without a user but the root"
    assert not any(i.name.count("/") or "forward" in i.name for i in entry.instructions)
