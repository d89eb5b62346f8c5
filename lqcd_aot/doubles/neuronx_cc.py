"""A double of the `neuronx-cc` program: `python -m lqcd_aot.doubles.neuronx_cc compile model.hlo --framework XLA --target trn1`.

Owns the command line as AWS documents it (commands, options, exit status 0 or 70, messages), and the container it writes. In
place of compiling it validates the HLO as far as this project's own programs go, and wraps the same bytes. It accepts the target
`sim` beside the documented ones; whatever the target, what it writes is a NEFF-SIM.
Source: the command line reference of the Neuron SDK 2.32 and logs in public issues; exact texts of the real program are unknown.
"""

from __future__ import annotations

import argparse
import io
import sys
import tarfile
from pathlib import Path

from lqcd_aot.doubles.script import Script
from lqcd_aot.doubles.version import BANNER_VERSION
from lqcd_runtime.neff import write_neff, write_sim

TARGETS = ("inf2", "trn1", "trn1n", "trn2", "trn3", "sim")
TWO_LOGICAL = ("trn2", "trn3", "sim")
EXIT_ERROR = 70
MODES, DOWNCASTS = ("default", "enabled", "disabled"), ("dot", "scatter", "all_reduce", "reduce_scatter", "pow")


class Refused(Exception):
    """The compile ends with an error code and a sentence."""


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 for success, 70 for an error of the compiler, 2 for a wrong command line."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    script = Script(Path(words[1]) if words[:1] == ["--script"] else None)
    words = words[2:] if words[:1] == ["--script"] else words
    version = script.get("version", BANNER_VERSION)
    parser = _parser(version, tuple(script.get("targets", TARGETS)))
    options = parser.parse_args(words)
    if options.command == "list-operators":
        from lqcd_aot.program.hlo.validate import OPCODES

        _say("\n".join(sorted(OPCODES)))
        return 0
    logfile = Path(options.logfile)
    logfile.write_text(f"NeuronX Compiler version {version}\n", encoding="utf-8")
    script.follow(words, logfile)
    try:
        _compile(options, version, script)
    except Refused as why:
        with logfile.open("a", encoding="utf-8") as f:
            f.write(f"ERROR: {why}\n")
        sys.stderr.write(f"ERROR: {why}\n\nCompiler status ERROR\n")
        return EXIT_ERROR
    _say("Compiler status PASS")
    return 0


def _compile(options: argparse.Namespace, version: str, script: Script) -> None:
    from lqcd_aot.program.hlo.validate import InvalidHlo, validate

    lnc = options.logical_nc_config or (2 if options.target in ("trn2", "trn3") else 1)
    if lnc == 2 and options.target not in TWO_LOGICAL:
        raise Refused(f"[NCC_EARG001] logical core configuration {lnc} is not supported on {options.target}")
    try:
        hlo = Path(options.model_files).read_bytes()
    except OSError as why:
        raise Refused(f"[NCC_EARG002] {options.model_files}: {why.strerror}") from why
    try:
        validate(hlo)
    except InvalidHlo as why:
        raise Refused(f"[{why.code}] {why}") from why
    output = Path(options.output)
    form = script.get("output", "sim")
    if form == "none":
        return
    if form == "sim":
        output.write_bytes(write_sim(hlo, _manifest(options, version, lnc)))
        return
    neff = write_neff(_payload(hlo), build=version, name=output.stem, lnc=script.get("lnc", lnc))
    if form == "renamed":
        output = output.with_name(f"{output.stem}-0123abcd.neff")
    output.write_bytes(neff[:-1] if form == "truncated" else neff)


def _manifest(options: argparse.Namespace, version: str, lnc: int) -> dict[str, object]:
    return {
        "compiler": f"neuronx-cc double {version}", "simulated": True, "target": options.target, "lnc": lnc,
        "auto_cast": options.auto_cast, "optlevel": options.optlevel,
    }  # fmt: skip


def _payload(hlo: bytes) -> bytes:
    """A gzip tar of one subgraph, as a NEFF has; it holds nothing a device could run."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, content in (("neff.json", b"{}"), ("sg00/def.json", b"{}"), ("hlo.pb", hlo)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def _parser(version: str, targets: tuple[str, ...]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="neuronx-cc", description="NeuronX Compiler (a double, not AWS's program)")
    parser.add_argument("--version", action="version", version=f"NeuronX Compiler version {version}")
    commands = parser.add_subparsers(dest="command", required=True)
    operators = commands.add_parser("list-operators", help="print the XLA operators that are known")
    operators.add_argument("--framework", required=True, choices=("XLA",))
    add = commands.add_parser("compile", help="compile a model").add_argument
    add("model_files")
    add("--framework", required=True, choices=("XLA",))
    add("--target", required=True, choices=targets)
    add("--model-type", choices=("generic", "transformer", "unet-inference"), default="generic")
    add("--auto-cast", choices=("none", "matmult", "all"), default="none")
    add("--auto-cast-type", choices=("bf16", "fp16", "tf32", "fp8_e4m3"), default="bf16")
    add("--native-int64", choices=MODES, default="default")
    add("--implicit-integer-downcast", type=_downcast, default="default")
    add("--distribution-strategy", choices=("llm-training", "NEMO"))
    add("--logical-nc-config", "-lnc", "--lnc", type=int, choices=(1, 2))
    add("--optlevel", "-O", type=int, choices=(1, 2, 3), default=2)
    for switch in ("mixed-precision-accumulation", "saturate-infinity", "fast-context-switch", "fast-loading-neuron-binaries"):
        add(f"--enable-{switch}", action="store_true")
    add("--disable-mixed-precision-accumulation", action="store_true")
    add("--logfile", default="log-neuron-cc.txt")
    add("--output", default="file.neff")
    add("--verbose", choices=("info", "warning", "error", "critical", "debug", "35"), default="warning")
    return parser


def _downcast(text: str) -> str:
    if text in ("default", "all", "none") or all(word in DOWNCASTS for word in text.split(",")):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not default, all, none or a list of {', '.join(DOWNCASTS)}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
