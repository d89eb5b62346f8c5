"""One row per (operator, dtype, lattice, batch, fused, threads): seconds, GFLOP/s, GB/s, and the peer in the same run.

Flops by the convention of the field: 1320 per site and hop, 504 per clover term. Bytes are the least an application must move
once spinors are reused perfectly: 4 links of 18 reals per site and hop, 24 reals in and 24 out per right-hand side. A solver's
row is one iteration (solvers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from lqcd_aot.bench.timing import time_call, time_pair
from lqcd_runtime.signature import Spec

if TYPE_CHECKING:
    from lqcd_runtime.bundle import Bundle
    from lqcd_runtime.operator import DiracOperator

INPUTS = {"mass": 0.1, "csw": 1.0, "mu": 0.2}
PEER_SITES = 16**4


def rows(bundle: Bundle, specs: list[Spec], *, threads: int, peer: bool = True, seconds: float = 0.4) -> Iterator[dict[str, Any]]:
    """Measure every spec with the artifacts of a bundle; yields one row as soon as it is measured.

    peer: time torch eager (complex64 or complex128, same threads) in the same rounds. Errors: NoVariant.
    """
    for spec in specs:
        if spec.kind == "solver":
            from lqcd_aot.bench.solvers import row

            yield row(bundle, spec, threads=threads, seconds=seconds)
            continue
        operator = _operator(bundle, spec, threads)
        mine = operator.resident(_spinor(spec))
        other = _eager(spec, threads) if peer and spec.batch == 1 and operator.spec.shards == 1 else None
        if other is None:
            own, torch_time = time_call(mine, seconds=seconds), None
        else:
            own, torch_time = time_pair(mine, other, seconds=seconds)
        yield _row(operator, own.seconds, threads, own, torch_time)


def _row(operator: DiracOperator, seconds: float, threads: int, own: Any, peer: Any) -> dict[str, Any]:
    spec = operator.spec
    return {
        "operator": spec.operator,
        "dtype": spec.dtype,
        "storage": spec.storage,
        "lattice": list(spec.lattice),
        "batch": spec.batch,
        "fused": spec.fused,
        "shards": spec.shards,
        "threads": threads,
        "target": operator.entry.target,
        "seconds": seconds,
        "fastest": own.fastest,
        "slowest": own.slowest,
        "gflops": operator.flops * spec.batch / seconds / 1e9,
        "gbytes_per_s": least_bytes(spec) / seconds / 1e9,
        "peer": None if peer is None else {"name": "torch eager", "seconds": peer.seconds, "ratio": peer.seconds / seconds},
    }


def least_bytes(spec: Spec) -> int:
    """Bytes one application to all right-hand sides must move, with perfect reuse of spinors; two hops for M^dag M."""
    real = 4 if spec.storage == "float32" else 8
    sites = spec.lattice[0] * spec.lattice[1] * spec.lattice[2] * spec.lattice[3]
    hops = 2 if spec.operator.endswith("_normal") else 1
    return hops * sites * real * (4 * 18 + 48 * spec.batch)


def _inputs(operator: str) -> dict[str, float]:
    from lqcd_runtime.signature import OPERATORS

    return {name: INPUTS[name] for name in OPERATORS[operator]["inputs"]}


def _operator(bundle: Bundle, spec: Spec, threads: int) -> DiracOperator:
    from lqcd_runtime.fields import random_links

    return bundle.operator(
        spec.operator, gauge=random_links(spec.lattice, 1), dtype=spec.dtype, batch=spec.batch, fused=spec.fused,
        shards=spec.shards, threads=threads, t_boundary=-1, **_inputs(spec.operator),  # type: ignore[arg-type]
    )  # fmt: skip


def _spinor(spec: Spec) -> Any:
    import numpy as np

    from lqcd_runtime.fields import random_spinor

    dtype = np.complex64 if spec.dtype == "float32" else np.complex128
    return np.stack([random_spinor(spec.lattice, 1, column) for column in range(spec.batch)]).astype(dtype)


def _eager(spec: Spec, threads: int) -> Callable[[], object] | None:
    """The torch module of the same operator in the same precision, in eager mode; None above 16^4, where it takes seconds."""
    if spec.lattice[0] * spec.lattice[1] * spec.lattice[2] * spec.lattice[3] > PEER_SITES:
        return None
    import torch

    from lqcd_aot.dirac.judge import family_and_form, module_for
    from lqcd_runtime.fields import random_links

    torch.set_num_threads(threads)
    dtype = torch.complex64 if spec.dtype == "float32" else torch.complex128
    links = torch.as_tensor(random_links(spec.lattice, 1)).to(dtype)
    psi = torch.as_tensor(_spinor(spec)[0]).to(dtype)
    form = getattr(module_for(spec.operator, t_boundary=-1, **_inputs(spec.operator)), family_and_form(spec.operator)[1])

    def call() -> object:
        with torch.inference_mode():
            return form(psi, links)

    return call
