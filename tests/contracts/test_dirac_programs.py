"""What a spec becomes: refusals with a reason, digests of what is compiled, libraries that any machine of the level loads."""

from __future__ import annotations

import io
import re
from pathlib import Path

import capstone
import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from lqcd_aot.program import Program, program_for
from lqcd_runtime.digest import sha256_hex, tagged_sha256
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import OPERATORS, Spec
from lqcd_runtime.target import CPU_TARGETS
from tests.contracts.dirac_artifact import Factory

LATTICE = (8, 4, 4, 4)
COMMON = {"lqcd_abi", "lqcd_identity", "lqcd_bytes", "lqcd_pool_new", "lqcd_pool_free", "lqcd_gauge_layout"}
SPINOR = {"lqcd_pack_spinor", "lqcd_unpack_spinor", "lqcd_apply"}

REFUSED = [
    (Spec("wilson", LATTICE), "trn2", "no double precision"),
    (Spec("wilson", LATTICE, nc=2), "x86-64-v3", "three colours"),
    (Spec("wilson", LATTICE, "float32", storage="float64"), "x86-64-v3", "do not store float32 as float64"),
    (Spec("wilson", LATTICE, "float32", storage="float64_12"), "x86-64-v3", "do not store float32 as float64_12"),
    (Spec("wilson", LATTICE, storage="float32_12"), "x86-64-v3", "do not store float64 as float32_12"),
    (Spec("wilson", LATTICE, storage="float64_12", fused=True), "x86-64-v3", "fused blocks are stored as"),
    (Spec("plaquette", LATTICE, storage="float64_12"), "x86-64-v3", "kind observable"),
    (Spec("wilson", LATTICE, "bfloat16"), "x86-64-v3", "do not compute in bfloat16"),
    (Spec("wilson_cg_chunk", LATTICE, iterations=8), "x86-64-v3", "needs no chunks"),
    (Spec("wilson", (99999, 99999, 4, 4)), "x86-64-v3", "too large"),
    (Spec("wilson", LATTICE, shards=3), "x86-64-v3", "divide T"),
    (Spec("wilson", LATTICE, shards=0), "x86-64-v3", "divide T"),
    (Spec("wilson", LATTICE, batch=0), "x86-64-v3", "batch"),
    (Spec("clover", LATTICE, fused=True), "x86-64-v3", "fused"),
    (Spec("twisted", LATTICE, fused=True), "x86-64-v3", "fused"),
    (Spec("wilson_schur", LATTICE, fused=True), "x86-64-v3", "fused"),
    (Spec("wilson_schur", LATTICE, shards=2), "x86-64-v3", "slabs"),
    (Spec("clover_schur", (8, 4, 5, 4)), "x86-64-v3", "even extents"),
    (Spec("wilson_blocks", LATTICE, batch=4), "x86-64-v3", "batch"),
    (Spec("plaquette", LATTICE, batch=4), "x86-64-v3", "batch"),
    (Spec("plaquette", LATTICE, shards=2), "x86-64-v3", "shards"),
    (Spec("stout_smear", LATTICE, fused=True), "x86-64-v3", "fused"),
    (Spec("wilson", LATTICE, baked={"csw": 1.0}), "x86-64-v3", "csw cannot be baked"),
    (Spec("wilson_hop", LATTICE, baked={"mass": 1.0}), "x86-64-v3", "mass cannot be baked"),
]


