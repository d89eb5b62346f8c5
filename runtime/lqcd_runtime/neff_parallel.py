"""One thread per core: spreads pieces of work that write apart from each other. Knows no physics and no engine."""

from __future__ import annotations

import threading

from lqcd_runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from lqcd_runtime.engines.neff_artifact import NeffArtifact


def usable_cores(artifact: NeffArtifact, asked: tuple[int, ...] | None) -> tuple[int, ...]:
    """The cores asked for, or all of the engine. Errors: UsageError for one it does not have, or the same twice."""
    if asked is None:
        return artifact.cores
    if not asked or len(set(asked)) != len(asked) or not set(asked) <= set(artifact.cores):
        expected = f"some of {', '.join(map(str, artifact.cores))}, each once"
        raise UsageError("cores: cannot be used", expected=expected, found=", ".join(map(str, asked)) or "none")
    return asked


def spread(work: Sequence[Any], cores: tuple[int, ...], function: Callable[[Any, int], None]) -> None:
    """function(piece, core) for every piece; piece i runs on core i modulo their number, the first core in this thread.

    The first failure is raised when all threads have ended; pieces that were not begun are then left out.
    """
    used = cores[: max(1, len(work))]
    failures: list[BaseException] = []

    def share(place: int) -> None:
        try:
            for piece in work[place :: len(used)]:
                if failures:
                    return
                function(piece, used[place])
        except BaseException as err:  # handed to the caller's thread below
            failures.append(err)

    threads = [threading.Thread(target=share, args=(place,), name=f"lqcd-core-{used[place]}") for place in range(1, len(used))]
    for thread in threads:
        thread.start()
    share(0)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
