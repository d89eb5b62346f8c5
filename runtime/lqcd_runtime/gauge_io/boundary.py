"""Fermion boundary signs: whether they are multiplied into the links of a file, and what a header states of the boundary.

A gauge field is periodic; antiperiodic fermions see a sign -1 on the links that leave the last slice of a direction. Programs
apply that sign in the operator, and so does this one (`t_boundary`); some write links that hold it already. det(-U) = -det U
for 3x3, so determinants tell the two apart, and a sign counted twice or not at all can be refused.

Owns that decision and the words of `load_gauge(boundary=)`. Knows no file format.
Source: the NERSC reader of Grid, which reports BOUNDARY_1..4 and leaves the links as they are.
"""

from __future__ import annotations

import numpy as np

from lqcd_runtime.conventions import AXES
from lqcd_runtime.errors import UsageError
from lqcd_runtime.fields import UNITARITY_BOUND, determinant
from lqcd_runtime.signature import suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

PERIODIC, REMOVE = "periodic", "remove_sign"
HINT = f'load_gauge(path, boundary="{REMOVE}"), then t_boundary=-1 for the operator'


class Verdict:
    """faults, warnings: sentences; hint: what to call instead, or None."""

    __slots__ = ("faults", "hint", "warnings")

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.warnings: list[str] = []
        self.hint: str | None = None


def check_word(boundary: str | None) -> None:
    """Errors: UsageError for another word than None, "periodic", "remove_sign"."""
    if boundary not in (None, PERIODIC, REMOVE):
        raise UsageError(
            f"boundary {boundary!r}: is not known{suggest(str(boundary), (PERIODIC, REMOVE))}",
            expected=f'"{PERIODIC}" (links as stored, whatever the file states) or "{REMOVE}"',
        )  # fmt: skip


def settle(
    links: NDArray[np.complex128], stated: Mapping[int, str], boundary: str | None, *, sign_is_visible: bool = True
) -> Verdict:
    """Judge the boundary of links [T,Z,Y,X,4,3,3], and take signs out of them in place.

    stated: direction -> the header's word. boundary: of `load_gauge`. sign_is_visible: False where a third row was computed, so
    that every determinant is 1 by construction and nothing else was compared with what the file states.
    """
    verdict = Verdict()
    signs = _signs(links)
    for mu in signs:
        last_slice(links, mu)[...] *= -1.0
    if signs and boundary != REMOVE:
        axes = ", ".join(AXES[mu] for mu in signs)
        verdict.faults.append(
            f"the links of direction {axes} have determinant -1 on its last slice: a fermion boundary sign is in them"
        )
        verdict.hint = HINT
    elif boundary == REMOVE and not signs:
        verdict.faults.append("no direction has determinants -1 on its last slice: there is no fermion boundary sign to remove")
        verdict.hint = "load_gauge(path)"
    for mu, word in stated.items():
        if boundary != PERIODIC and mu not in signs and word.upper() != "PERIODIC":
            _judge(verdict, f"boundary of direction {AXES[mu]} stated as {word[:40]}", word.upper(), mu, sign_is_visible)
    return verdict


def _judge(verdict: Verdict, what: str, word: str, mu: int, sign_is_visible: bool) -> None:
    if word == "ANTIPERIODIC" and sign_is_visible:
        keyword = "t_boundary=-1" if mu == 0 else "phases="
        verdict.warnings.append(f"{what}: no sign is in the links, so it is the operator's to apply ({keyword})")
        return
    if word == "ANTIPERIODIC":
        what += ": two rows and no plaquette do not tell whether a sign is in the links"
    else:
        what += ": these links are read as periodic ones only"
    verdict.faults.append(what)
    verdict.hint = verdict.hint or f'load_gauge(path, boundary="{PERIODIC}") to use the links as stored, on a periodic lattice'


def _signs(links: NDArray[np.complex128]) -> list[int]:
    """Directions whose links have determinant -1 on the whole last slice and not on the slice before."""
    found = []
    with np.errstate(all="ignore"):
        for mu in range(4):
            last, before = (determinant(last_slice(links, mu, back)) for back in (1, 2))
            if np.all(np.abs(last + 1.0) <= 3 * UNITARITY_BOUND) and np.all(np.abs(before - 1.0) <= 3 * UNITARITY_BOUND):
                found.append(mu)
    return found


def last_slice(links: NDArray[np.complex128], mu: int, back: int = 1) -> NDArray[np.complex128]:
    """A view of the links of direction mu on the last slice of that direction (back = 2: on the one before)."""
    view: NDArray[np.complex128] = np.moveaxis(links, mu, 0)[-back][..., mu, :, :]
    return view
