"""What a program will take of a NeuronCore: memory, matrix-engine instructions, time. ESTIMATES, never measured on the device.

    instructions   per dot: batch * ceil(K/128) * ceil(M/128) * ceil(N/512), the tile limits of the matrix engine, batch unrolled.
                   Two public compiler logs agree with it, one to the digit; that is a calibration, not a proof.
    vector         every other instruction that computes: ceil(elements / (128 partitions x 512)); a lower bound
    hbm_bytes      parameters and results (an aliased pair counted once) and the peak of intermediates alive at once, without any
                   fusion: an upper bound
    sbuf_bytes     operands and result of the largest single instruction: what would have to sit in SBUF to run it untiled; above
                   the size of SBUF the compiler must tile it (it can)
    seconds        the largest of matrix, vector and memory time at published peaks, plus a call of 1 ms; a lower bound

Limits are those of public compiler messages (NCC_EVRF007, NCC_EXTP003). An estimate warns; it never stops a real compile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lqcd_aot.program.hlo.schema import ELEMENT_BYTES
from lqcd_aot.program.hlo.validate import Instruction, Module, validate

TILE_K, TILE_M, TILE_N, PARTITIONS = 128, 128, 512, 128
PROGRAM_LIMIT = 5_000_000
CALL_SECONDS = 1e-3
GIB = 2**30


@dataclass(frozen=True)
class Core:
    """One NeuronCore, from AWS's architecture pages: chip totals divided by the cores of the chip.

    operator_limit: matrix instructions of one operator; hbm, sbuf: bytes; bandwidth: bytes/s; matrix: multiply-adds/s in
    bfloat16 (float32 runs at a quarter); vector: float32 operations/s.
    """

    operator_limit: int
    hbm: int
    sbuf: int
    bandwidth: float
    matrix: float
    vector: float


_V2 = Core(150_000, 16 * GIB, 24 * 2**20, 410e9, 46e12, 2.3e12)
CORES = {
    "inf2": _V2,
    "trn1": _V2,
    "trn2": Core(300_000, 12 * GIB, 28 * 2**20, 362e9, 40e12, 1.0e12),
    "trn3": Core(300_000, 18 * GIB, 32 * 2**20, 612e9, 42e12, 1.2e12),
}
# A simulated program has no core; it is judged by the smallest.
CORES["sim"] = _V2
FLOAT32_SLOWDOWN = 4


@dataclass(frozen=True)
class Estimate:
    """Numbers of one program on one target; see the module's docstring."""

    target: str
    instructions: int
    largest_operator: int
    vector: int
    hbm_bytes: int
    sbuf_bytes: int
    seconds: float

    @property
    def excesses(self) -> tuple[str, ...]:
        """One sentence per limit that the estimate passes; empty where the program should fit."""
        core, out = CORES[self.target], []
        if self.instructions > PROGRAM_LIMIT:
            out.append(f"{self.instructions:,} matrix instructions, above {PROGRAM_LIMIT:,} per program (NCC_EVRF007)")
        if self.largest_operator > core.operator_limit:
            out.append(
                f"{self.largest_operator:,} matrix instructions in one operator, above {core.operator_limit:,} on {self.target} "
                "(NCC_EXTP003)"
            )
        if self.hbm_bytes > core.hbm:
            out.append(f"{self.hbm_bytes / GIB:.1f} GiB of device memory, above {core.hbm / GIB:.0f} GiB per core")
        return tuple(out)

    @property
    def line(self) -> str:
        """One line for `plan`."""
        sbuf = "tiled" if self.sbuf_bytes > CORES[self.target].sbuf else "whole in SBUF"
        return (
            f"estimate, uncalibrated: {self.instructions:,} matrix and >= {self.vector:,} vector instructions, "
            f"<= {self.hbm_bytes / 2**20:,.1f} MiB of HBM, largest operator {self.sbuf_bytes / 2**20:,.1f} MiB ({sbuf}), "
            f">= {self.seconds * 1e3:.2f} ms a call"
        )


