"""How far an artifact may be from the judge: operation counts and growth factors, with their derivation.

Model: every rounding changes a number by a factor 1 + d, |d| <= u (2^-24, 2^-53, bfloat16 2^-8). A component of the output is a
sum of products; where at most K roundings lie on any path from an input to it, |error| <= K u S (first order), S = the same sum
with absolute values. The judge has the same K with u = 2^-53. So |artifact - judge| <= K (u + 2^-53) S, and the *relative error*
of a witness is |artifact - judge| / S, its bound K (u + 2^-53).

Used throughout: links are unitary, so a row has length 1, the matrix of absolute values has 2-norm <= sqrt(3), Frobenius norm
sqrt(3); |psi| <= sqrt(2) per component, so a colour vector has length <= sqrt(6) (Cauchy-Schwarz gives every sum below).

    hop      per direction 1/2 (|U| |psi_s| + |U| |psi_s'|) <= sqrt(3) a (a = sqrt 2): eight of them, S = 8 sqrt(3) a
             path: link 1, phase and scale 3, spinor 1, spin projection 1, colour sum 6, directions 8, diagonal 2 -> 22
    fused    rows of the 12x12 blocks have 6 entries that are not zero; zeros are multiplied and added without rounding. One sum
             runs over 8 directions, 6 entries, 2 products; path: link 1, phase and scale 3, spinor 1, product 1, 95 more
             additions, diagonal 2 -> 103
    clover   F = sum of 4 leaves of 4 links - h.c. over 8: row of |F| <= 3 sqrt 3; csw/2, six planes, one spin column each:
             S = 27 csw a;  path: links 4, products 18, leaves 5, scale 1, planes 6, spinor 1, 12-term sum 24, hop 2 -> 61
    twisted  i mu g5: S = mu a; path + 2
    schur    (4+m) - H (4+m)^-1 H, or A_ee - H A_oo^-1 H with cond(A) <= (4+m + 3 csw)/(4+m - 3 csw), because |F| <= 1 in the
             2-norm; the inverse of a 6x6 block has paths of 72 roundings, each amplified by cond(A) together with A's own 61
    normal   two applications: K adds, S multiplies

likely   The worst case would excuse mistakes: with 8 bits any, with 24 bits those of one component in a thousand. Roundings
         that do not know each other add up like their squares: by Hoeffding's inequality K of them of partial sums of root mean
         square R exceed 8 sqrt(K) u R with probability below 2 exp(-32), for one component, and below 1e-5 for any of 10^8.
         Witnesses of Dirac operators use this. R of the output: |psi|^2 is 2/3 on average, each of the four directions of the
         hop is an isometry, so R^2 = 2/3 (diagonal^2 + 1 + 3 r^2), r = nu/xi0; clover adds 0.2 csw^2 (six planes, F of four
         leaves), twisted mu^2; schur: 2/3 (d^2 + (1 + 3 r^2)^2/d^2). Roundings that an inverse amplifies by c count c^2 times.
         An addition of a sum of n terms rounds a partial sum only, in the mean j/n of R^2 at the j-th: the 96 terms of a fused
         row count (n + 1)/2 - 1/n = 48.5, not 95, where all directions are alike; terms of T come first and are larger where
         r < 1, so in general the mean of partial sums below. With the 8 others K = 56.5.
stored   Halves round what is stored, not what is computed: in a sweep the link and the spinor it reads, and what it writes for
         the next one. n sweeps (1; 2 for a normal or Schur operator, 4 for both) have 2 n + 1 such roundings u_s on a path,
         beside the K of the arithmetic: 8 sqrt(2 n + 1) u_s R more. A third row made from two takes 12 roundings u a
         sweep: 2 of the rows, 4 of each of two sums of products, 2 of the factor; 12 n u are below (2 n + 1) of 2.5 u.
chunk    k iterations of CG from x = 0 on A = M^dag M. |hop| <= 4, so M has its singular values in [m, 8+m], schur in
         [d - 16/d, d + 16/d]: with the witness's m = 4 at least s = 4 or 6. A rounding of an iteration is at most that of A p,
         relative to |x| (S/a / s)^2, S as above; K counts A p, and two sums of two stages. k K of them add up like their squares,
         spread over the components: bound 8 sqrt(k K) u (S/a / s)^2, scale sqrt(2/3) / s^2. The number of steps is exact.

solver   a running error analysis of the judge's own run: lqcd_aot.dirac.iterates

anisotropic  The spatial hops carry r = nu/xi0: 1 + 3 r in the place of 4 directions, diagonal m + 1 + 3 r.

Sums of +-1 times N components: signs do not know the rounding errors, so by Hoeffding's inequality the sum of errors exceeds
8 sqrt(N) times the largest with probability below 2 exp(-32). Where the bound of a component is a likely one, with its own 8,
sqrt(N) is enough. The host adds them pairwise in double: below 64 roundings more.

Loops of n links, traced over 3: products add 18 u (Frobenius), links sqrt(3) u each: K = n + 11 (n-1) + 3.
F of observables: 61 + 9 in units of u, tr F F: 2 sqrt(3) 70 + 18 = 260, scale 3 -> 90 with the sums.
Gauge maps: staple sum times link, 6 (4 sqrt 3 + 54) = 366 u, times rho (or 2 epsilon per stage, amplified by less than 1.5),
exponential 100, product with the link 20; scale 1 per component. Sums over sites in double: one rounding per site.
"""

