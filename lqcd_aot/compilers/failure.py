"""Why a compile failed: the class of failure decides whether the store may remember it and whether the pool tries again.

    deterministic   the compiler understood the program and refused it: the same input fails again
    resource        killed by the kernel, out of memory, disk full, too many processes: try again alone
    timeout         the time limit struck
    interrupted     somebody stopped the build
    unknown         anything else (a crash of the compiler, no output, an unreadable message)

Owns the patterns. Knows nothing of how the compiler was started.
"""

from __future__ import annotations

import re

from lqcd_aot.compilers.process import Ended
from lqcd_runtime.errors import CompileError

LOG_LINES = 20
CLASSES = ("deterministic", "resource", "timeout", "interrupted", "unknown")

_RESOURCE = re.compile(
    r"out of memory|cannot allocate memory|memory exhausted|bad_alloc|OutOfMemory"
    r"|no space left on device|disk quota exceeded|NoSpaceLeft|DiskQuota"
    r"|too many open files|resource temporarily unavailable|SystemResources|FdQuotaExceeded"
    r"|^killed\b|killed signal",
    re.IGNORECASE | re.MULTILINE,
)
_DIAGNOSTIC = re.compile(
    r"^\S+:\d+(:\d+)?: (fatal )?error: |undefined (symbol|reference)"
    r"|(unknown|unrecognized|unsupported) (command-line )?(argument|option|CPU)",
    re.MULTILINE | re.IGNORECASE,
)
_CRASH = re.compile(r"internal compiler error|PLEASE submit a bug report|panic:|Segmentation fault")
_SAYS = {
    "deterministic": "the compiler refused the program",
    "resource": "the compiler ran out of memory, disk or processes",
    "interrupted": "the compile was interrupted",
    "unknown": "the compiler failed in a way that is not understood",
}
_HINTS = {
    "resource": "build again with -j 1",
    "timeout": "raise `timeout` in the recipe",
    "interrupted": "build again",
}


def classify(ended: Ended) -> str | None:
    """The class of failure, or None for success.

    Words of exhaustion win over a diagnostic, because a full disk shows itself as `fatal error: ...` too and only `deterministic`
    is remembered.
    """
    code = ended.returncode
    if ended.interrupted:
        return "interrupted"
    if code is None:
        return "timeout"
    if code == 0:
        return None
    if code in (-1, -2, -15, 129, 130, 143):  # SIGHUP, SIGINT, SIGTERM, also as a shell spells them
        return "interrupted"
    if code in (-9, 137) or _RESOURCE.search(ended.log):
        return "resource"
    if code > 0 and _DIAGNOSTIC.search(ended.log) and not _CRASH.search(ended.log):
        return "deterministic"
    return "unknown"


def failure(
    subject: str, compiler: str, failure_class: str, ended: Ended, timeout: float | None, hint: str | None = None
) -> CompileError:
    """The error for a failed compile: whole log in `.log`, its last 20 lines in the text. hint: None for that of the class."""
    says = f"exceeded the time limit of {timeout:g} s" if failure_class == "timeout" else _SAYS[failure_class]
    lines = ended.log.rstrip().splitlines()
    details = lines[-LOG_LINES:]
    if len(lines) > LOG_LINES:
        details = [f"... {len(lines) - LOG_LINES} lines before these are in the log", *details]
    return CompileError(
        f"artifact {subject}: {says}",
        failure_class=failure_class,
        log=ended.log,
        details=details,
        found=f"{compiler}: {_how(ended)} after {ended.seconds:.1f} s",
        hint=hint or _HINTS.get(failure_class),
    )


def _how(ended: Ended) -> str:
    if ended.returncode is None:
        return "killed by the time limit"
    return f"signal {-ended.returncode}" if ended.returncode < 0 else f"exit code {ended.returncode}"