def estimate(hlo: bytes, target: str) -> Estimate:
    """The estimate of canonical HLO bytes on a target of CORES. Errors: InvalidHlo."""
    return estimate_module(validate(hlo), target)


def estimate_module(module: Module, target: str) -> Estimate:
    """The same of a module that has been read."""
    core = CORES[target]
    dots = [(dot_instructions(i), _dot_work(i)) for i in module.instructions if i.opcode == "dot"]
    computing = [i for i in module.instructions if i.opcode in _COMPUTING]
    elements = [max(math.prod(o.shape[1]) for o in (*i.operands, i)) for i in computing]
    io_bytes = _io_bytes(module)
    busy = (
        sum(work for _, work in dots) / core.matrix,
        sum(elements) / core.vector,
        io_bytes / core.bandwidth,
    )
    return Estimate(
        target=target,
        instructions=sum(count for count, _ in dots),
        largest_operator=max((count for count, _ in dots), default=0),
        vector=sum(math.ceil(n / (PARTITIONS * TILE_N)) for n in elements),
        hbm_bytes=io_bytes + _peak(module),
        sbuf_bytes=max((sum(size(o) for o in {*i.operands, i}) for i in module.instructions if i.opcode in _TILED), default=0),
        seconds=max(busy) + CALL_SECONDS,
    )


_COMPUTING = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "negate",
    "compare",
    "select",
    "convert",
    "reduce",
    "concatenate",
    "transpose",
)
_TILED = (*_COMPUTING, "dot")


def size(instruction: Instruction) -> int:
    """Bytes of an instruction's result."""
    element, extents = instruction.shape
    return ELEMENT_BYTES.get(element, 0) * math.prod(extents)


def dot_instructions(dot: Instruction) -> int:
    """Matrix-engine instructions of a batched dot [n,i,k] x [n,k,j]: K = k, M = i stationary, N = j moving."""
    n, i, k = dot.operands[0].shape[1]
    j = dot.operands[1].shape[1][2]
    return n * math.ceil(k / TILE_K) * math.ceil(i / TILE_M) * math.ceil(j / TILE_N)


def _dot_work(dot: Instruction) -> float:
    """Multiply-adds as the engine spends them: every instruction fills all 128 x 128 cells for at least 64 columns."""
    columns = max(64, min(dot.operands[1].shape[1][2], TILE_N))
    slow = FLOAT32_SLOWDOWN if dot.operands[0].shape[0] == "float32" else 1
    return float(dot_instructions(dot)) * columns * TILE_K * TILE_M * slow


def _io_bytes(module: Module) -> int:
    shared = {result for result, _ in module.aliases}
    results = [r for number, r in enumerate(module.results) if number not in shared]
    return sum(size(i) for i in [*module.parameters, *results])


def _peak(module: Module) -> int:
    """Most bytes of intermediates alive at once in the order of the program; broadcasts and reshapes take no memory."""
    last: dict[int, int] = {}
    for place, instruction in enumerate(module.instructions):
        for operand in instruction.operands:
            last[id(_owner(operand))] = place
    alive = peak = 0
    ends: dict[int, int] = {}
    outputs = {id(_owner(result)) for result in module.results}
    for place, instruction in enumerate(module.instructions):
        if instruction.opcode in (*_TILED, "slice") and id(instruction) not in outputs:
            alive += size(instruction)
            peak = max(peak, alive)
            end = last.get(id(instruction), place)
            ends[end] = ends.get(end, 0) + size(instruction)
        alive -= ends.pop(place, 0)
    return peak


def _owner(instruction: Instruction) -> Instruction:
    """The instruction whose memory a reshape or a broadcast reads."""
    while instruction.opcode in ("reshape", "broadcast"):
        instruction = instruction.operands[0]
    return instruction
