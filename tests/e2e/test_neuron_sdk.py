"""lqcd-neuron's face: its documented calls on the CPU engine and the simulator, against the torch modules in complex128."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from lqcd_aot import observables
from lqcd_aot.build.event_log import parse_log
from lqcd_aot.core import ColorSpinorField, GaugeField
from lqcd_aot.dirac import (
    CloverSchur,
    CloverWilsonDirac,
    EvenOddWilsonDslash,
    TwistedMassDirac,
    WilsonDirac,
    WilsonDslash,
    WilsonSchur,
)
from lqcd_aot.neuron import NeuronCompiler, pack_checkerboard, unpack_checkerboard
from lqcd_aot.neuron.modules import meaning
from lqcd_aot.params import NeuronCompileParam
from lqcd_runtime.errors import UsageError
from lqcd_runtime.fields import random_links, random_spinor
from lqcd_runtime.signature import Spec
from lqcd_runtime.solvers import solve
from lqcd_runtime.witness_bound import bound_and_scale

LATTICE, SMALL = (8, 4, 4, 4), (4, 2, 2, 4)
# As lqcd-neuron documents them; only the name of the package differs.
DOCUMENTED = """
from lqcd_neuron.dirac import WilsonDirac
from lqcd_neuron.neuron import NeuronCompiler
D         = WilsonDirac(mass=0.1)
compiler  = NeuronCompiler(dtype="bfloat16")
D_neuron  = compiler.compile_dslash(
    D, lattice_shape=(8, 4, 4, 4), nc=3, gauge_field=U,
)
out = D_neuron(psi, U)
D_batched = compiler.compile_dslash_batched(
    D, lattice_shape=(8, 4, 4, 4), batch_size=8, gauge_field=U, nc=3,
)
out_batch = D_batched(psi_batch)   # psi_batch shape: (8, T, Z, Y, X, Ns, Nc)
D_mc = compiler.compile_dslash_multicore(
    D, lattice_shape=(8, 4, 4, 4), gauge_field=U,
    num_cores=None,            # default: all detected NeuronCores
    per_core_batch_size=8, nc=3,
)
out_mc = D_mc(psi_global)      # psi_global shape: (num_cores * 8, T, Z, Y, X, Ns, Nc)
""".replace("lqcd_neuron", "lqcd_aot")


def links(lattice: tuple[int, ...] = LATTICE, seed: int = 3) -> torch.Tensor:
    return torch.from_numpy(random_links(lattice, seed)).to(torch.complex64)


def spinors(count: int, lattice: tuple[int, ...] = LATTICE) -> torch.Tensor:
    return torch.stack([torch.from_numpy(random_spinor(lattice, 5, c)) for c in range(count)]).to(torch.complex64)


def judged(module: Any, psi: torch.Tensor, U: torch.Tensor, form: str = "forward") -> torch.Tensor:
    """The module itself on the same fields, widened to complex128."""
    result: torch.Tensor = getattr(module, form)(psi.to(torch.complex128), U.to(torch.complex128))
    return result


def close(module: Any, found: torch.Tensor, expected: torch.Tensor, dtype: str = "float32", form: str = "forward") -> bool:
    """Within the bound that is derived for this operator, its inputs and the dtype (lqcd_runtime.witness_bound)."""
    what = meaning(module, form)
    bound, scale = bound_and_scale("dirac", what.operator, LATTICE, what.inputs.scalars, dtype)
    return bool((found.to(torch.complex128) - expected).abs().max() <= bound * scale)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sdk") / "store"


@pytest.fixture(scope="module")
def compiler(store: Path) -> NeuronCompiler:
    """float32 on the CPU, with the artifacts of this file built at once."""
    made = NeuronCompiler(engine="cpu", store=store)
    words = ("wilson_hop", "wilson", "clover", "twisted", "wilson_schur", "clover_schur", "wilson_normal")
    made.artifacts.provide([Spec(w, LATTICE, "float32") for w in words] + [Spec("wilson", LATTICE, "float32", batch=8)])
    return made


@pytest.fixture
def user_store(store: Path, compiler: NeuronCompiler, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store of `compiler` as the user's own, on a machine without NeuronCores."""
    monkeypatch.setenv("LQCD_AOT_STORE", str(store))
    return store


def events(store: Path) -> list[str]:
    """One name per build that had something to do."""
    logs = {p.name: parse_log(p.read_bytes()) for p in (store / "events").glob("*.jsonl")}
    return sorted(name for name, build in logs.items() if build.outcomes.keys() != {"reused"})


