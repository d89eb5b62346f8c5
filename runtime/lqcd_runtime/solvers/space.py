"""Vector operations over [columns, ...] arrays of numpy or torch: the only place where a solver touches components.

Scalars are Python numbers, one per column, in lists. Every numpy column is treated alone, in pieces of fixed size, so a
column's numbers do not depend on its neighbours or on the number of threads. Torch is recognised by the array's type
and never imported. Knows no algorithm.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

# Elements a piece: three double-complex pieces fit in a 1 MiB second-level cache, and BLAS stays serial below 10,000
# elements.
_PIECE = 8192


def is_torch(a: Any) -> bool:
    """Whether an array is a torch tensor."""
    return type(a).__module__.partition(".")[0] == "torch"


def contiguous(a: Any) -> Any:
    """The array, or a C-ordered copy of it where it is not C-ordered."""
    if is_torch(a):
        return a.resolve_conj().contiguous()
    import numpy as np

    return np.ascontiguousarray(a)


def copy(a: Any) -> Any:
    """A fresh C-ordered copy."""
    return a.resolve_conj().contiguous().clone() if is_torch(a) else a.copy(order="C")


def zeros_like(a: Any) -> Any:
    """Zeros of the same shape, dtype and device."""
    if is_torch(a):
        return a.new_zeros(a.shape)
    import numpy as np

    return np.zeros(a.shape, a.dtype)


def take(a: Any, positions: Sequence[int]) -> Any:
    """The columns at these positions, as a fresh array."""
    return a[list(positions)]


def cast(a: Any, like: str) -> Any:
    """A copy of the array as "complex64" or "complex128"."""
    if is_torch(a):
        import sys

        return a.to(getattr(sys.modules["torch"], like)).clone()
    return a.astype(like)


def epsilon(a: Any) -> float:
    """Spacing of 1 in the array's arithmetic: 2^-52, 2^-23 or what the dtype has."""
    if is_torch(a):
        import sys

        return float(sys.modules["torch"].finfo(a.dtype).eps)
    import numpy as np

    return float(np.finfo(a.dtype).eps)


def _flat(a: Any) -> Any:
    """[columns, components], also for no columns at all."""
    count = 1
    for n in a.shape[1:]:
        count *= int(n)
    return a.reshape(a.shape[0], count)


def _pieces(row: Any) -> Iterator[Any]:
    for start in range(0, row.shape[0], _PIECE):
        yield row[start : start + _PIECE]


def inner(a: Any, b: Any) -> list[complex]:
    """sum conj(a) b of every column, partial sums added in double precision."""
    if is_torch(a):
        wide = cast_sum(_flat(a.conj() * b))
        return [complex(v) for v in wide]
    import numpy as np

    out = []
    for x, y in zip(_flat(a), _flat(b), strict=True):
        out.append(sum((complex(np.vdot(p, q)) for p, q in zip(_pieces(x), _pieces(y), strict=True)), 0j))
    return out


def cast_sum(rows: Any) -> list[Any]:
    """Row sums of a torch tensor [columns, n], accumulated in double precision."""
    import sys

    torch = sys.modules["torch"]
    wide = torch.complex128 if rows.is_complex() else torch.float64
    sums: list[Any] = rows.sum(dim=1, dtype=wide).tolist()
    return sums


def norm2(a: Any) -> list[float]:
    """sum |a|^2 of every column. Underflows below 1e-154 in double: use `norms` where the scale is unknown."""
    if is_torch(a):
        flat = _flat(a)
        return [float(v) for v in cast_sum((flat.real**2 + flat.imag**2) if flat.is_complex() else flat**2)]
    import numpy as np

    out = []
    for x in _real_rows(a):
        out.append(sum((float(np.dot(p, p)) for p in _pieces(x)), 0.0))
    return out


def norms(a: Any) -> list[float]:
    """Euclidean norm of every column at any scale: the largest component is divided out first. NaN and infinity pass through."""
    largest = max_abs(a)
    safe = [m if 0.0 < m < math.inf else 1.0 for m in largest]
    scaled = norm2(divided(a, safe))
    return [m if m != m or m == math.inf else s * math.sqrt(v) for m, s, v in zip(largest, safe, scaled, strict=True)]


