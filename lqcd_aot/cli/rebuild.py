"""`lqcd-aot rebuild --check`: compile again and compare the bytes with what the store has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lqcd_aot.cli.output import cc_option, console, json_option, print_json, store_option
from lqcd_aot.cli.planning import make_plan, open_folder, target_option, toolchain_if_there
from lqcd_runtime.errors import EXIT_FAILED, EXIT_OK, CompileError, UsageError

if TYPE_CHECKING:
    from lqcd_aot.build.plan import PlanItem
    from lqcd_aot.compilers import Toolchain
    from lqcd_aot.store import Store


@click.command("rebuild")
@click.argument("subject", metavar="RECIPE|KEY")
@click.option("--check", is_flag=True, required=True, help="Compare, never replace: the first artifact of a key stays.")
@store_option
@cc_option
@target_option
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=None, help="Compiles at once. [default: processors]")
@json_option
def command(
    subject: str, check: bool, store_path: Path | None, cc: str | None, targets: tuple[str, ...], jobs: int | None, as_json: bool
) -> int:
    """Compile every artifact of RECIPE, or the one whose build key starts with KEY, once more and compare the bytes.

    Divergences are recorded in the store. Exit code 1 where an artifact diverged or does not compile any more.
    """
    from lqcd_aot.build.rebuild import rebuild

    assert check
    store = open_folder(store_path)
    if subject.endswith(".toml") or Path(subject).is_file():
        planned = make_plan(Path(subject), store_path, cc, targets, True)
        items, toolchain, expected = planned.items, planned.toolchain, None
        why = planned.no_toolchain
    else:
        toolchain, why = toolchain_if_there(cc, None)
        items, expected = _one(store, toolchain, subject)
    if toolchain is None:
        raise CompileError(f"rebuild {subject}: {why}", hint="pip install ziglang, or --cc /path/to/clang++")
    results = rebuild(items, store, toolchain, expected=expected, jobs=jobs)
    if as_json:
        print_json([result._asdict() for result in results])
    else:
        out = console()
        for result in results:
            if result.outcome != "equal":
                out.print(f"{result.outcome}  {result.name}  {result.detail}")
        counts = Counter(result.outcome for result in results)
        out.print(", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())))
    return EXIT_FAILED if any(result.is_bad for result in results) else EXIT_OK


def _one(store: Store, toolchain: Toolchain | None, prefix: str) -> tuple[list[PlanItem], str]:
    """The plan of the one artifact whose build key starts so, and that key. Errors: UsageError for none or several."""
    from lqcd_aot.build.plan import plan
    from lqcd_aot.recipe.variant import Variant
    from lqcd_runtime.signature import Spec

    found = [key for key in store.list_build_keys() if key.startswith(prefix)]
    record = store.record(found[0]) if len(found) == 1 else None
    if record is None:
        raise UsageError(
            f"artifact {prefix}: names {len(found)} artifacts of store {store.root}",
            details=found[:10],
            hint="lqcd-aot ls",
        )
    variant = Variant(Spec.from_dict(record["spec"]), record["target"], salt=record["components"].get("salt", ""))
    return plan([variant], store, toolchain, retry_failed=True), found[0]
