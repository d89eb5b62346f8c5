"""Level-1 linear algebra against its formulas."""

from __future__ import annotations

import pytest
import torch

from lqcd_aot import blas
from lqcd_runtime.errors import UsageError
from tests.physics.torch_fields import C128, SMALL, spinor


def test_formulas() -> None:
    x, y, a, b = spinor(), spinor(seed=8), 0.3 - 2j, -1.5
    before = x.clone(), y.clone()
    assert torch.equal(blas.axpy(a, x, y), a * x + y)
    assert torch.equal(blas.xpay(x, a, y), x + a * y)
    assert torch.equal(blas.axpby(a, x, b, y), a * x + b * y)
    assert torch.equal(blas.caxpby(a, x, b, y), a * x + b * y)
    assert complex(blas.inner(x, y)) == pytest.approx(complex((x.conj() * y).sum()), abs=1e-15)
    assert complex(blas.inner(a * x, y)) == pytest.approx(a.conjugate() * complex(blas.inner(x, y)), abs=1e-15)
    assert float(blas.norm2(x)) == pytest.approx(complex(blas.inner(x, x)).real, rel=1e-14)
    assert float(blas.norm(3 * x)) == pytest.approx(3 * float(blas.norm(x)), rel=1e-14)
    assert float(blas.norm2(x.real)) == pytest.approx(float((x.real**2).sum()), rel=1e-14)
    assert torch.equal(x, before[0]), "nothing is changed in place"
    assert torch.equal(y, before[1])


def test_dot_many() -> None:
    basis, v = torch.stack([spinor(seed=s) for s in range(3)]), spinor(seed=9)
    expected = torch.stack([blas.inner(basis[i], v) for i in range(3)])
    assert float((blas.dot_many(basis, v) - expected).abs().max()) < 1e-15
    assert blas.dot_many(basis, v).dtype == C128


def test_fields_of_different_shapes_are_refused() -> None:
    with pytest.raises(UsageError, match="differ in shape"):
        blas.inner(spinor(), spinor()[:2])
    with pytest.raises(UsageError, match="differ in shape"):
        blas.dot_many(torch.zeros((2, *SMALL.spinor_shape), dtype=C128), spinor()[:2])