def max_abs(a: Any) -> list[float]:
    """Largest modulus of a real or imaginary part in every column (NaN where there is one)."""
    if is_torch(a):
        import sys

        flat = _flat(a).contiguous()
        real = sys.modules["torch"].view_as_real(flat).reshape(a.shape[0], 2 * flat.shape[1]) if flat.is_complex() else flat
        return [float(v) for v in real.abs().amax(dim=1).tolist()]
    import numpy as np

    return [float(np.abs(x).max(initial=0.0)) for x in _real_rows(a)]


def _real_rows(a: Any) -> Any:
    """A C-ordered numpy array as [columns, reals], without a copy."""
    flat = _flat(a)
    return flat.view(flat.real.dtype)


def _scalars(x: Any, values: Sequence[complex]) -> Any:
    """Torch only: the values as a tensor that broadcasts over [columns, ...]."""
    plain = list(values) if x.is_complex() else [complex(v).real for v in values]
    return x.new_tensor(plain).reshape(-1, *([1] * (x.ndim - 1)))


def divided(a: Any, values: Sequence[float]) -> Any:
    """a_i / s_i for real s_i, as a fresh array; real by real, so that |s_i|^2 is never formed and cannot underflow."""
    if is_torch(a):
        if not a.is_complex():
            return a / _scalars(a, values)
        import sys

        torch = sys.modules["torch"]
        real = torch.view_as_real(contiguous(a))
        return torch.view_as_complex(real / real.new_tensor(list(values)).reshape(-1, *([1] * a.ndim)))
    out = copy(a)
    for row, value in zip(_real_rows(out), values, strict=True):
        row /= value
    return out


def scale(a: Any, values: Sequence[complex]) -> None:
    """a_i *= s_i in place."""
    if is_torch(a):
        a.mul_(_scalars(a, values))
        return
    for row, value in zip(_flat(a), values, strict=True):
        row *= value if a.dtype.kind == "c" else complex(value).real


def axpy(y: Any, values: Sequence[complex], x: Any) -> None:
    """y_i += s_i x_i in place. A zero scalar leaves the column untouched whatever x_i holds."""
    _combine(y, values, x, keep_y=True)


def xpay(y: Any, values: Sequence[complex], x: Any) -> None:
    """y_i = x_i + s_i y_i in place: the update of a search direction."""
    _combine(y, values, x, keep_y=False)


def _combine(y: Any, values: Sequence[complex], x: Any, *, keep_y: bool) -> None:
    if is_torch(y):
        s = _scalars(y, values)
        if keep_y:
            y.add_((x * s).masked_fill(s == 0, 0))
        else:
            y.mul_(s).add_(x)
        return
    import numpy as np

    scratch = np.empty(2 * _PIECE, y.real.dtype)
    for i, value in enumerate(values):
        number = complex(value)
        if keep_y and number == 0:
            continue
        # A real scalar works on the real numbers themselves: half the arithmetic of a complex product.
        rows: tuple[Any, Any, Any]
        if number.imag == 0.0 or y.dtype.kind != "c":
            rows = (_real_rows(y[i : i + 1])[0], _real_rows(x[i : i + 1])[0], scratch)
            factor: complex = number.real
        else:
            rows = (y[i].reshape(-1), x[i].reshape(-1), scratch.view(y.dtype))
            factor = number
        for py, px in zip(_pieces(rows[0]), _pieces(rows[1]), strict=True):
            part = rows[2][: py.shape[0]]
            if keep_y:
                np.multiply(px, factor, out=part)
                np.add(py, part, out=py)
            else:
                np.multiply(py, factor, out=part)
                np.add(part, px, out=py)


def scrambled(a: Any, seed: int) -> Any:
    """The array with seeded +-1 signs on its components: a direction that no symmetry of the problem has prepared."""
    from lqcd_runtime.noise import z2

    count = 1
    for n in a.shape:
        count *= int(n)
    signs = z2(seed, 0, count).real.reshape(tuple(a.shape))
    return a * (a.new_tensor(signs.tolist()) if is_torch(a) else signs.astype(a.real.dtype))
