"""What a Wilson-type operator is given beside fields: mass or kappa, boundary phases, anisotropy. Each is resolved once, here.

mass or kappa   M = (4+m) + hop always; kappa = 1/(8+2m) is another spelling of m (mass normalisation)
t_boundary      +1 periodic, -1 antiperiodic: factor of the T-link of the last time slice, for fermions only
phases          four complex numbers of modulus 1 (T,Z,Y,X) instead of t_boundary
anisotropy      xi0, (xi0, nu) or {"xi0":, "nu":}: diagonal m + 1 + 3 nu/xi0, spatial hops times nu/xi0 (Chroma)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lqcd_runtime.errors import UsageError
from lqcd_runtime.scalars import number, real

Anisotropy = float | Sequence[float] | Mapping[str, float] | None
ISOTROPIC = (1.0, 1.0, 1.0, 1.0)


def finite(value: float, what: str) -> float:
    """`value` as a float. Errors: UsageError for NaN, infinity or what is no number."""
    return real(value, f"{what} {value!r}")


def resolve_mass(mass: float | None, kappa: float | None) -> float:
    """The bare mass from exactly one of mass and kappa = 1/(8+2m). Errors: UsageError for none, both or kappa = 0."""
    if (mass is None) == (kappa is None):
        raise UsageError(
            "operator: needs exactly one of mass and kappa", expected="mass=... or kappa=...", found=f"mass={mass}, kappa={kappa}"
        )
    if mass is not None:
        return finite(mass, "mass")
    value = finite(kappa if kappa is not None else math.nan, "kappa")
    if value == 0:
        raise UsageError("kappa 0: has no mass", expected="kappa = 1/(8+2m), not 0", found=value)
    return 1 / (2 * value) - 4


def resolve_phases(t_boundary: int = 1, phases: Sequence[complex] | None = None) -> tuple[complex, ...]:
    """Four phases, T, Z, Y, X. Errors: UsageError for both spellings at once, a t_boundary other than +-1, or |phase| != 1."""
    sign = getattr(t_boundary, "value", t_boundary)
    if isinstance(sign, (str, bool)) or real(sign, "t_boundary") not in (1.0, -1.0):
        raise UsageError(
            f"t_boundary {t_boundary!r}: is not known", expected="1 (periodic) or -1 (antiperiodic)", found=t_boundary
        )
    if phases is None:
        return (complex(sign), 1 + 0j, 1 + 0j, 1 + 0j)
    if sign != 1:
        raise UsageError("boundary: is given twice", expected="t_boundary or phases", found=f"t_boundary={sign}, phases={phases}")
    if isinstance(phases, (str, bytes)) or not hasattr(phases, "__iter__"):
        raise UsageError("phases: are not four numbers of modulus 1", expected="(T, Z, Y, X), |phase| = 1", found=repr(phases))
    values = tuple(number(p, "phases") for p in phases)
    if len(values) != 4 or not all(abs(abs(p) - 1) < 1e-12 for p in values):
        raise UsageError("phases: are not four numbers of modulus 1", expected="(T, Z, Y, X), |phase| = 1", found=phases)
    return values


def resolve_anisotropy(anisotropy: Anisotropy) -> tuple[tuple[float, ...], float]:
    """(hop factor of T, Z, Y, X; constant c of the diagonal m + c): isotropic ((1,1,1,1), 4), else ((1,r,r,r), 1+3r), r = nu/xi0.

    Source: Chroma's AnisoParam. Errors: UsageError for another form, or xi0 <= 0 or nu <= 0.
    """
    if anisotropy is None:
        return ISOTROPIC, 4.0
    nu = 1.0
    if isinstance(anisotropy, Mapping):
        unknown = sorted(set(anisotropy) - {"xi0", "nu"})
        if unknown or "xi0" not in anisotropy:
            raise UsageError("anisotropy: has unknown or missing words", expected="xi0, nu", found=sorted(anisotropy))
        xi0, nu = anisotropy["xi0"], anisotropy.get("nu", 1.0)
    elif not isinstance(anisotropy, (tuple, list)):
        xi0 = anisotropy  # type: ignore[assignment]
    elif len(anisotropy) == 2:
        xi0, nu = anisotropy
    else:
        raise UsageError("anisotropy: is not understood", expected="xi0, (xi0, nu) or a mapping", found=repr(anisotropy))
    xi0, nu = finite(xi0, "xi0"), finite(nu, "nu")
    if xi0 <= 0 or nu <= 0:
        raise UsageError("anisotropy: must be positive", expected="xi0 > 0, nu > 0", found=f"xi0={xi0}, nu={nu}")
    ratio = nu / xi0
    return (1.0, ratio, ratio, ratio), 1 + 3 * ratio
