"""What an artifact is asked: input fields, scalars, phases and anisotropy, all from one seed.

Owns the questions only; `witness_rows` says what is stored of an answer, `witness` compares.

No input has a special value (no phase of 1 or -1, no round mass, hop factors other than 1), and every operator and lattice has
its own: an artifact that ignores an input, or takes a constant for it, answers another question. On all slices but the last of a
direction the phase is 1, so the links without a phase are asked about by the same question.
"""

from __future__ import annotations

import cmath
from functools import lru_cache

from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.geometry import volume
from lqcd_runtime.signature import HALVES, OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from lqcd_runtime.signature import Spec

SEED = 20261130
# Each number lies somewhere in its range. csw near 1/2 keeps the clover blocks of random links well conditioned, so that the
# bound of their inverse stays tight.
RANGES = {
    "mass": (0.05, 0.25),
    "csw": (0.4, 0.6),
    "mu": (0.15, 0.35),
    "beta": (5.0, 6.5),
    "epsilon": (0.015, 0.025),
    "rho": (0.08, 0.12),
    "xi0": (1.2, 1.4),
    "nu": (0.85, 0.95),
}
# A heavy quark bounds the condition number of M^dag M for any links, and so what rounding can do to the iterates of CG. A
# solver's bound comes from the judge's own run: there rounding grows slowly from iteration to iteration. In single precision a
# second step of BiCGStab, whose scalars divide small numbers, could not be told from a wrong one.
HEAVY = {"chunk": (4.0, 4.3), "solver": (2.0, 2.2)}
SOLVER_ITERATIONS = {("cg", "float32"): 2, ("cg", "float64"): 2, ("bicgstab", "float32"): 1, ("bicgstab", "float64"): 2}
# One angle in each quadrant.
ANGLES = ((0.4, 1.2), (-1.2, -0.4), (1.9, 2.7), (-2.7, -1.9))
ISOTROPIC = (1.0, 1.0)
# Blocks of components whose sums are stored of a column (see witness_rows): fewer of a large batch, which keeps records small.
BLOCKS, BLOCKS_OF_MANY, MANY = 64, 12, 16


class Question:
    """What an artifact is asked. Depends on operator, lattice, batch and baked constants only (of a solver on the dtype too), so
    one judged answer serves every dtype, storage, target, fused or not, sharded or not; `key` says which specs share it.

    inputs: by name; phases: of T, Z, Y, X; anisotropy: (xi0, nu); blocks: 0 in the stored form of version 1.
    """

    def __init__(
        self, operator: str, lattice: tuple[int, int, int, int], batch: int, inputs: dict[str, float], seed: int,
        iterations: int, phases: tuple[complex, ...], anisotropy: tuple[float, float],
    ) -> None:  # fmt: skip
        self.operator, self.lattice, self.batch, self.inputs, self.seed = operator, lattice, batch, inputs, seed
        self.iterations, self.phases, self.anisotropy = iterations, phases, anisotropy
        self.kind: str = OPERATORS[operator]["kind"]
        self.blocks = min(BLOCKS if batch <= MANY else BLOCKS_OF_MANY, volume(lattice))

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for questions that differ at most in their batch: column j is the same field in all of them."""
        inputs = tuple(sorted(self.inputs.items()))
        return (self.operator, self.lattice, inputs, self.phases, self.anisotropy, self.seed, self.iterations)

    @property
    def columns_answered(self) -> int:
        """Fields in the answer: the batch of dirac, chunk and solver; one array of links of a gauge map; else none."""
        if self.kind in ("dirac", "chunk", "solver"):
            return self.batch
        return 1 if self.kind == "gauge_map" else 0

    @property
    def ratio(self) -> float:
        """nu / xi0, the factor of the spatial hops."""
        return self.anisotropy[1] / self.anisotropy[0]

    def links(self) -> NDArray[np.complex128]:
        """The input links, complex128 [T,Z,Y,X,4,3,3]: `fields.random_links`."""
        return _links(self.lattice, self.seed).copy()

    def columns(self) -> Iterator[NDArray[np.complex128]]:
        """The input spinors, complex128 [T,Z,Y,X,4,3], `batch` of them; zero on odd sites for even-odd operators."""
        from lqcd_runtime.fields import random_spinor
        from lqcd_runtime.geometry import parity

        for column in range(self.batch):
            psi = random_spinor(self.lattice, self.seed, column)
            if self.kind != "solver" and OPERATORS[self.operator].get("parity") == "even":
                psi[parity(self.lattice) == 1] = 0.0
            yield psi


@lru_cache(maxsize=1)
def _links(lattice: tuple[int, int, int, int], seed: int) -> NDArray[np.complex128]:
    """Making them takes longer than most replays; a bundle asks the same lattice many times in a row."""
    from lqcd_runtime.fields import random_links

    return random_links(lattice, seed)


def question(spec: Spec, seed: int = SEED) -> Question:
    """The question put to every artifact of a spec. Baked constants stand in the place of the usual scalars."""
    lattice = "x".join(map(str, spec.lattice))

    def between(name: str, ends: tuple[float, float]) -> float:
        fraction = int(sha256_hex(f"{seed} {spec.operator} {lattice} {name}".encode())[:13], 16) / 16.0**13
        return ends[0] + (ends[1] - ends[0]) * fraction

    ranges = {**RANGES, "mass": HEAVY.get(spec.kind, RANGES["mass"])}
    inputs = {name: between(name, ranges[name]) for name in OPERATORS[spec.operator]["inputs"]} | dict(spec.baked)
    phases = tuple(cmath.rect(1.0, between(f"phase {axis}", ends)) for axis, ends in zip("TZYX", ANGLES, strict=True))
    # A baked mass is compiled into the isotropic diagonal 4 + m.
    anisotropy = ISOTROPIC if "mass" in dict(spec.baked) else (between("xi0", RANGES["xi0"]), between("nu", RANGES["nu"]))
    iterations = spec.iterations
    if spec.kind == "solver":
        # Halves lose a digit an iteration: after one the answer still says something.
        stored = spec.storage in HALVES
        iterations = 1 if stored else SOLVER_ITERATIONS[OPERATORS[spec.operator]["method"], spec.dtype]
    return Question(spec.operator, spec.lattice, spec.batch, inputs, seed, iterations, phases, anisotropy)
