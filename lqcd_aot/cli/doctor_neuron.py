"""The Neuron part of `lqcd-aot doctor`: AWS's packages told from PyPI's placeholders, devices, runtime and driver.

Owns what a finding says. A package is judged by the files it installed, never by importing it, the compiler by running it:
AWS publishes on an index of its own, and `pip install` of the same names from PyPI succeeds, with packages that only raise.
"""

from __future__ import annotations

from importlib import metadata

from lqcd_runtime.errors import LqcdError

Finding = tuple[str, bool, str]

# package: what this project uses it for
PACKAGES = {
    "torch-neuronx": "a second way to trace and compile",
    "libneuronxla": "needed by torch-neuronx",
    "nrtpy": "AWS's loader of NEFFs; libnrt is used where it is absent",
}
_PLACEHOLDER_FILES = 8  # those on PyPI have five; the real packages have hundreds
_PLACEHOLDER_BYTES = 1 << 16


def findings() -> list[Finding]:
    """Compiler, packages, devices, libnrt."""
    return [_compiler(), *(_package(name, what) for name, what in PACKAGES.items()), *_devices(), _libnrt()]


def is_placeholder(name: str) -> bool:
    """Whether an installed distribution is only a module that raises ImportError. Errors: PackageNotFoundError."""
    files = metadata.distribution(name).files or []
    if len(files) > _PLACEHOLDER_FILES:
        return False
    modules = [file for file in files if file.name.endswith(".py") and (file.size or 0) < _PLACEHOLDER_BYTES]
    texts = [str(file.read_text()) for file in modules if file.locate().is_file()]  # type: ignore[attr-defined]
    return not modules or any("raise ImportError" in text for text in texts)


def _package(name: str, what: str) -> Finding:
    from lqcd_aot.compilers.neuronx import INSTALL

    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return name, False, f"not installed: {what}"
    if is_placeholder(name):
        return name, False, f"{version} is PyPI's placeholder, not AWS's package; pip uninstall {name}; {INSTALL}"
    return name, True, f"{version}: {what}"


def _compiler() -> Finding:
    from lqcd_aot.compilers.neuronx import find_neuronx
    from lqcd_runtime.target import NEURON_TARGETS

    compiler = find_neuronx()
    reasons = {target: compiler.refusal(target) for target in NEURON_TARGETS}
    able = [target for target, reason in reasons.items() if reason is None]
    if not able:
        return "neuronx-cc", False, str(reasons["trn1"])
    try:
        identity = compiler.identity(able[0])
    except LqcdError as error:
        return "neuronx-cc", False, str(error).replace("\n", "; ")
    return "neuronx-cc", True, f"{identity['version']}, builds for {', '.join(able)}"


def _devices() -> list[Finding]:
    from lqcd_runtime.hardware import survey

    try:
        cores, notes = survey()
    except LqcdError as error:
        return [("neuron devices", False, str(error).replace("\n", "; "))]
    if not cores:
        found: list[Finding] = [("neuron devices", False, "this machine has no NeuronCore")]
    else:
        usable = sum(core.available for core in cores)
        what = (
            f"{usable} of {len(cores)} x {cores[0].name}, logical cores of {cores[0].lnc}, driver {cores[0].driver or 'unknown'}"
        )
        reason = next((core.reason for core in cores if core.reason), None)
        found = [("neuron devices", usable > 0, f"{what}; {reason}" if reason else what)]
    return found + [("neuron devices", False, f"do not fit together: {note}") for note in notes]


def _libnrt() -> Finding:
    from lqcd_runtime.engines.nrt_library import find_library

    try:
        library = find_library()
        version = ".".join(map(str, library.version()))
    except LqcdError as error:
        return "libnrt", False, f"{error.fact}; {error.hint or 'needed only to run on NeuronCores'}"
    return "libnrt", True, f"{version} from {library.path}"
