"""`lqcd-aot neuron-check`: for the first person with a NeuronCore. Builds, compares with complex128, times, writes one report.

Nothing is sent anywhere: the report is a file to read and, if one wants to, to send back. `--compiler sim` rehearses all of it
without device and compiler.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lqcd_aot.cli.build import execute, progress
from lqcd_aot.cli.output import store_option
from lqcd_aot.cli.planning import compiler_option, make_plan, say_notes
from lqcd_runtime.errors import EXIT_FAILED, EXIT_OK, EXIT_WITNESS, UsageError
from lqcd_runtime.json_output import dumps


@click.command("neuron-check")
@click.argument("recipe_path", metavar="[RECIPE]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--recipes", "folder", type=click.Path(path_type=Path), default=Path("recipes"), show_default=True,
    help="Where the recipe of this machine's chip is looked for if none is named.",
)  # fmt: skip
@store_option
@compiler_option
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=None, help="Compiles at once. [default: processors]")
@click.option("--seconds", type=float, default=1.0, show_default=True, help="Measuring time of a row.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="Report. [default: neuron-report-NAME.json]")
def command(
    recipe_path: Path | None, folder: Path, store_path: Path | None, neuron: str | None, jobs: int | None, seconds: float,
    output: Path | None,
) -> int:  # fmt: skip
    """Build RECIPE (default: of this machine's chip), compare every artifact with complex128, time it, write one report."""
    import lqcd_runtime
    from lqcd_aot.bench import neuron_report as report

    planned = make_plan(recipe_path or _recipe(folder, neuron), store_path, None, (), False, neuron)
    say_notes(planned)
    target = planned.items[0].variant.target
    if planned.toolchain is None or planned.toolchain.refusal(target) is not None:
        reason = planned.toolchain.refusal(target) if planned.toolchain else planned.no_toolchain
        raise UsageError(f"neuron-check: cannot build for {target}", found=reason, hint="--compiler sim rehearses without it")
    found: dict[str, Any] = report.facts(planned.toolchain.identity(target), target)
    with progress(len(planned.items), False) as observer:
        results = execute(planned, jobs, observer)
    found["builds"] = [report.build_row(result) for result in results]
    with lqcd_runtime.open(str(planned.store_path)) as bundle:
        entries = report.of_device(bundle, {result.item.variant.name for result in results})
        found["checks"] = list(report.check_rows(bundle, entries, _say))
        found["rows"] = list(report.time_rows(bundle, entries, _say, seconds=seconds))
        found["chunks"] = list(report.chunk_rows(bundle, entries, _say, seconds=seconds))
    path = output or Path(f"neuron-report-{planned.recipe.name}.json")
    path.write_text(dumps(found, indent=1) + "\n", encoding="utf-8")
    return _conclude(found, path)


def _recipe(folder: Path, neuron: str | None) -> Path:
    """The recipe of the first usable core's chip; of Inferentia2 for a rehearsal."""
    import lqcd_runtime
    from lqcd_aot.compilers import SIM

    usable = [core for core in lqcd_runtime.devices() if core.available]
    if not usable and neuron != SIM:
        raise UsageError(
            "neuron-check: this machine has no NeuronCore that can be used", found="lqcd-aot devices says why",
            hint="--compiler sim rehearses without it",
        )  # fmt: skip
    path = folder / f"{usable[0].target if usable else 'inf2'}.toml"
    if not path.is_file():
        raise UsageError(f"neuron-check: there is no {path}", hint="name a recipe, or its folder with --recipes")
    return path


def _conclude(found: dict[str, Any], path: Path) -> int:
    built = [row for row in found["builds"] if "error" not in row]
    agreed = [row for row in found["checks"] if row["passed"]]
    failed = [row for row in (*found["rows"], *found["chunks"]) if "error" in row]
    click.echo(
        f"{len(built)} of {len(found['builds'])} built, {len(agreed)} of {len(found['checks'])} agree with complex128, "
        f"{len(found['rows']) + len(found['chunks'])} timed{f', {len(failed)} of them failed' if failed else ''}"
    )
    click.echo(f"report: {path}; please read it, then send it back with an issue of this project")
    if len(agreed) < len(found["checks"]):
        return EXIT_WITNESS
    return EXIT_FAILED if len(built) < len(found["builds"]) or failed else EXIT_OK


def _say(line: str) -> None:
    click.echo(line, err=True)
