"""Gauge observables through compiled artifacts: `lqcd_runtime.observe(bundle, gauge, "plaquette")`.

Owns the words a user may ask for and how each is made of an artifact's results. Knows no formula: that is in the
artifact. Never sees a fermion boundary phase.
"""

from __future__ import annotations

from lqcd_runtime.conventions import AXES, PLANES
from lqcd_runtime.errors import UsageError
from lqcd_runtime.operator_choice import lattice_of
from lqcd_runtime.scalars import real
from lqcd_runtime.signature import suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Value = float | complex | dict[str, float] | dict[str, complex]

# word: (operator of the artifact, what it is)
OBSERVABLES = {
    "plaquette": ("plaquette", "mean of Re tr P / 3 over six planes and all sites"),
    "plaquette_planes": ("plaquette", "the same, plane by plane"),
    "wilson_action": ("wilson_action", "gauge action beta sum (1 - Re tr P / 3); needs beta="),
    "polyakov_loop": ("polyakov_loop", "mean of tr of the T-directed loop / 3, complex"),
    "polyakov_loops": ("polyakov_loop", "the same in each direction"),
    "topological_charge": ("topological_charge", "clover definition with traceless field strength, eps_xyzt = +1"),
    "energy_density": ("energy_density", "clover definition, mean over sites"),
}


def observe(
    bundle: Any,
    gauge: Any,
    *names: str,
    beta: float | None = None,
    dtype: str = "float64",
    threads: int | None = None,
    engine: str | None = None,
) -> Any:
    """Measure gauge observables with the artifacts of a bundle.

    bundle: of `lqcd_runtime.open`; gauge: Gauge or complex [T,Z,Y,X,4,3,3]; names: words of OBSERVABLES; beta: for
    wilson_action; dtype: of the artifact's arithmetic; engine: "cpu", "neuron" or "sim" to accept no other.
    Returns the value for one name, {name: value} for several: float, complex, or a dict by plane ("TZ") or direction.
    Errors: UsageError for an unknown word, none at all, or a missing or idle beta; NoVariant where the bundle has no
    artifact for the lattice.
    """
    checked = check_request(names, beta)
    lattice = lattice_of(gauge)
    results: dict[str, Mapping[str, float]] = {}
    for operator in dict.fromkeys(OBSERVABLES[name][0] for name in names):
        inputs = {"beta": checked} if operator == "wilson_action" and checked is not None else {}
        results[operator] = bundle.observable(operator, lattice, dtype, threads=threads, engine=engine)(gauge, **inputs)
    values = {name: _value(name, results[OBSERVABLES[name][0]]) for name in names}
    return values[names[0]] if len(names) == 1 else values


def check_request(names: Sequence[str], beta: float | None, *, beta_spelled: str = "beta=6.0") -> float | None:
    """All of a request that can be known to be wrong without an artifact; beta as a float.

    beta_spelled: how the caller's user gives it. Errors: UsageError for an unknown word, none at all, or a missing, idle or
    unusable beta.
    """
    if not names:
        raise UsageError("observe: no observable is named", expected=", ".join(OBSERVABLES))
    for name in names:
        if name not in OBSERVABLES:
            raise UsageError(f"observable {name!r}: is not known{suggest(name, OBSERVABLES)}", expected=", ".join(OBSERVABLES))
    wants_beta = "wilson_action" in names
    if wants_beta and beta is None:
        raise UsageError("wilson_action: needs beta", hint=beta_spelled)
    if beta is not None and not wants_beta:
        raise UsageError(
            "observe: beta is given but nothing asked for uses it", hint=f"{beta_spelled} with the name wilson_action"
        )
    return None if beta is None else real(beta, "wilson_action: its beta", hint=beta_spelled)


def _value(name: str, results: Mapping[str, float]) -> Value:
    """An observable out of the named results of its artifact."""
    if name.startswith("plaquette"):
        planes = {AXES[a] + AXES[b]: results[f"plane_{AXES[a]}{AXES[b]}"] for a, b in PLANES}
        return planes if name == "plaquette_planes" else sum(planes.values()) / len(planes)
    if name.startswith("polyakov"):
        loops = {axis: complex(results[f"{axis}_re"], results[f"{axis}_im"]) for axis in AXES}
        return loops if name == "polyakov_loops" else loops["T"]
    return results[name]