def test_documented_calls_run_on_the_cpu_engine(user_store: Path, caplog: pytest.LogCaptureFixture) -> None:
    U, psi, psi_batch, psi_global = GaugeField(links()), spinors(1)[0], spinors(8), spinors(16)
    names: dict[str, Any] = {"U": U, "psi": psi, "psi_batch": psi_batch, "psi_global": psi_global}
    before = events(user_store)
    with caplog.at_level(logging.WARNING, "lqcd_aot.neuron"):
        exec(DOCUMENTED, names)
    assert [r.message for r in caplog.records if "engine cpu" in r.message and "bfloat16 has no CPU artifact" in r.message]
    assert events(user_store) == before, "the artifacts are those of float32, which are in the store"
    D, U = names["D"], U.tensor
    for compiled, out, given in (("D_neuron", "out", psi), ("D_batched", "out_batch", psi_batch), ("D_mc", "out_mc", psi_global)):
        assert names[compiled].engine == "cpu" and "computing in float32" in names[compiled].note
        assert names[out].shape == given.shape and close(D, names[out], judged(D, given, U))
    assert names["D_mc"].num_cores == len(os.sched_getaffinity(0))
    assert torch.equal(names["out_batch"], names["out_mc"][:8])


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> NeuronCompiler:
    pytest.importorskip("jaxlib")
    made = NeuronCompiler(dtype="bfloat16", engine="sim", store=tmp_path_factory.mktemp("sim") / "store")
    blocks = [Spec("wilson_blocks", SMALL, "bfloat16")]
    made.artifacts.provide(blocks + [Spec("wilson", SMALL, "bfloat16", batch=b, fused=True) for b in (1, 8)])
    return made


