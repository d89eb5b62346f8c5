"""Status codes of libnrt, with what each means to a user. Owns the table and `NeuronError`.

Names and numbers from AWS's header nrt_status.h; the advice is from AWS's troubleshooting pages.
"""

from __future__ import annotations

from lqcd_runtime.errors import EngineError

SUCCESS = 0

# code: (name without NRT_, what it means, what to do or "")
STATUS: dict[int, tuple[str, str, str]] = {
    1: ("FAILURE", "libnrt failed without saying why", "read its lines on standard error; NEURON_RT_LOG_LEVEL=INFO shows more"),
    2: ("INVALID", "the NEFF, a tensor name or a size is not accepted", "build the artifact again for this machine's target"),
    3: ("INVALID_HANDLE", "a handle is not one of libnrt's", ""),
    4: ("RESOURCE", "the device has not enough memory or queues", "use a smaller batch, or shards"),
    5: ("TIMEOUT", "the execution took too long", "NEURON_RT_EXEC_TIMEOUT=600 allows more seconds"),
    6: ("HW_ERROR", "the hardware failed, or the NEFF is of another chip", "compare its target with `lqcd-aot devices`"),
    7: ("QUEUE_FULL", "too many executions are waiting", ""),
    9: ("LOAD_NOT_ENOUGH_NC", "no NeuronCore is free", "end the process that holds them, or set NEURON_RT_VISIBLE_CORES"),
    10: ("UNSUPPORTED_NEFF_VERSION", "the NEFF is newer than this libnrt", "update aws-neuronx-runtime-lib"),
    11: ("FAIL_HOST_MEM_ALLOC", "the host has not enough memory", ""),
    13: ("UNINITIALIZED", "libnrt is not initialised", ""),
    14: ("CLOSED", "libnrt was closed", "start a new process"),
    15: ("QUEUE_EMPTY", "no execution is waiting", ""),
    101: (
        "EXEC_UNIT_UNRECOVERABLE",
        "a NeuronCore is in a state that it does not leave",
        "reset the device or replace the instance",
    ),
    1002: ("EXEC_BAD_INPUT", "the inputs are not those of the NEFF", ""),
    1003: ("EXEC_COMPLETED_WITH_NUM_ERR", "a result is not a finite number", "look at the input fields"),
    1004: ("EXEC_COMPLETED_WITH_ERR", "the execution ended with errors", "read libnrt's lines on standard error"),
    1005: ("EXEC_NC_BUSY", "the NeuronCore is held by another process", "end it, or set NEURON_RT_VISIBLE_CORES"),
    1006: ("EXEC_OOB", "the program read or wrote out of bounds", ""),
    1100: ("COLL_PENDING", "a collective operation is not finished", ""),
    1200: ("EXEC_HW_ERR_COLLECTIVES", "the hardware failed in a collective operation", ""),
    1201: ("HBM_UE", "uncorrectable memory error of the device", "replace the instance"),
    1202: ("NC_UE", "uncorrectable error of the NeuronCore's memory", "replace the instance"),
    1203: ("DMA_ABORT", "a transfer was aborted", "reset the device"),
    1204: ("SW_NQ_OVERFLOW", "the notification queue overflowed", ""),
    1205: ("REPAIRABLE_HBM_UE", "memory error of the device that a reset repairs", "reset the device"),
    1206: ("NETWORK_PROXY_FAILURE", "the network proxy failed", ""),
}


class NeuronError(EngineError):
    """A call of libnrt did not succeed. call: its name; status: its code (or None where nrtpy gave none)."""

    def __init__(self, call: str, status: int | None, subject: str = "", **facts: object) -> None:
        self.call, self.status = call, status
        name, meaning, advice = STATUS.get(
            status or 0, (f"status {status}", "libnrt answered a code this release does not know", "")
        )
        facts.setdefault("hint", advice or None)
        super().__init__(f"{subject or 'libnrt'}: {meaning}", found=f"{call} answered NRT_{name} ({status})", **facts)  # type: ignore[arg-type]
