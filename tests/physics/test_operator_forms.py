"""One operator in many forms: batches, fields, colours, split real and imaginary parts, single precision, exported graphs."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from lqcd_aot.core import ColorSpinorField, GaugeField, LatticeGeometry
from lqcd_aot.dirac import (
    CloverSchur,
    CloverWilsonDirac,
    SplitForm,
    WilsonDirac,
    WilsonDslash,
    degrand_rossi_gammas,
    judge,
    sigma_munu,
)
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import OPERATORS as WORDS
from tests.physics.test_operator_symmetries import BOUND, OPERATORS, TILT, every
from tests.physics.torch_fields import C64, C128, SMALL, links, relative, spinor

SPLIT = [name for name in OPERATORS if name != "clover-schur"]


def textbook_hop(psi: torch.Tensor, U: torch.Tensor, nc: int) -> torch.Tensor:
    """The defining formula with full 4x4 spin matrices and torch.roll: slow, and written from the formula alone."""
    G, out = degrand_rossi_gammas(C128), torch.zeros_like(psi)
    one = torch.eye(4, dtype=C128)
    for mu in range(4):
        link = U[..., mu, :, :]
        ahead = torch.einsum("...ab,...sb->...sa", link, torch.roll(psi, -1, mu))
        behind = torch.einsum("...ba,...sb->...sa", torch.roll(link, 1, mu).conj(), torch.roll(psi, 1, mu))
        out -= 0.5 * (torch.einsum("rs,...sa->...ra", one - G[mu], ahead) + torch.einsum("rs,...sa->...ra", one + G[mu], behind))
    return out


@pytest.mark.parametrize("nc", [2, 3, 4, 5])
@pytest.mark.parametrize("extents", [(4, 2, 2, 4), (3, 5, 2, 2), (2, 2, 2, 2)])
def test_the_hop_is_the_textbook_formula_for_any_colours_and_extents(nc: int, extents: tuple[int, int, int, int]) -> None:
    geom = LatticeGeometry(*extents, nc=nc)
    U, psi = links(geom), spinor(geom)
    assert relative(WilsonDslash(nc=nc)(psi, U), textbook_hop(psi, U, nc)) < BOUND


@every
@pytest.mark.parametrize("nc", [2, 4])
def test_every_operator_works_for_other_colours(name: str, nc: int) -> None:
    """Adjointness and gamma5-hermiticity together leave no colour index untouched."""
    geom = LatticeGeometry(2, 4, 2, 2, nc=nc)
    D, U, psi, chi = OPERATORS[name](t_boundary=-1), links(geom), spinor(geom), spinor(geom, seed=5)
    left = torch.vdot(chi.reshape(-1), D(psi, U).reshape(-1))
    right = torch.vdot(D.dagger(chi, U).reshape(-1), psi.reshape(-1))
    assert abs(complex(left - right)) < BOUND


@every
@pytest.mark.parametrize("form", ["forward", "dagger", "normal"])
def test_a_batch_column_is_the_single_application(name: str, form: str) -> None:
    D, U = OPERATORS[name](phases=TILT), links()
    batch = torch.stack([spinor(seed=s) for s in range(6)]).reshape(2, 3, *SMALL.spinor_shape)
    together = getattr(D, form)(batch, U)
    for i in range(2):
        for j in range(3):
            # torch adds in another order for another number of columns, so the last bit may differ.
            assert relative(together[i, j], getattr(D, form)(batch[i, j], U)) < 1e-15


@every
def test_fields_in_fields_out(name: str) -> None:
    D, U, psi = OPERATORS[name](), links(), spinor()
    result = D(ColorSpinorField(psi, SMALL), GaugeField(U, SMALL))
    assert isinstance(result, ColorSpinorField)
    assert torch.equal(result.tensor, D(psi, U))


@every
def test_inputs_are_not_written_to(name: str) -> None:
    D, U, psi = OPERATORS[name](phases=TILT), links(), spinor()
    before = U.clone(), psi.clone()
    D.normal(psi, U)
    assert torch.equal(U, before[0])
    assert torch.equal(psi, before[1])


@every
def test_single_precision_is_as_good_as_its_digits(name: str) -> None:
    """complex64: 2^-24 times the square root of some hundred roundings a component, and M is well conditioned as a map."""
    D, U, psi = OPERATORS[name](t_boundary=-1), links(), spinor()
    single = D(psi.to(C64), U.to(C64))
    assert single.dtype == C64
    assert relative(single, D(psi, U)) < 1e-6


@pytest.mark.parametrize("name", SPLIT)
@pytest.mark.parametrize("form", ["forward", "dagger", "normal"])
def test_split_form_equals_the_complex_form(name: str, form: str) -> None:
    D, U, psi = OPERATORS[name](phases=TILT), links(), torch.stack([spinor(), spinor(seed=3)])
    re, im = SplitForm(D, form)(psi.real.clone(), psi.imag.clone(), U.real.clone(), U.imag.clone())
    assert relative(torch.complex(re, im), getattr(D, form)(psi, U)) < BOUND


def test_split_form_works_in_bfloat16() -> None:
    """8 bits: the result is that of exact arithmetic to some 2^-8, the roundings of inputs included."""
    D, U, psi = WilsonDslash(), links(), spinor()
    parts = [v.clone().to(torch.bfloat16) for v in (psi.real, psi.imag, U.real, U.imag)]
    re, im = SplitForm(D)(*parts)
    assert re.dtype == torch.bfloat16
    assert relative(torch.complex(re.double(), im.double()), D(psi, U)) < 2**-6


@every
def test_complex_modules_export(name: str) -> None:
    """The exported graph computes the same bits and holds no roll."""
    D, U, psi = OPERATORS[name](phases=TILT), links(), spinor()
    program = torch.export.export(D, (psi, U))
    assert torch.equal(program.module()(psi, U), D(psi, U))
    assert "roll" not in str(program.graph)


@pytest.mark.parametrize("name", ["hop", "twisted", "clover"])
def test_split_modules_export_without_complex_numbers(name: str) -> None:
    U, psi = links(), spinor()
    module, parts = (
        SplitForm(OPERATORS[name](t_boundary=-1)),
        (psi.real.clone(), psi.imag.clone(), U.real.clone(), U.imag.clone()),
    )
    program = torch.export.export(module, parts)
    values = [node.meta.get("val") for node in program.graph.nodes]
    assert not any(v.is_complex() for v in values if isinstance(v, torch.Tensor))
    assert "roll" not in str(program.graph)
    assert all(torch.equal(a, b) for a, b in zip(program.module()(*parts), module(*parts), strict=True))


def _family(word: str) -> str:
    return judge.family_and_form(word)[0]


@pytest.mark.parametrize("word", [w for w, entry in WORDS.items() if entry["kind"] == "dirac"])
def test_the_judge_reads_every_input_its_word_declares_and_no_other(word: str) -> None:
    U, psi = links(), spinor()
    base = {"mass": 0.1, "csw": 1.1, "mu": 0.3}
    reference = judge.apply(word, psi, U, **base)
    assert reference.dtype == C128
    for name in base:
        changed = judge.apply(word, psi, U, **{**base, name: base[name] + 0.2})
        assert torch.equal(changed, reference) == (name not in WORDS[word]["inputs"]), name
    assert relative(judge.apply(word, psi, U, **base, phases=TILT), reference) > 1e-3
    assert relative(judge.apply(word, psi, U, **base, anisotropy=(2.0, 0.9)), reference) > 1e-3
    assert torch.equal(judge.apply(word, psi.numpy(), U.numpy(), **base), reference)


def test_the_judge_refuses_what_is_no_dirac_operator() -> None:
    with pytest.raises(UsageError, match="is no Dirac operator"):
        judge.apply("plaquette", spinor(), links())
    with pytest.raises(UsageError, match="did you mean 'wilson_hop'"):
        judge.apply("wilson_hopp", spinor(), links())


def test_kept_gauge_serves_only_the_same_unchanged_links() -> None:
    """set_gauge is an optimisation: other links, and the same links after a change in place, give their own result."""
    for D in (CloverWilsonDirac(0.1, 1.3), CloverSchur(0.1, 1.3)):
        U, other, psi = links(), links(seed=8), spinor()
        fresh: Any = type(D)(0.1, 1.3)
        D.set_gauge(U)
        assert torch.equal(D(psi, U), fresh(psi, U))
        assert torch.equal(D(psi, other), fresh(psi, other))
        U.mul_(other[0, 0, 0, 0, 0, 0, 0] / abs(other[0, 0, 0, 0, 0, 0, 0]))
        assert torch.equal(D(psi, U), fresh(psi, U))


def test_clover_matrix_and_row_form_agree() -> None:
    """compute_clover builds i/2 csw sigma F as matrices; the operator applies -csw/2 g_mu g_nu F by rows."""
    from lqcd_aot.dirac import compute_clover

    U, psi, csw = links(), spinor(), 1.7
    C = compute_clover(U, csw).reshape(*SMALL.shape, 12, 12)
    assert relative(C, C.mH) < BOUND
    matrix = (C @ psi.reshape(*SMALL.shape, 12, 1)).reshape(psi.shape)
    assert relative(CloverWilsonDirac(0.1, csw)(psi, U) - WilsonDirac(0.1)(psi, U), matrix) < 10 * BOUND


def test_gamma_algebra() -> None:
    G, one = degrand_rossi_gammas(C128), torch.eye(4, dtype=C128)
    for mu in range(4):
        assert torch.equal(G[mu], G[mu].mH)
        for nu in range(4):
            assert torch.equal(G[mu] @ G[nu] + G[nu] @ G[mu], 2 * (mu == nu) * one)
    assert torch.equal(G[3] @ G[2] @ G[1] @ G[0], torch.diag(torch.tensor([1, 1, -1, -1], dtype=C128)))
    assert all(torch.equal(s, s.mH) for s in sigma_munu(C128))


def test_phases_of_modulus_one_only() -> None:
    assert WilsonDslash(phases=(complex(math.cos(1), math.sin(1)), 1, 1, 1)).phases[0].imag == math.sin(1)
    with pytest.raises(UsageError, match="modulus 1"):
        WilsonDslash(phases=(2, 1, 1, 1))