from __future__ import annotations

import math

from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNIT = {
    "float32": 2.0**-24, "float64": 2.0**-53, "bfloat16": 2.0**-8, "float16": 2.0**-11,
    "float32_12": 2.5 * 2.0**-24, "float64_12": 2.5 * 2.0**-53,
}  # fmt: skip
_AMPLITUDE = math.sqrt(2.0)
_HOP_PATH, _CLOVER_PATH, _INVERSE_PATH, _TRACE_F2_PATH = 22, 61, 72, 90
# Of a row of fused blocks: additions for each axis (two directions, six entries, two products), and the other roundings.
_FUSED_AXIS, _FUSED_OTHERS = 24, 8
_DEVIATIONS = 8.0
_MEAN_SQUARE = 2.0 / 3.0


def _hop_norm(ratio: float) -> float:
    """Bound on the 2-norm of the hop: each direction is an isometry."""
    return 1.0 + 3.0 * ratio


def diagonal_of(inputs: Mapping[str, float], ratio: float = 1.0) -> float:
    """4 + m, or m + 1 + 3 nu/xi0."""
    return inputs.get("mass", 0.0) + 1.0 + 3.0 * ratio


def _condition(diagonal: float, csw: float) -> float:
    """Of a clover block; infinite where the bound on its smallest eigenvalue says nothing: no number could be called wrong."""
    least = diagonal - 3.0 * csw
    return (diagonal + 3.0 * csw) / least if least > 0 else math.inf


def loop_path(links: int) -> int:
    """K of the colour trace of a product of `links` gauge links, divided by 3."""
    return links + 11 * (links - 1) + 3


def fused_sum(ratio: float) -> float:
    """Additions of a row of fused blocks, weighted as squares: the sum over j > 1 of |partial sum of j terms|^2 / |whole sum|^2.

    A term of T has mean square 1 in common units, one of Z, Y, X ratio^2; T comes first.
    """
    squares = [1.0] * _FUSED_AXIS + [ratio**2] * (3 * _FUSED_AXIS)
    partial, grown = 0.0, []
    for square in squares:
        partial += square
        grown.append(partial)
    return sum(grown[1:]) / partial


