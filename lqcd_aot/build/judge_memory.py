"""Whether this machine can hold what judging and replaying one witness needs, asked before anything is allocated.

A lattice of 64^4 sites has 9 GiB of links alone: without this question a build would end in a MemoryError, or be killed. What is
too large stays unchecked and says so; nothing is judged on a smaller lattice in its place. Owns the arithmetic; the judge is
witness.py, the replay replay_child.py.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from lqcd_runtime.geometry import volume
from lqcd_runtime.memory_use import available, replay_bytes
from lqcd_runtime.witness import question

if TYPE_CHECKING:
    from lqcd_runtime.signature import Spec
    from lqcd_runtime.witness import Question

# Bytes a site at the peak of the judge, links and their making included. A complex128 spinor has 192 bytes a site, links 576.
# Peaks that were measured with 16^4 sites, in KB: Wilson, twisted and their solvers 3 to 4.3; clover 9.4, its Schur form 14.2;
# loops 4.3, field strength 7; gauge maps 13.6 (tests/contracts/test_judge_memory.py measures some of them again).
_PEAKS = (
    ("clover_schur", 16_000), ("clover", 11_000), ("topological_charge", 8_500), ("energy_density", 8_500),
    ("wilson_flow_step", 16_000), ("stout_smear", 16_000),
)  # fmt: skip
_PEAK = 5_500
# What the judge keeps while the child replays: the links.
_KEPT = 576
GIB = 2**30


def judge_bytes(asked: Question) -> int:
    """Bytes of memory at the peak of judging and replaying a question, estimated from above."""
    peak = next((size for word, size in _PEAKS if asked.operator.startswith(word)), _PEAK)
    sites = volume(asked.lattice)
    return max(sites * peak, sites * _KEPT + replay_bytes(asked))


def answer_bytes(asked: Question) -> int:
    """Bytes of the whole answer on disk."""
    return volume(asked.lattice) * asked.columns_answered * (576 if asked.kind == "gauge_map" else 192)


def too_large(spec: Spec) -> str | None:
    """None where this machine can judge a spec's witness, else one sentence with the numbers."""
    asked = question(spec)
    needed, free = judge_bytes(asked), available()
    if free is not None and needed > free:
        return f"too large for the judge (needs {needed / GIB:.1f} GiB, this machine has {free / GIB:.1f} GiB)"
    folder = tempfile.gettempdir()
    needed, room = answer_bytes(asked), _room(folder)
    if needed > room:
        return f"too large for the judge (needs {needed / GIB:.1f} GiB in {folder}, which has {room / GIB:.1f} GiB)"
    return None


def ran_out(error: Exception) -> bool:
    """Whether an exception of the judge says that memory was short after all: NumPy's MemoryError, or torch's RuntimeError."""
    return isinstance(error, MemoryError) or "not enough memory" in str(error)


def _room(folder: str) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
