"""`lqcd-aot devices`: the NeuronCores of this machine, one line each, and why one cannot be used."""

from __future__ import annotations

import click

from lqcd_aot.amounts import human_bytes
from lqcd_aot.cli.output import console, json_option, print_json, print_table


@click.command("devices")
@click.option(
    "--as", "override", metavar="TYPE", default=None, help="Describe an instance type (trn2.48xlarge, trn2.48xlarge:lnc=1)."
)
@click.option("--lnc", type=int, default=None, help="Physical cores per logical core, 1 or 2. [default: environment, machine]")
@json_option
def command(override: str | None, lnc: int | None, as_json: bool) -> None:
    """The NeuronCores of this machine. Exit code 0 also where there are none: the answer is an empty list."""
    from lqcd_runtime.hardware import survey

    cores, notes = survey(override=override, lnc=lnc)
    if as_json:
        print_json({"cores": [core.as_dict() for core in cores], "notes": notes})
        return
    if not cores:
        console().print("no NeuronCore on this machine; CPU artifacts run here (lqcd-aot doctor)")
    else:
        rows = [
            (c.ordinal, c.name, c.instance_type or c.family, c.device, "+".join(map(str, c.physical_cores)),
             human_bytes(c.memory_bytes), c.target or "none", c.reason or "available")
            for c in cores
        ]  # fmt: skip
        print_table(("core", "name", "instance", "device", "physical", "memory", "artifacts", "state"), rows)
    for note in notes:
        console(err=True).print(f"note: {note}")
