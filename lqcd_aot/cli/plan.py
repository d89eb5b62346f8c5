"""`lqcd-aot plan`: reuse or build, and why, for every variant of a recipe. Writes nothing, starts no compiler."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from lqcd_aot.amounts import human_seconds
from lqcd_aot.cli.output import coloured, console, print_json
from lqcd_aot.cli.planning import make_plan, recipe_options, retry_option, say_notes

COLOUR = {"reuse": "green", "build": "yellow", "blocked": "red"}


@click.command("plan")
@recipe_options
@retry_option
def command(
    recipe_path: Path,
    store_path: Path | None,
    cc: str | None,
    neuron: str | None,
    targets: tuple[str, ...],
    as_json: bool,
    retry_failed: bool,
) -> None:
    """Say for every variant of RECIPE whether it is reused or built, and why; what blocks several of them is said once."""
    from lqcd_aot.build.device_estimate import as_json as as_json_estimate
    from lqcd_aot.build.device_estimate import device_estimate, lines
    from lqcd_aot.build.plan import predicted_seconds
    from lqcd_aot.cli.alike import counted_reasons

    planned = make_plan(recipe_path, store_path, cc, targets, retry_failed, neuron)
    say_notes(planned, every=as_json)
    if as_json:
        print_json([{**item.as_json(), "device_estimate": as_json_estimate(device_estimate(item))} for item in planned.items])
        return
    out = console()
    shared = {r: n for r, n in counted_reasons(i.reason for i in planned.items if i.decision == "blocked") if n > 1}
    for item in planned.items:
        why = "" if item.decision == "blocked" and item.reason in shared else f"  {item.reason}"
        out.print(coloured(f"{item.decision.upper():<7}", COLOUR[item.decision], f" {item.variant.name}{why}"))
        estimate = device_estimate(item)
        for line in lines(estimate) if estimate is not None else ():
            out.print(f"        {line}")
    for reason, n in shared.items():
        out.print(coloured("blocked", COLOUR["blocked"], f" {n} variants: {reason}"))
    counts: Counter[str] = Counter(item.decision for item in planned.items)
    summary = ", ".join(f"{counts[d]} {d}" for d in COLOUR if counts[d]) or "no variants"
    predicted = predicted_seconds(planned.items)
    if counts["build"]:
        summary += f"; compile time {human_seconds(predicted) if predicted is not None else 'unknown (no history yet)'}"
    out.print(summary)
