"""`lqcd-aot doctor`: what this machine can run and build, and why not the rest."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from pathlib import Path

import click

from lqcd_aot.cli.output import coloured, console, json_option, print_json, store_option
from lqcd_runtime.errors import LqcdError


@click.command("doctor")
@store_option
@json_option
def command(store_path: Path | None, as_json: bool) -> None:
    """What this machine can run and build, and why not the rest. Exit code 0 also where something is absent."""
    findings = [*_machine(), *_targets(), _compiler(), *_packages(), _store(store_path), *_neuron()]
    if as_json:
        print_json([{"what": what, "ok": ok, "fact": fact} for what, ok, fact in findings])
        return
    out = console()
    for what, ok, fact in findings:
        mark, colour = ("yes", "green") if ok else ("no ", "yellow")
        out.print(coloured(mark, colour, f"  {what:<24} {fact}"))


Finding = tuple[str, bool, str]


def _machine() -> list[Finding]:
    from lqcd_runtime.target import this_host

    best = this_host().best_target()
    return [
        ("python", sys.version_info >= (3, 11), platform.python_version()),
        ("processor", best is not None, f"{platform.machine()}, best target {best or 'none of the known levels'}"),
    ]


def _targets() -> list[Finding]:
    from lqcd_runtime.target import CPU_TARGETS, this_host

    host = this_host()
    return [(f"run {t}", host.refusal(t) is None, host.refusal(t) or "this machine can execute it") for t in CPU_TARGETS]


def _compiler() -> Finding:
    from lqcd_aot.compilers import find_toolchain
    from lqcd_aot.settings import default_compiler
    from lqcd_runtime.target import this_host

    try:
        identity = find_toolchain(default_compiler()).cpu.identity(this_host().best_target() or "aarch64")
    except LqcdError as error:
        return ("build", False, str(error).replace("\n", "; "))
    return ("build", True, ", ".join(f"{k} {v[:16]}" for k, v in identity.items()))


def _packages() -> list[Finding]:
    out = []
    for name, what in (("torch", "judges witnesses, SDK"), ("h5py", "propagator files"), ("matplotlib", "plots")):
        try:
            out.append((name, True, f"{metadata.version(name)}: {what}"))
        except metadata.PackageNotFoundError:
            out.append((name, False, f"not installed: {what}; pip install {name}"))
    return out


def _store(path: Path | None) -> Finding:
    import os

    from lqcd_aot.settings import default_store

    folder = path or default_store()
    if not folder.exists():
        parent = next(p for p in folder.absolute().parents if p.exists())
        if not os.access(parent, os.W_OK):
            return ("store", False, f"{folder}: cannot be made, {parent} is read-only; use --store DIR or LQCD_AOT_STORE")
        return ("store", True, f"{folder}: not made yet; the first build makes it")
    if not os.access(folder, os.W_OK):
        return ("store", True, f"{folder}: read-only; its artifacts can be used, nothing can be added")
    return ("store", True, str(folder))


def _neuron() -> list[Finding]:
    from lqcd_aot.cli.doctor_neuron import findings

    return findings()
