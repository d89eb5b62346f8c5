"""Run-time inputs of a Dirac operator: mass or kappa, csw, mu, boundary phases, anisotropy -> the numbers an artifact takes.

    diagonal   4 + m, anisotropic m + 1 + 3 nu/xi0          kappa = 1/(8+2m)
    scale      factor of the hop term in T, Z, Y, X: 1, anisotropic (1, r, r, r) with r = nu/xi0
    phase      factor of U_mu on the last slice of direction mu, fermions only: t_boundary = -1 is (-1, 1, 1, 1)

Owns their checks. Every input acts or is refused: csw for an operator without clover term is an error. Knows no artifact.
Source: Chroma's AnisoParam.
"""

from __future__ import annotations

from lqcd_runtime.errors import UsageError
from lqcd_runtime.scalars import number, real
from lqcd_runtime.signature import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Inputs:
    """Checked inputs. Immutable by custom; `for_operator` and `replace` make others."""

    __slots__ = ("nu", "phases", "scalars", "xi0")

    def __init__(self, scalars: dict[str, float], phases: tuple[complex, ...], xi0: float = 1.0, nu: float = 1.0) -> None:
        self.scalars, self.phases, self.xi0, self.nu = scalars, phases, xi0, nu

    @property
    def ratio(self) -> float:
        """nu / xi0."""
        return self.nu / self.xi0

    @property
    def diagonal(self) -> float:
        """4 + m, or m + 1 + 3 nu/xi0; 0 for the bare hop."""
        return self.scalars["mass"] + 1.0 + 3.0 * self.ratio if "mass" in self.scalars else 0.0

    def vector(self) -> list[float]:
        """The 8 doubles of the entry points: diagonal, csw, mu, zeros."""
        return [self.diagonal, self.scalars.get("csw", 0.0), self.scalars.get("mu", 0.0), 0.0, 0.0, 0.0, 0.0, 0.0]

    def scale(self) -> list[float]:
        """Hop factors in T, Z, Y, X."""
        return [1.0, self.ratio, self.ratio, self.ratio]

    def phase(self) -> list[float]:
        """(re, im) of the four phases."""
        return [part for p in self.phases for part in (p.real, p.imag)]

    def for_operator(self, operator: str) -> Inputs:
        """Those of another operator; what it does not have is left out. Errors: UsageError where it needs one more."""
        names = OPERATORS[operator]["inputs"]
        absent = [n for n in names if n not in self.scalars]
        if absent:
            raise UsageError(
                f"operator {operator}: needs {', '.join(absent)}", hint=f"bundle.operator({operator!r}, {absent[0]}=...)"
            )
        return Inputs({n: self.scalars[n] for n in names}, self.phases, self.xi0, self.nu)

    def as_dict(self) -> dict[str, Any]:
        """Everything by name, for reports."""
        return {**self.scalars, "phases": self.phases, "xi0": self.xi0, "nu": self.nu}


def resolve(
    operator: str,
    *,
    mass: float | None = None,
    kappa: float | None = None,
    csw: float | None = None,
    mu: float | None = None,
    t_boundary: int = 1,
    phases: Sequence[complex] | None = None,
    anisotropy: Any = None,
) -> Inputs:
    """Inputs of an operator from what the caller passed.

    anisotropy: xi0, (xi0, nu) or {"xi0":, "nu":}. Errors: UsageError for a missing, surplus, doubled or impossible input.
    """
    names = OPERATORS[operator]["inputs"]
    given = {"mass": mass, "csw": csw, "mu": mu}
    if kappa is not None:
        if mass is not None:
            raise UsageError(f"operator {operator}: mass and kappa are one input", found=f"mass={mass}, kappa={kappa}")
        given["mass"] = _mass_of(real(kappa, "kappa"))
    surplus = [n for n, v in given.items() if v is not None and n not in names]
    absent = [n for n in names if given[n] is None]
    if surplus:
        raise UsageError(f"operator {operator}: has no input {surplus[0]}", expected=", ".join(names) or "none", found=surplus[0])
    if absent:
        word = "mass or kappa" if absent[0] == "mass" else absent[0]
        raise UsageError(f"operator {operator}: needs {word}", hint=f"bundle.operator({operator!r}, {absent[0]}=...)")
    xi0, nu = _anisotropy(anisotropy)
    scalars = {n: real(given[n], n) for n in names}
    return Inputs(scalars, _phases(t_boundary, phases), xi0, nu)


def _mass_of(kappa: float) -> float:
    if kappa == 0:
        raise UsageError("kappa: has no mass", expected="1/(8+2m), not 0", found=kappa)
    return 1.0 / (2.0 * kappa) - 4.0


def _phases(t_boundary: int, phases: Sequence[complex] | None) -> tuple[complex, ...]:
    if isinstance(t_boundary, (str, bool)) or real(t_boundary, "t_boundary") not in (1.0, -1.0):
        raise UsageError("t_boundary: is neither sign", expected="1 (periodic) or -1 (antiperiodic)", found=repr(t_boundary))
    if phases is None:
        return complex(t_boundary), 1 + 0j, 1 + 0j, 1 + 0j
    if t_boundary != 1:
        raise UsageError("t_boundary and phases: are one input", hint="put the sign into phases[0]")
    if isinstance(phases, (str, bytes)) or not hasattr(phases, "__iter__"):
        raise UsageError("phases: are not four numbers of modulus 1", expected="[T, Z, Y, X]", found=repr(phases))
    values = tuple(number(p, "phases") for p in phases)
    if len(values) != 4 or not all(abs(abs(p) - 1.0) <= 1e-12 for p in values):
        raise UsageError("phases: are not four numbers of modulus 1", expected="[T, Z, Y, X]", found=list(phases))
    return values


def _anisotropy(value: Any) -> tuple[float, float]:
    if value is None:
        return 1.0, 1.0
    if hasattr(value, "keys"):
        words: dict[str, Any] = dict(value)
        pair: Sequence[Any] = (words.pop("xi0", None), words.pop("nu", 1.0), *words)
    else:
        pair = tuple(value) if isinstance(value, (tuple, list)) or getattr(value, "ndim", 0) == 1 else (value, 1.0)
    if len(pair) != 2:
        raise UsageError("anisotropy: is not understood", expected='xi0, (xi0, nu) or {"xi0":, "nu":}', found=value)
    xi0, nu = real(pair[0], "xi0"), real(pair[1], "nu")
    if xi0 <= 0 or nu <= 0:
        raise UsageError("anisotropy: must be positive", found=f"xi0={xi0}, nu={nu}")
    return xi0, nu