def dirac(operator: str, inputs: Mapping[str, float], ratio: float = 1.0, *, fused: bool = False) -> tuple[float, float]:
    """(K, S) of one output component. inputs: mass, csw, mu as far as the operator has them; ratio: nu/xi0."""
    family = _family(operator)
    diagonal = 0.0 if family == "wilson_hop" else abs(diagonal_of(inputs, ratio))
    hop = 2.0 * math.sqrt(3.0) * _hop_norm(ratio)
    csw, mu = abs(inputs.get("csw", 0.0)), abs(inputs.get("mu", 0.0))
    path, scale = float(_FUSED_OTHERS + 4 * _FUSED_AXIS - 1 if fused else _HOP_PATH), diagonal + hop
    if family == "twisted":
        path, scale = path + 2, scale + mu
    elif family == "clover":
        path, scale = float(_CLOVER_PATH), scale + 27.0 * csw
    elif family == "wilson_schur":
        path, scale = 2.0 * _HOP_PATH + 3, diagonal + hop**2 / diagonal
    elif family == "clover_schur":
        least = diagonal - 3.0 * csw
        path = 2.0 * _HOP_PATH + (_INVERSE_PATH + _CLOVER_PATH) * _condition(diagonal, csw)
        scale = diagonal + 27.0 * csw + (hop**2 / least if least > 0 else 0.0)
    if operator.endswith("_normal"):
        path, scale = 2 * path, scale * scale
    return path, scale * _AMPLITUDE


def _family(operator: str) -> str:
    return operator.removesuffix("_dagger").removesuffix("_normal")


def _likely_path(operator: str, inputs: Mapping[str, float], ratio: float, fused: bool) -> float:
    """K of roundings that add up like their squares."""
    if fused:
        return (2 if operator.endswith("_normal") else 1) * (_FUSED_OTHERS + fused_sum(ratio))
    return dirac(operator, inputs, ratio)[0]


def dirac_likely(operator: str, inputs: Mapping[str, float], ratio: float = 1.0, *, fused: bool = False) -> tuple[float, float]:
    """(8 sqrt(K), R): the same where roundings are taken to be independent. R: root mean square of one output component."""
    path = _likely_path(operator, inputs, ratio, fused)
    family = _family(operator)
    diagonal = 0.0 if family == "wilson_hop" else diagonal_of(inputs, ratio)
    csw, mu, hop = inputs.get("csw", 0.0), inputs.get("mu", 0.0), 1.0 + 3.0 * ratio**2
    square = diagonal**2 + 0.2 * csw**2 + mu**2
    square += hop**2 / (diagonal - 3.0 * csw) ** 2 if family.endswith("_schur") else hop
    if family == "clover_schur":
        condition = _condition(diagonal, abs(csw))
        path += (2 if operator.endswith("_normal") else 1) * (_INVERSE_PATH + _CLOVER_PATH) * condition * (condition - 1)
    size = square if operator.endswith("_normal") else math.sqrt(square)
    return _DEVIATIONS * math.sqrt(path), size * math.sqrt(_MEAN_SQUARE)


def stored_path(operator: str) -> float:
    """Roundings of storage on a path from an input of a Dirac operator to its output."""
    sweeps = (2 if "_schur" in operator else 1) * (2 if operator.endswith("_normal") else 1)
    return 2.0 * sweeps + 1.0


def chunk(
    operator: str, lattice: Sequence[int], inputs: Mapping[str, float], iterations: int, ratio: float = 1.0, *,
    fused: bool = False,
) -> tuple[float, float]:  # fmt: skip
    """(8 sqrt(k K) times the amplification, scale) of one component of the solution after `iterations` steps."""
    normal = OPERATORS[operator]["solves"]
    path = _likely_path(normal, inputs, ratio, fused)
    _, largest = dirac(normal.removesuffix("_normal"), inputs, ratio)
    diagonal, hop = diagonal_of(inputs, ratio), _hop_norm(ratio)
    least = diagonal - hop if normal == "wilson_normal" else diagonal - hop**2 / diagonal
    # The longest chain of additions of a sum of two stages, twice, and the four updates of an iteration.
    sums = 2.0 * (lattice[2] * lattice[3] + 24 * lattice[0] * lattice[1]) + 8
    amplification = (largest / _AMPLITUDE / least) ** 2
    return _DEVIATIONS * math.sqrt(iterations * (path + sums)) * amplification, math.sqrt(_MEAN_SQUARE) / least**2


