"""The error classes of the whole project, and how an error reads.

Owns: class hierarchy, the text form, the process exit codes. Text form (one clear error, never a traceback for bad input):

    <noun> <id>: <fact in lower case>
      expected: ...
      found:    ...
      hint:     one command or keyword

Classes follow what a caller can decide, so each carries its facts as attributes; the text is derived from them.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NO_STORE = 10
EXIT_LOCKED = 11
EXIT_CORRUPT = 12
EXIT_UNTRUSTED = 13
EXIT_NO_VARIANT = 20
EXIT_WITNESS = 21
EXIT_NOT_CONVERGED = 30
EXIT_INTERRUPTED = 130


class LqcdError(Exception):
    """Base of every error this project raises on purpose.

    fact: one sentence with the subject first ("bundle x.lqcd: is truncated"); expected, found, hint: optional, one line each;
    details: further lines, printed between the fact and `expected`.
    """

    exit_code = EXIT_FAILED

    def __init__(
        self,
        fact: str,
        *,
        expected: object = None,
        found: object = None,
        hint: str | None = None,
        details: tuple[str, ...] | list[str] = (),
    ) -> None:
        self.fact = fact
        self.expected = expected
        self.found = found
        self.hint = hint
        self.details = tuple(details)
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [self.fact]
        lines += [f"  {line}" for line in self.details]
        if self.expected is not None:
            lines.append(f"  expected: {self.expected}")
        if self.found is not None:
            lines.append(f"  found:    {self.found}")
        if self.hint is not None:
            lines.append(f"  hint:     {self.hint}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, object]:
        """The same facts for `--json` output; never another wording."""
        return {
            "error": type(self).__name__,
            "fact": self.fact,
            "details": list(self.details),
            "expected": None if self.expected is None else str(self.expected),
            "found": None if self.found is None else str(self.found),
            "hint": self.hint,
            "exit_code": self.exit_code,
        }


class UsageError(LqcdError, ValueError):
    """A call or command line that cannot mean anything (unknown name, wrong shape or dtype); also a ValueError."""

    exit_code = EXIT_USAGE


class RecipeError(LqcdError):
    """One or more issues in a recipe file; all of them, each with file:line:column, in `details`."""

    exit_code = EXIT_USAGE


class CompileError(LqcdError):
    """A compiler refused or failed; carries the class of failure and the log."""

    def __init__(self, fact: str, *, failure_class: str = "unknown", log: str = "", **facts: object) -> None:
        self.failure_class = failure_class
        self.log = log
        super().__init__(fact, **facts)  # type: ignore[arg-type]


class StoreError(LqcdError):
    """The store folder cannot be used (absent, not writable, of a newer version)."""

    exit_code = EXIT_NO_STORE


class StoreLocked(StoreError):
    """Another process holds a lock for longer than the caller wanted to wait."""

    exit_code = EXIT_LOCKED


class CorruptError(LqcdError):
    """Bytes that do not match their digest, size or format: bundles, blobs, records."""

    exit_code = EXIT_CORRUPT


class TooNewError(LqcdError):
    """A format version from a later release."""

    exit_code = EXIT_CORRUPT


class TrustError(LqcdError):
    """Sound bytes that nobody trusted has signed, or a key that cannot be used."""

    exit_code = EXIT_UNTRUSTED


class GaugeFileError(LqcdError):
    """A gauge configuration file that must not be used, with the reason."""

    exit_code = EXIT_CORRUPT


class NoVariant(LqcdError):
    """No artifact fits. Carries one decision per candidate, the nearest candidate and the fields that differ from it."""

    exit_code = EXIT_NO_VARIANT

    def __init__(
        self,
        fact: str,
        *,
        decisions: tuple[object, ...] = (),
        nearest: str | None = None,
        differing: dict[str, tuple[object, object]] | None = None,
        **facts: object,
    ) -> None:
        self.decisions = decisions
        self.nearest = nearest
        self.differing = dict(differing or {})
        super().__init__(fact, **facts)  # type: ignore[arg-type]

    def as_json(self) -> dict[str, object]:
        return {
            **super().as_json(),
            "nearest": self.nearest,
            "differing": {k: {"asked": a, "nearest": n} for k, (a, n) in self.differing.items()},
            "decisions": [str(d) for d in self.decisions],
        }


class WitnessMismatch(LqcdError):
    """An artifact computed a wrong number on this machine."""

    exit_code = EXIT_WITNESS


class EngineError(LqcdError):
    """Machine code could not be loaded or refused its arguments."""


class SolveError(LqcdError):
    """A solver was asked for something it cannot do; not used for non-convergence, which is a value (`info.reason`)."""


class NotConverged(LqcdError):
    """Raised only where the caller asked to raise on an unconverged solve."""

    exit_code = EXIT_NOT_CONVERGED
