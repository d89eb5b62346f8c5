"""Dirac artifacts under the clock: the bare entry point on packed vectors, next to torch eager in the same rounds.

Owns the fields and inputs that every row of a benchmark uses, and the torch module as peer. What a row says is the business of
rows.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from lqcd_aot.bench.timing import Timing, time_call, time_pair
from lqcd_runtime.geometry import volume
from lqcd_runtime.signature import OPERATORS, Spec

if TYPE_CHECKING:
    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.engines.cpu import CpuArtifact
    from lqcd_runtime.operator import DiracOperator

INPUTS = {"mass": 0.1, "csw": 1.0, "mu": 0.2}
PEER_SITES = 16**4
EAGER = "torch eager"


class Measured(NamedTuple):
    """timing: of one application or iteration of all right-hand sides; artifact: what ran; eager: torch's, where it was timed;
    solve: of a solver, to a tight residual (solvers.py)."""

    timing: Timing
    artifact: CpuArtifact
    eager: Timing | None = None
    solve: dict[str, Any] | None = None


def measure_operator(bundle: Bundle, spec: Spec, *, threads: int, eager: bool, seconds: float) -> Measured:
    """Time a spec of kind dirac. eager: torch too, in interleaved rounds (one right-hand side, up to 16^4). Errors: NoVariant."""
    operator = operator_of(bundle, spec, threads)
    mine = operator.resident(spinors(spec))
    other = eager_call(spec, threads) if eager and spec.batch == 1 and spec.shards == 1 else None
    if other is None:
        return Measured(time_call(mine, seconds=seconds), operator.artifact)
    own, peer = time_pair(mine, other, seconds=seconds)
    return Measured(own, operator.artifact, peer)


def inputs_of(operator: str) -> dict[str, float]:
    """mass, csw, mu, as far as an operator takes them."""
    return {name: INPUTS[name] for name in OPERATORS[operator]["inputs"]}


def operator_of(bundle: Bundle, spec: Spec, threads: int, gauge: Any = None) -> DiracOperator:
    """The operator of exactly this spec, storage included, antiperiodic; on random links where no gauge is given."""
    from lqcd_runtime.inputs import resolve
    from lqcd_runtime.operator_choice import Running, operator

    inputs = resolve(spec.operator, t_boundary=-1, **inputs_of(spec.operator))  # type: ignore[arg-type]
    return operator(bundle, spec, links_for(spec.lattice) if gauge is None else gauge, inputs, Running(threads))


@lru_cache(maxsize=4)
def links_for(lattice: tuple[int, ...]) -> Any:
    """Random SU(3) links, the same for every row of a lattice."""
    from lqcd_runtime.fields import random_links

    return random_links(lattice, 1)


@lru_cache(maxsize=1)
def _columns(lattice: tuple[int, ...], batch: int) -> Any:
    import numpy as np

    from lqcd_runtime.fields import random_spinor

    return np.stack([random_spinor(lattice, 1, column) for column in range(batch)])


def spinors(spec: Spec) -> Any:
    """Random right-hand sides in the precision of the spec: complex [batch,T,Z,Y,X,4,3]."""
    import numpy as np

    return _columns(spec.lattice, spec.batch).astype(np.complex64 if spec.dtype == "float32" else np.complex128)


def eager_call(spec: Spec, threads: int) -> Callable[[], object] | None:
    """The torch module of the same operator in the same precision, in eager mode; None above 16^4, where it takes seconds."""
    if volume(spec.lattice) > PEER_SITES:
        return None
    import torch

    from lqcd_aot.dirac.judge import family_and_form, module_for

    torch.set_num_threads(threads)
    dtype = torch.complex64 if spec.dtype == "float32" else torch.complex128
    links = torch.as_tensor(links_for(spec.lattice)).to(dtype)
    psi = torch.as_tensor(spinors(spec)[0]).to(dtype)
    form = getattr(module_for(spec.operator, t_boundary=-1, **inputs_of(spec.operator)), family_and_form(spec.operator)[1])

    def call() -> object:
        with torch.inference_mode():
            return form(psi, links)

    return call
