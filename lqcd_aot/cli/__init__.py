"""The command line: one file per verb, each parses, calls and prints.

Owns: the table of verbs (loaded only when called, so that `plan` never pays for torch), error printing and exit codes.
Exit codes: lqcd_runtime.errors. With --json, results and errors are one JSON object on standard output.
"""

from __future__ import annotations

import importlib
import sys

import click

from lqcd_runtime.errors import EXIT_FAILED, EXIT_INTERRUPTED, LqcdError

# verb: (module, one line of help)
VERBS = {
    "plan": ("plan", "Say for every variant of a recipe: reuse or build, and why."),
    "build": ("build", "Compile what is missing of a recipe into a store."),
    "ls": ("ls", "List the artifacts of a store or bundle."),
    "show": ("show", "Print the record of one artifact."),
    "why": ("why", "Explain a hit or a miss: the nearest artifact and the differing fields."),
    "diff": ("diff", "What differs between two artifacts, bundles, stores or variants."),
    "pack": ("pack", "Write the artifacts of a recipe as one bundle file."),
    "inspect": ("inspect", "What a bundle or store holds and what of it this machine can run."),
    "selfcheck": ("selfcheck", "Replay every witness on this machine."),
    "observe": ("observe", "Measure observables on a gauge configuration."),
    "propagator": ("propagator", "Solve a quark propagator and write it to HDF5."),
    "pion": ("pion", "Pion correlator with an effective-mass plot."),
    "devices": ("devices", "The NeuronCores of this machine, and why one cannot be used."),
    "neuron-check": ("neuron_check", "First run on a NeuronCore: build, compare, time, write one report."),
    "doctor": ("doctor", "What this machine can run and build, and why not the rest."),
    "bench": ("bench", "Time operators on this machine, next to torch eager."),
    "rebuild": ("rebuild", "Compile again and compare the bytes."),
    "report": ("report", "One HTML page: what is built, sizes, times, hit rates, failures."),
    "bundle": ("bundle", "Create, inspect, extract, merge and slim bundles."),
    "lock": ("lock", "Pin the exact artifacts of a recipe."),
    "push": ("push", "Send a bundle to a remote: folder, S3, OCI registry."),
    "pull": ("pull", "Fetch what this machine needs of a bundle into the store."),
    "sync": ("sync", "Make a folder of bundles and a remote hold the same names."),
    "keygen": ("keygen", "Make a key pair to sign with."),
    "sign": ("sign", "Sign a bundle."),
    "verify": ("verify", "Compare every byte of a bundle with its digest and judge its signatures."),
    "trust": ("trust", "Whose signatures import and pull accept."),
    "store": ("store", "Check and describe a store."),
}


class Verbs(click.Group):
    """Loads a verb's module when the verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"lqcd_aot.cli.{VERBS[cmd_name][0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        from lqcd_runtime.signature import suggest

        if args and args[0] not in VERBS and not args[0].startswith("-"):
            ctx.fail(f"verb {args[0]!r}: is not known{suggest(args[0], VERBS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="lqcd-aot")
def application() -> None:
    """Ahead-of-time compiler, artifact store and bundles for lattice QCD."""


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit with its code: the console script `lqcd-aot`."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run one command; every error on purpose becomes one message and its exit code, never a traceback."""
    from lqcd_aot.settings import check_environment

    as_json = "--json" in arguments
    try:
        check_environment()
        code = application.main(args=arguments, prog_name="lqcd-aot", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except LqcdError as error:
        _report(error, as_json)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted: nothing was left half-written; run the same command again to continue", err=True)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_FAILED


def _report(error: LqcdError, as_json: bool) -> None:
    if as_json:
        from lqcd_aot.cli.output import print_json

        print_json(error.as_json())
    else:
        click.echo(str(error), err=True)