@pytest.mark.parametrize(("spec", "target", "reason"), REFUSED, ids=lambda v: v.name if isinstance(v, Spec) else str(v))
def test_what_cannot_be_expressed_is_refused_with_the_reason(spec: Spec, target: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        program_for(spec, target)
    assert reason in str(error.value)
    assert spec.name in error.value.fact
    assert error.value.expected is not None
    assert error.value.found is not None


def test_the_digest_is_the_documented_one() -> None:
    program = program_for(Spec("wilson", LATTICE), "x86-64-v3")
    files = {name: sha256_hex(text.encode()) for name, text in program.files}
    value = {"files": files, "defines": dict(program.defines), "entry": program.entry}
    assert program.digest == tagged_sha256("lqcd-aot/program/v1", value)


def test_every_axis_changes_the_digest() -> None:
    base = Spec("wilson", LATTICE)
    others = [
        base.replace(operator="wilson_dagger"), base.replace(lattice=(4, 8, 4, 4)), base.replace(dtype="float32"),
        base.replace(batch=4), base.replace(fused=True), base.replace(shards=2), base.replace(baked={"mass": 0.1}),
        base.replace(baked={"mass": 0.2}),
    ]  # fmt: skip
    programs = [program_for(s, "x86-64-v3") for s in (base, *others)] + [program_for(base, "x86-64-v4")]
    assert len({p.digest for p in programs}) == len(programs)


def test_a_program_holds_the_files_it_includes_and_no_others() -> None:
    """A change to an observable's or the clover term's header must not rebuild Wilson operators."""
    wilson = dict(program_for(Spec("wilson", LATTICE), "x86-64-v3").files)
    clover = dict(program_for(Spec("clover", LATTICE), "x86-64-v3").files)
    loops = dict(program_for(Spec("plaquette", LATTICE), "x86-64-v3").files)
    assert not [name for name in wilson if name.startswith(("gauge_", "clover", "blocks", "schur"))]
    assert "clover_pack.hpp" in clover
    assert "hop.hpp" not in loops
    edited = Program(tuple((n, t + "//\n" if n == "hop.hpp" else t) for n, t in sorted(wilson.items())), (), "dirac_wilson.cpp")
    assert edited.digest != Program(tuple(sorted(wilson.items())), (), "dirac_wilson.cpp").digest


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Factory:
    made = Factory(tmp_path_factory.mktemp("programs"))
    made.prepare([(spec, target) for target in CPU_TARGETS for spec in LIBRARIES])
    return made


LIBRARIES = {
    Spec("wilson", LATTICE): COMMON | SPINOR | {"lqcd_pack_gauge"},
    Spec("clover_schur", LATTICE, "float32"): COMMON | SPINOR | {"lqcd_pack_gauge", "lqcd_pack_clover"},
    Spec("wilson", LATTICE, "float32", fused=True): COMMON | SPINOR,
    Spec("wilson_blocks", LATTICE, "float32"): COMMON | {"lqcd_pack_gauge"},
}


@pytest.mark.parametrize("target", CPU_TARGETS)
@pytest.mark.parametrize("spec", LIBRARIES, ids=lambda s: s.name)
def test_a_library_needs_libc_alone_and_exports_its_kind(factory: Factory, spec: Spec, target: str) -> None:
    elf = ELFFile(io.BytesIO(factory.path(spec, target).read_bytes()))
    dynamic = elf.get_section_by_name(".dynamic")
    assert isinstance(dynamic, DynamicSection)
    assert {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")} == {"libc.so.6"}
    assert not list(dynamic.iter_tags("DT_INIT_ARRAY")), "a static constructor would run at load"
    symbols = list(elf.get_section_by_name(".dynsym").iter_symbols())
    exported = {s.name for s in symbols if s["st_shndx"] != "SHN_UNDEF"}
    threads = {s.name: s["st_info"]["bind"] for s in symbols if s.name.startswith("pthread_")}
    assert exported == LIBRARIES[spec]
    assert threads == {"pthread_create": "STB_WEAK", "pthread_join": "STB_WEAK"}
    assert elf["e_machine"] == ("EM_AARCH64" if target == "aarch64" else "EM_X86_64")


NEVER = r"(?!)"
AVX512 = r"zmm|\bk[0-7]\b|[xy]mm(1[6-9]|2\d|3[01])\b"
FORBIDDEN = {"x86-64-v2": AVX512 + "|ymm", "x86-64-v3": AVX512, "x86-64-v4": NEVER}


@pytest.mark.parametrize("target", FORBIDDEN)
@pytest.mark.parametrize("spec", LIBRARIES, ids=lambda s: s.name)
def test_no_instruction_above_the_declared_level(factory: Factory, spec: Spec, target: str) -> None:
    """Registers tell the level: ymm is AVX, zmm and mask registers are AVX-512; v2 has no VEX form at all."""
    text = ELFFile(io.BytesIO(factory.path(spec, target).read_bytes())).get_section_by_name(".text")
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.skipdata = True
    lines = [f"{name} {operands}" for _, _, name, operands in decoder.disasm_lite(text.data(), 0)]
    above = [line for line in lines if re.search(FORBIDDEN[target], line)]
    assert not above, above[:3]
    if target == "x86-64-v2":
        assert not [line for line in lines if line.startswith("v")], "a VEX-encoded instruction"
    widest = {"x86-64-v2": "xmm", "x86-64-v3": "ymm", "x86-64-v4": "zmm"}[target]
    assert any(widest in line for line in lines), "the level is not used"


def test_the_table_of_operators_is_covered() -> None:
    """Every operator but the solver chunks has a program on every CPU target, and its sources are in the package."""
    for operator in (name for name, entry in OPERATORS.items() if entry["kind"] != "chunk"):
        for target in CPU_TARGETS:
            program = program_for(Spec(operator, LATTICE), target)
            assert program.identity == f"{Spec(operator, LATTICE).name}@{target}"
            assert all(Path(name).name == name and text for name, text in program.files)
