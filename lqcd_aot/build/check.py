"""A fresh artifact against its witness: judged, replayed in a child process, or said why not.

Owns the decision whether this machine can replay, and which builder artifact a fused operator is replayed with. The judge is
witness.py, the child replay_child.py.
"""

from __future__ import annotations

import importlib.util
import threading
from typing import Any, NamedTuple, Protocol

from lqcd_aot.build.judge_memory import ran_out, too_large
from lqcd_aot.build.replay_child import ReplayProcess
from lqcd_aot.build.witness import Judge, load_judges
from lqcd_aot.store import Record, Store
from lqcd_runtime.errors import CorruptError, WitnessMismatch
from lqcd_runtime.manifest import entry_dict
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import NEURON_TARGETS, SIM_TARGET, this_host

PASSED = "passed"
# A witness whose bound is the size of an answer agrees with anything (solvers in bfloat16).
REFUTES_NOTHING = 1.0


class Checked(NamedTuple):
    """witness: its stored form or None; status: "passed" or "unchecked: <reason>"; text: one sentence for people."""

    witness: dict[str, Any] | None
    status: str
    text: str


class Checker(Protocol):
    """What `build` asks of every artifact before it is published."""

    def check(self, spec: Spec, record: Record, code: bytes, timeout: float) -> Checked:
        """The witness and its outcome, for a record that has none yet. Errors: WitnessMismatch; CompileError ("interrupted")."""

    def interrupt(self) -> None:
        """The build was stopped: end what a check waits for. May be called again and again."""

    def close(self) -> None:
        """The build is over."""


class WitnessChecker:
    """Judges and replays, for any number of threads; the replays go through one child, one after the other.

    Made when something is to be built, not before.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._child = ReplayProcess()
        self._judge = Judge()
        self._lock = threading.Lock()
        # Loading torch takes seconds; it happens while the first compiles run.
        threading.Thread(target=load_judges, daemon=True).start()

    def check(self, spec: Spec, record: Record, code: bytes, timeout: float) -> Checked:
        """See `Checker`."""
        name = f"{spec.name}@{record['target']}"
        short = too_large(spec)
        if short is not None:
            return Checked(None, f"unchecked: {short}", short)
        try:
            witness = self._judge.make_witness(spec)
        except (MemoryError, RuntimeError) as error:
            if not ran_out(error):
                raise
            short = "too large for the judge (memory ran out on this machine)"
            return Checked(None, f"unchecked: {short}", short)
        refusal = cannot_replay(record["target"])
        if refusal is not None:
            return Checked(witness, f"unchecked: {refusal}", refusal)
        builder = self._builder(spec, record["target"]) if spec.fused else None
        if spec.fused and builder is None:
            reason = f"no {builder_spec(spec).name}@{record['target']} in the store that makes its blocks"
            return Checked(witness, f"unchecked: {reason}", reason)
        entry = {**entry_dict(record), "witness": witness, "witness_status": PASSED}
        with self._judge.whole(spec) as answer, self._lock:
            replayed = self._child.replay(entry, code, builder, answer, timeout=timeout)
        if not replayed.passed:
            raise WitnessMismatch(
                f"artifact {name}: does not agree with its witness",
                found=replayed.text,
                hint="this machine code is wrong here and was not published; report it with `lqcd-aot doctor`",
            )
        if spec.kind == "builder":
            return Checked(witness, "unchecked: judged by the fused operators that use its blocks", replayed.text)
        if spec.kind in ("dirac", "chunk", "solver") and float.fromhex(witness["bound"]) >= REFUTES_NOTHING:
            reason = f"rounding in {spec.storage} may be as large as the answer"
            return Checked(witness, f"unchecked: {reason}", f"{replayed.text}: {reason}")
        return Checked(witness, PASSED, replayed.text)

    def interrupt(self) -> None:
        """Kill the child process, so that a replay under way ends."""
        self._child.interrupt()

    def close(self) -> None:
        """End the child process, forget the judged answers."""
        self._child.close()
        self._judge.close()

    def _builder(self, spec: Spec, target: str) -> tuple[dict[str, Any], bytes] | None:
        record = self._store.records_of_spec(builder_spec(spec).key).get(target)
        if record is None:
            return None
        try:
            return entry_dict(record), self._store.read_blob(record["outputs"]["code"]["sha256"])
        except CorruptError:
            return None


def cannot_replay(target: str) -> str | None:
    """None where this machine can run artifacts of a target, else one sentence why not."""
    if target == SIM_TARGET:
        absent = importlib.util.find_spec("jaxlib") is None
        return "needs jaxlib, which runs the simulator; pip install 'lqcd-aot[sim]'" if absent else None
    refusal = this_host().refusal(target)
    return f"needs a {target} device" if refusal is not None and target in NEURON_TARGETS else refusal


def builder_spec(spec: Spec) -> Spec:
    """The spec of the artifact that makes the blocks of a fused operator: same lattice, dtype, slabs, colours."""
    return Spec("wilson_blocks", spec.lattice, spec.dtype, storage=spec.storage, shards=spec.shards, nc=spec.nc)
