"""The import law. Each rule carries its reason, and a broken rule prints it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.source_tree import all_sources, sources

HEAVY = ("torch", "h5py", "matplotlib", "scipy")

# (rule, which modules it binds, what they may not import, why)
FORBIDDEN = [
    ("runtime-is-alone", "lqcd_runtime", ("lqcd_aot",), "the reader owns the formats; a shipped runtime has no build side"),
    ("runtime-needs-numpy-only", "lqcd_runtime", ("torch", "click", "rich", "pydantic", "filelock"), "runs where only numpy is"),
    (
        "store-knows-no-physics",
        "lqcd_aot.store",
        (
            "lqcd_aot.recipe", "lqcd_aot.program", "lqcd_aot.compilers", "lqcd_aot.build", "lqcd_aot.dirac", "lqcd_aot.core",
            "torch",
        ),
        "the store must serve any bytes",
    ),
    ("recipes-know-no-store", "lqcd_aot.recipe", ("lqcd_aot.store", "lqcd_aot.build", "torch"), "a recipe plans on a laptop"),
    (
        "programs-know-no-store",
        "lqcd_aot.program",
        ("lqcd_aot.store", "lqcd_aot.build", "lqcd_aot.recipe"),
        "a program is a function of its spec",
    ),
    (
        "modules-are-not-templates",
        "lqcd_aot.dirac",
        ("lqcd_aot.program", "lqcd_aot.compilers", "lqcd_aot.build"),
        "templates and torch modules are two derivations; neither may come from the other",
    ),
    ("nobody-imports-the-cli", "lqcd_aot", ("lqcd_aot.cli",), "verbs parse, call and print; nothing depends on them"),
]  # fmt: skip


def _hits(module: str, prefix: str) -> bool:
    return module == prefix or module.startswith(prefix + ".")


@pytest.mark.parametrize(("rule", "binds", "forbidden", "why"), FORBIDDEN, ids=[r[0] for r in FORBIDDEN])
def test_forbidden_imports(rule: str, binds: str, forbidden: tuple[str, ...], why: str) -> None:
    broken = [
        f"{f.shown}:{line} imports {name}"
        for f in all_sources()
        if _hits(f.module, binds) and not (rule == "nobody-imports-the-cli" and _hits(f.module, "lqcd_aot.cli"))
        for name, line in f.imports()
        if any(_hits(name, bad) for bad in forbidden)
    ]
    assert not broken, f"{rule} ({why}):\n" + "\n".join(broken)


def _modules_after(statement: str) -> set[str]:
    code = f"import sys; before = set(sys.modules); {statement}; new = set(sys.modules) - before; print(*sorted(new))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(out.split())


def test_importing_the_runtime_loads_the_standard_library_only() -> None:
    loaded = _modules_after("import lqcd_runtime")
    third_party = {m for m in loaded if m.partition(".")[0] not in sys.stdlib_module_names | {"lqcd_runtime"}}
    assert not third_party
    costly = {
        "json",
        "hashlib",
        "ctypes",
        "dataclasses",
        "pathlib",
        "typing",
        "logging",
        "inspect",
        "zipfile",
        "importlib.metadata",
    }
    assert not loaded & costly, "import lqcd_runtime must stay within milliseconds; load these where they are used"


@pytest.mark.parametrize(
    "module", ["lqcd_aot", "lqcd_aot.recipe", "lqcd_aot.keys", "lqcd_aot.store", "lqcd_aot.program", "lqcd_aot.compilers",
               "lqcd_aot.build", "lqcd_aot.build.plan", "lqcd_aot.cli"],
)  # fmt: skip
def test_planning_and_listing_never_load_torch(module: str) -> None:
    loaded = _modules_after(f"import {module}")
    assert not {m for m in loaded if m.partition(".")[0] in HEAVY}


def test_no_pickle_no_eval_anywhere() -> None:
    import ast

    broken = []
    for f in all_sources():
        broken += [
            f"{f.shown}:{line} imports {name}"
            for name, line in f.imports()
            if name.partition(".")[0] in ("pickle", "marshal", "shelve")
        ]
        for node in ast.walk(f.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
                broken.append(f"{f.shown}:{node.lineno} calls {node.func.id}")
    assert not broken, "bytes that are read must never become code before their digest is verified:\n" + "\n".join(broken)


def test_environment_variables_are_read_in_one_file_per_package() -> None:
    import ast

    allowed = {"lqcd_aot.settings", "lqcd_runtime.settings"}
    broken = []
    for f in all_sources():
        if f.module in allowed:
            continue
        for node in ast.walk(f.tree):
            if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv"):
                broken.append(f"{f.shown}:{node.lineno}")
    assert not broken, "settings come from one place, so that none of them can slip into a key unseen:\n" + "\n".join(broken)


def test_nothing_happens_at_import_time() -> None:
    """No module opens files or starts processes while it is imported. -B: the interpreter would write bytecode."""
    code = (
        "import sys, builtins\n"
        "import importlib, pkgutil\n"
        "events=[]\n"
        "def hook(name, args):\n"
        "    if name in ('subprocess.Popen','socket.connect','os.mkdir','os.remove'): events.append((name, str(args)[:80]))\n"
        "sys.addaudithook(hook)\n"
        "import lqcd_runtime\n"
        "for m in pkgutil.walk_packages(lqcd_runtime.__path__, 'lqcd_runtime.'):\n"
        "    if not m.name.endswith('__main__'): importlib.import_module(m.name)\n"
        "print(events)\n"
    )
    out = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_every_package_says_what_it_is_for() -> None:
    import ast

    silent = [f.shown for p in ("lqcd_aot", "lqcd_runtime") for f in sources(p) if not ast.get_docstring(f.tree)]
    assert not silent, "every file opens with its purpose:\n" + "\n".join(silent)