def solver_bound(operator: str, dtype: str, storage: str, error: tuple[float, float, float] | None) -> tuple[float, float]:
    """(bound, size) of one component of a solver's iterate. error: what the judge found for this very run, in units of u and
    of the storage's u_s (counted only where it is another), and the root mean square of a component, to which the bound is
    relative.

    Errors: UsageError where it is absent.
    """
    if error is None:
        raise UsageError(f"operator {operator}: the bound of its witness is the judge's to find", expected="error=", found="none")
    stored = error[1] * UNIT[storage] if storage != dtype else 0.0
    return (error[0] * (UNIT[dtype] + UNIT["float64"]) + stored + 64 * UNIT["float64"]) / error[2], error[2]


def observable(operator: str, lattice: Sequence[int], inputs: Mapping[str, float]) -> tuple[float, float]:
    """(K, S) of the results of an observable."""
    sites = math.prod(lattice)
    if operator == "plaquette":
        return loop_path(4), 1.0
    if operator == "wilson_action":
        return loop_path(4) + 2, 6.0 * sites * abs(inputs["beta"])
    if operator == "polyakov_loop":
        return loop_path(max(lattice)), 1.0
    if operator == "topological_charge":
        return _TRACE_F2_PATH, sites * 9.0 / (4.0 * math.pi**2)
    return _TRACE_F2_PATH, 18.0


def gauge_map(operator: str, inputs: Mapping[str, float]) -> tuple[float, float]:
    """(K, S) of one component of the links a gauge map returns."""
    if operator == "stout_smear":
        return abs(inputs["rho"]) * 366 + 120, 1.0
    return 3 * (2 * abs(inputs["epsilon"]) * 366 + 120) * 1.5, 1.0


def bound_and_scale(
    kind: str, operator: str, lattice: Sequence[int], inputs: Mapping[str, float], dtype: str, iterations: int = 0,
    ratio: float = 1.0, *, fused: bool = False,
) -> tuple[float, float]:  # fmt: skip
    """(bound on the relative error, S). The bound is K (u + 2^-53), for observables with the sum over sites in double."""
    u = UNIT[dtype] + UNIT["float64"]
    if kind == "dirac" and dtype == "bfloat16":
        return likely_bound_and_scale(kind, operator, lattice, inputs, dtype, iterations, ratio, fused=fused)
    if kind == "chunk":
        path, scale = chunk(operator, lattice, inputs, iterations, ratio, fused=fused)
        return path * u, scale
    if kind == "dirac":
        path, scale = dirac(operator, inputs, ratio, fused=fused)
        return path * u + 64 * UNIT["float64"], scale
    if kind == "observable":
        path, scale = observable(operator, lattice, inputs)
        return path * u + 2 * math.prod(lattice) * UNIT["float64"], scale
    path, scale = gauge_map(operator, inputs)
    return path * u + 64 * UNIT["float64"], scale


def likely_bound_and_scale(
    kind: str, operator: str, lattice: Sequence[int], inputs: Mapping[str, float], dtype: str, iterations: int, ratio: float,
    storage: str | None = None, *, fused: bool = False,
) -> tuple[float, float]:  # fmt: skip
    """What a witness is compared with: for Dirac operators the likely bound, else `bound_and_scale`."""
    if kind != "dirac":
        return bound_and_scale(kind, operator, lattice, inputs, dtype, iterations, ratio, fused=fused)
    path, scale = dirac_likely(operator, inputs, ratio, fused=fused)
    stored = _DEVIATIONS * math.sqrt(stored_path(operator)) * UNIT[storage] if storage not in (None, dtype) else 0.0
    return path * (UNIT[dtype] + UNIT["float64"]) + stored + 64 * UNIT["float64"], scale
