"""Reads the project's own Python files: imports, function lengths, names used. Shared by the architecture tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"lqcd_aot": ROOT / "lqcd_aot", "lqcd_runtime": ROOT / "runtime" / "lqcd_runtime"}


@dataclass(frozen=True)
class SourceFile:
    path: Path
    module: str

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @property
    def shown(self) -> str:
        return str(self.path.relative_to(ROOT))

    def imports(self, *, eager: bool = False) -> Iterator[tuple[str, int]]:
        """(module, line) of every import; with eager, those that run when the module itself is imported."""
        nodes = self._eager(self.tree.body) if eager else ast.walk(self.tree)
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name, node.lineno
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                yield node.module, node.lineno

    def _eager(self, body: list[ast.stmt]) -> Iterator[ast.AST]:
        for node in body:
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                continue
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            yield node
            for child in ("body", "orelse", "finalbody", "handlers"):
                yield from self._eager(getattr(node, child, []))

    def functions(self) -> Iterator[tuple[str, int]]:
        """(name, lines) of every function."""
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def sources(package: str) -> list[SourceFile]:
    base = PACKAGES[package]
    out = []
    for path in sorted(base.rglob("*.py")):
        parts = (package, *path.relative_to(base).with_suffix("").parts)
        out.append(SourceFile(path, ".".join(p for p in parts if p != "__init__")))
    return out


def all_sources() -> list[SourceFile]:
    return [f for package in PACKAGES for f in sources(package)]