def test_documented_calls_run_on_the_simulator_and_agree(simulator: NeuronCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    U, psi_global = links(SMALL), spinors(32, SMALL)
    names: dict[str, Any] = {"U": U, "psi": psi_global[0], "psi_batch": psi_global[:8], "psi_global": psi_global}
    folder = simulator.artifacts.folder
    monkeypatch.setattr("lqcd_aot.neuron.NeuronCompiler", partial(NeuronCompiler, engine="sim", store=folder))
    before = events(folder)
    exec(DOCUMENTED.replace("(8, 4, 4, 4)", str(SMALL)), names)
    assert events(folder) == before
    assert names["D_neuron"].engine == "sim" and "no use for physics" in names["D_neuron"].note
    assert names["D_neuron"].spec.fused and "fused = true: fits" in names["D_neuron"].note
    expected = judged(names["D"], psi_global, U)
    assert close(names["D"], names["out_mc"], expected, "bfloat16")
    assert torch.equal(names["out_batch"], names["out_mc"][:8]) and close(names["D"], names["out"], expected[0], "bfloat16")
    # float32 is 256 times finer: what agrees here cannot have been computed in it.
    assert not close(names["D"], names["out_mc"], expected, "float32")


def test_a_second_process_compiles_nothing(user_store: Path) -> None:
    before = events(user_store)
    code = (
        "import logging, torch; logging.basicConfig(level=logging.INFO, format='%(message)s')\n"
        "from lqcd_aot.dirac import WilsonDirac\nfrom lqcd_aot.neuron import NeuronCompiler\n"
        "D = NeuronCompiler(engine='cpu').compile_dslash(WilsonDirac(mass=0.7), (8, 4, 4, 4))\n"
        "print(D.entry.build_key)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    mine = NeuronCompiler(engine="cpu", store=user_store).compile_dslash(WilsonDirac(mass=0.1), LATTICE)
    assert done.stdout.strip() == mine.entry.build_key
    assert events(user_store) == before and "building" not in done.stderr and "engine cpu" in done.stderr


def test_masses_share_an_artifact_and_give_their_own_numbers(compiler: NeuronCompiler) -> None:
    U, psi = links(), spinors(1)[0]
    light, heavy = WilsonDirac(mass=0.1), WilsonDirac(mass=0.7, t_boundary=-1)
    first, second = (compiler.compile_dslash(D, LATTICE, gauge_field=U) for D in (light, heavy))
    assert first.entry.build_key == second.entry.build_key
    assert close(light, first(psi), judged(light, psi, U)) and close(heavy, second(psi), judged(heavy, psi, U))
    assert not close(heavy, first(psi), judged(heavy, psi, U))
    light.mass = 0.4
    assert close(light, first(psi), judged(light, psi, U)), "the compiled operator follows its module"


def test_links_changed_in_place_are_seen(compiler: NeuronCompiler) -> None:
    D, U, psi = WilsonDirac(mass=0.1), links(), spinors(1)[0]
    compiled = compiler.compile_dslash(D, LATTICE)
    assert close(D, compiled(psi, U), judged(D, psi, U))
    old = judged(D, psi, U)
    U.copy_(links(seed=4))
    assert close(D, compiled(psi, U), judged(D, psi, U)) and not close(D, compiled(psi, U), old)
    U.numpy()[0, 0, 0, 0] *= -1  # torch's version counter does not see this
    assert close(D, compiled(psi, U), judged(D, psi, U))
    with pytest.raises(UsageError, match="needs a gauge field"):
        compiled(psi)


def test_links_compiled_in_are_never_exchanged_silently(compiler: NeuronCompiler) -> None:
    D, U, psi = WilsonDirac(mass=0.1), links(), spinors(1)[0]
    compiled = compiler.compile_dslash(D, LATTICE, gauge_field=U)
    found = compiled(psi)
    assert torch.equal(compiled(psi, U), found) and torch.equal(compiled(psi, GaugeField(U.clone())), found)
    with pytest.raises(UsageError, match="the gauge field of this call is another"):
        compiled(psi, links(seed=4))
    kept = U.clone()
    U.mul_(-1)
    with pytest.raises(UsageError, match="was changed in place since"):
        compiled(psi)
    U.copy_(kept)
    assert torch.equal(compiled(psi), found)


MODULES = [
    WilsonDslash(t_boundary=-1),
    WilsonDirac(mass=0.2, anisotropy=(2.0, 0.9), phases=(1j, 1, -1, 1)),
    CloverWilsonDirac(mass=0.1, csw=0.7, t_boundary=-1),
    TwistedMassDirac(mass=0.1, mu=0.3),
    WilsonSchur(mass=0.3),
    CloverSchur(mass=0.3, csw=0.5),
]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: type(m).__name__)
def test_every_module_agrees_with_itself(compiler: NeuronCompiler, module: Any) -> None:
    U, psi = links(), spinors(1)[0]
    compiled = compiler.compile_dslash(module, LATTICE)
    expected = judged(module, psi, U)
    # The bound counts an isotropic hop; with nu/xi0 below 1 every term of the anisotropic one is smaller.
    assert close(module, compiled(psi, U), expected)
    gauge = GaugeField(U)
    field = compiled(ColorSpinorField(psi, gauge.geom), gauge)
    assert isinstance(field, ColorSpinorField) and torch.equal(field.tensor, compiled(psi, U))


def test_other_forms_and_the_runtimes_solver(compiler: NeuronCompiler) -> None:
    D, U, psi = WilsonDirac(mass=0.5), links(), spinors(1)[0]
    normal = compiler.compile_dslash(D, LATTICE, gauge_field=U, form="normal")
    assert normal.spec.operator == "wilson_normal"
    assert close(D, normal(psi), judged(D, psi, U, "normal"), form="normal")
    with pytest.raises(UsageError, match="its dagger has no artifact"):
        compiler.compile_dslash(WilsonDslash(), LATTICE, form="dagger")
    with pytest.raises(UsageError, match="form 'back'"):
        compiler.compile_dslash(D, LATTICE, form="back")
    x, info = solve(compiler.compile_dslash(D, LATTICE, gauge_field=U).operator, psi.numpy(), method="bicgstab", tol=1e-5)
    rest = judged(D, torch.from_numpy(x), U) - psi
    assert info.converged and float(rest.norm()) <= 1.1e-5 * float(psi.norm())


def test_even_odd_parts_are_the_full_hop(compiler: NeuronCompiler) -> None:
    U, psi = links(), spinors(2)
    for module in (WilsonDslash(t_boundary=-1), EvenOddWilsonDslash(t_boundary=-1), WilsonDirac(mass=0.4, t_boundary=-1)):
        halves = [compiler.compile_dslash_eo(module, LATTICE, out_parity=p, gauge_field=U) for p in (0, 1)]
        parts = [halves[p](pack_checkerboard(psi, 1 - p)) for p in (0, 1)]
        assert parts[0].shape == (2, 8, 4, 4, 2, 4, 3) and "by the hop on all sites" in halves[0].note
        whole = sum(unpack_checkerboard(part, p, *LATTICE) for p, part in enumerate(parts))
        hop = WilsonDslash(t_boundary=-1)
        assert torch.equal(whole, compiler.compile_dslash(hop, LATTICE)(psi, U))
        assert close(hop, whole, judged(hop, psi, U))
    reference = EvenOddWilsonDslash(t_boundary=-1).hop_eo(psi, U)
    assert torch.allclose(unpack_checkerboard(parts[0], 0, *LATTICE), reference, atol=1e-4)
    with pytest.raises(UsageError, match="odd extent"):
        compiler.compile_dslash_eo(WilsonDslash(), (8, 4, 3, 4))
    with pytest.raises(UsageError, match="parity 2"):
        compiler.compile_dslash_eo(WilsonDslash(), LATTICE, out_parity=2)


def test_checkerboards_hold_every_site_once() -> None:
    psi = spinors(2)
    even, odd = pack_checkerboard(psi, 0), pack_checkerboard(psi, 1)
    assert torch.equal(unpack_checkerboard(even, 0, *LATTICE) + unpack_checkerboard(odd, 1, *LATTICE), psi)
    assert torch.equal(pack_checkerboard(unpack_checkerboard(odd[0], 1, *LATTICE), 1), odd[0])
    assert torch.equal(even[0, 1, 0, 0, :, 0, 0], psi[0, 1, 0, 0, 1::2, 0, 0])
    assert torch.equal(even[0, 1, 0, 1, :, 0, 0], psi[0, 1, 0, 1, 0::2, 0, 0])
    for refused in (
        lambda: pack_checkerboard(psi, 2), lambda: pack_checkerboard(psi[..., :3, :, :], 0),
        lambda: pack_checkerboard(psi[0, 0, 0], 0), lambda: unpack_checkerboard(even, 0, 8, 4, 4, 8),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            refused()


WRONG_CALLS = [
    (lambda psi, U: (psi[..., :2], U), "spinor: has the wrong shape"),
    (lambda psi, U: (psi[None, None], U), "spinor: has the wrong shape"),
    (lambda psi, U: (psi.to(torch.complex128), U), "spinor: has dtype torch.complex128"),
    (lambda psi, U: (psi.real, U), "spinor: has dtype torch.float32"),
    (lambda psi, U: (psi.numpy(), U), "spinor: is no tensor"),
    (lambda psi, U: (psi.clone().requires_grad_(), U), "has no gradient"),
    (lambda psi, U: (psi, None), "needs a gauge field"),
    (lambda psi, U: (psi, U[..., :2, :2]), "gauge field: has the wrong shape"),
    (lambda psi, U: (psi, U.real), "gauge field: has the wrong shape or dtype"),
    (lambda psi, U: (psi, U[:4]), "gauge field: has other extents"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_CALLS, ids=[m for _, m in WRONG_CALLS])
def test_wrong_calls_are_refused_in_one_sentence(compiler: NeuronCompiler, change: Any, message: str) -> None:
    compiled = compiler.compile_dslash(WilsonDirac(mass=0.1), LATTICE)
    with pytest.raises(UsageError, match=re.escape(message)):
        compiled(*change(spinors(1)[0], links()))


class Heavier(WilsonDirac):
    """A subclass, whose own formula an artifact would lose."""


WRONG_COMPILES = [
    (lambda c: c.compile_dslash(WilsonDirac(mass=0.1), LATTICE, nc=2), "nc"),
    (lambda c: c.compile_dslash(WilsonDirac(mass=0.1, nc=2), LATTICE), "has other colours"),
    (
        lambda c: c.compile_dslash(WilsonDirac(mass=0.1, dtype=torch.complex128), LATTICE),
        "was made for fields in torch.complex128",
    ),
    (lambda c: c.compile_dslash(Heavier(mass=0.1), LATTICE), "module Heavier: has no operator word"),
    (lambda c: c.compile_dslash(torch.nn.Linear(2, 2), LATTICE), "module Linear: has no operator word"),
    (lambda c: c.compile_dslash(CloverWilsonDirac(0.1, clover_dtype=torch.complex128), LATTICE), "clover_dtype"),
    (lambda c: c.compile_dslash(WilsonDirac(mass=0.1), LATTICE, gauge_field=links(SMALL)), "gauge field: has other extents"),
    (lambda c: c.compile_dslash(WilsonDirac(mass=0.1), (8, 4, 4)), "lattice"),
    (lambda c: c.compile_dslash(WilsonDirac(mass=0.1), LATTICE, fused="yes"), "fused 'yes'"),
    (lambda c: c.compile_dslash(CloverWilsonDirac(0.1), LATTICE, fused=True), "fused"),
    (lambda c: c.compile_dslash_batched(WilsonDirac(mass=0.1), LATTICE, batch_size=0), "batch"),
    (lambda c: c.compile_dslash_sharded(WilsonDirac(mass=0.1), LATTICE, num_shards=3), "shards"),
    (lambda c: c.compile_dslash_multicore(WilsonDirac(mass=0.1), LATTICE, num_cores=0), "num_cores"),
    (lambda c: c.compile_observable("plaquete", LATTICE), "did you mean 'plaquette'"),
    (lambda c: c.compile_observable(torch.det, LATTICE), "observable 'det': has no artifact"),
    (lambda c: c.torch_compile(WilsonDirac(mass=0.1)), "backend 'neuronx': is not there"),
]


@pytest.mark.parametrize(("call", "message"), WRONG_COMPILES, ids=[m for _, m in WRONG_COMPILES])
def test_wrong_compiles_are_refused_before_anything_is_built(compiler: NeuronCompiler, call: Any, message: str) -> None:
    before = events(compiler.artifacts.folder)
    with pytest.raises(UsageError, match=re.escape(message)):
        call(compiler)
    assert events(compiler.artifacts.folder) == before


def test_observables_agree_with_their_functions(compiler: NeuronCompiler) -> None:
    U = GaugeField(links(SMALL))
    compiler.artifacts.provide([Spec(w, SMALL, "float32") for w in ("plaquette", "wilson_action", "polyakov_loop")])
    bound, _ = bound_and_scale("observable", "plaquette", SMALL, {}, "float32")
    wide = U.to(dtype=torch.complex128)
    assert abs(compiler.compile_plaquette(SMALL)(U) - observables.plaquette(wide)) <= bound
    action = compiler.compile_observable(observables.wilson_action, SMALL)
    bound, scale = bound_and_scale("observable", "wilson_action", SMALL, {"beta": 6.0}, "float32")
    assert abs(action(U.tensor, beta=6.0) - observables.wilson_action(wide, 6.0)) <= bound * scale
    bound, _ = bound_and_scale("observable", "polyakov_loop", SMALL, {}, "float32")
    loop = compiler.compile_observable("polyakov_loop", SMALL)(U)
    assert abs(loop - complex(observables.polyakov_loop(wide))) <= 2 * bound
    with pytest.raises(UsageError, match="needs beta"):
        action(U)
    with pytest.raises(UsageError, match="other extents"):
        action(links(), beta=6.0)


def test_parameters_of_lqcd_neuron_act(compiler: NeuronCompiler) -> None:
    folder = str(compiler.artifacts.folder)
    D, U, psi = WilsonDirac(mass=0.1), GaugeField(links()), spinors(1)[0]
    inlined = NeuronCompileParam(folder, inline_weights=True).compile(D, U, engine="cpu")
    parallel = NeuronCompileParam(folder, num_neuroncores=2).compile(D, U, engine="cpu")
    assert torch.equal(inlined(psi), parallel(psi, U)) and parallel.num_cores == 2
    with pytest.raises(UsageError, match="needs a gauge field"):
        parallel(psi)
    with pytest.raises(UsageError, match="optlevel 4"):
        NeuronCompileParam(folder, optimize_level=4).compiler("cpu")


def test_torch_compile_is_torchs_own(compiler: NeuronCompiler) -> None:
    D, U, psi = WilsonDirac(mass=0.1), links(SMALL), spinors(1, SMALL)[0]
    assert torch.equal(compiler.torch_compile(D, backend="eager")(psi, U), D(psi, U))


def test_double_precision_exists_on_the_cpu_engine_only(store: Path) -> None:
    made = NeuronCompiler(dtype="float64", engine="cpu", store=store)
    D, U, psi = WilsonDirac(mass=0.1), links(SMALL).to(torch.complex128), spinors(1, SMALL)[0].to(torch.complex128)
    assert close(D, made.compile_dslash(D, SMALL)(psi, U), judged(D, psi, U), "float64")
    fused = made.compile_dslash(D, SMALL, gauge_field=U, fused=True)
    assert fused.spec.fused and close(D, fused(psi), judged(D, psi, U), "float64")
    slabs = made.compile_dslash_sharded(D, SMALL, gauge_field=U, num_shards=2)
    assert slabs.spec.shards == 2 and torch.equal(slabs(psi), made.compile_dslash(D, SMALL)(psi, U))
    with pytest.raises(UsageError, match="no double precision"):
        NeuronCompiler(dtype="float64", engine="sim", store=store)
