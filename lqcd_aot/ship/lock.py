"""The lock file: which exact artifacts a recipe stands for, by build key and SHA-256.

    schema = "lqcd-aot/lock/v1"
    [recipe]        name, sha256 of the file
    [[artifact]]    name, spec_key, build_key, sha256, size; sorted by name

Owns writing, reading and comparing. A plan that names other keys, or a store that holds other bytes, is refused: what was locked
is what is built and packed, or nothing.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lqcd_aot.store import pins
from lqcd_aot.store.outfile import write_bytes
from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.errors import CorruptError, LqcdError, TooNewError, UsageError

if TYPE_CHECKING:
    from lqcd_aot.build.plan import PlanItem
    from lqcd_aot.store import Store

SCHEMA = "lqcd-aot/lock/v1"
SHOWN = 10
LARGEST = 64 << 20


class Pin(NamedTuple):
    """One artifact: what it is, which build, which bytes."""

    name: str
    spec_key: str
    build_key: str
    sha256: str
    size: int


class Lock(NamedTuple):
    """recipe: name and SHA-256 of the file; pins by name."""

    recipe_name: str
    recipe_sha256: str
    pins: Mapping[str, Pin]


class LockError(LqcdError):
    """What would be built or packed is not what was locked."""


def make_lock(items: Iterable[PlanItem], store: Store, recipe_path: str | os.PathLike[str], recipe_name: str) -> Lock:
    """The lock of a recipe whose artifacts are all in the store. Errors: UsageError naming what is absent."""
    pins, absent = {}, []
    for item in items:
        record = store.record(item.build_key) if item.build_key else None
        if record is None:
            absent.append(item.variant.name)
            continue
        code = record["outputs"]["code"]
        pins[item.variant.name] = Pin(item.variant.name, item.spec_key, record["build_key"], code["sha256"], code["size"])
    if absent:
        raise UsageError(
            f"lock of {recipe_name}: {len(absent)} artifacts are not in store {store.root}",
            details=absent[:SHOWN],
            hint=f"lqcd-aot build {os.fspath(recipe_path)} --store {store.root}",
        )
    return Lock(recipe_name, sha256_hex(Path(recipe_path).read_bytes()), dict(sorted(pins.items())))


def write_lock(lock: Lock, out: str | os.PathLike[str]) -> None:
    """Write it; equal locks give equal bytes. Errors: StoreError."""
    lines = [f"schema = {json.dumps(SCHEMA)}", "", "[recipe]"]
    lines += [f"name = {json.dumps(lock.recipe_name)}", f"sha256 = {json.dumps(lock.recipe_sha256)}"]
    for _, pin in sorted(lock.pins.items()):
        lines += ["", "[[artifact]]"]
        lines += [f"{k} = {json.dumps(v)}" for k, v in pin._asdict().items()]
    write_bytes(out, ("\n".join(lines) + "\n").encode("ascii"), what="lock")


def keep(lock: Lock, path: str, store: Store) -> bool:
    """Have garbage collection keep what a lock file pins, for as long as the file is there; False where it does already.

    Errors: UsageError where some of it is not in the store; StoreError where the store cannot be written.
    """
    file = str(Path(path).resolve())
    return pins.pin(store, "lock", file, [pin.build_key for pin in lock.pins.values()], file=file)


def read_lock(path: str | os.PathLike[str]) -> Lock:
    """From a file. Errors: UsageError where it cannot be read, CorruptError, TooNewError."""
    where = f"lock {os.fspath(path)}"
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{where}: cannot be read", found=error.strerror, hint="lqcd-aot lock RECIPE -o FILE") from error
    return parse_lock(data, where)


def parse_lock(data: bytes, where: str) -> Lock:
    """From the bytes of a lock file. Errors: CorruptError, TooNewError."""
    if len(data) > LARGEST:
        raise CorruptError(f"{where}: is too large", expected=f"at most {LARGEST} bytes", found=len(data))
    try:
        value = tomllib.loads(data.decode("utf-8"))
        schema = value["schema"]
        if schema != SCHEMA:
            kind = TooNewError if str(schema).startswith("lqcd-aot/lock/") else CorruptError
            raise kind(f"{where}: has a schema this release does not read", expected=SCHEMA, found=schema)
        pins = [Pin(**artifact) for artifact in value["artifact"]]
        recipe = value["recipe"]
        lock = Lock(recipe["name"], recipe["sha256"], {pin.name: pin for pin in pins})
        sound = all(isinstance(text, str) for pin in pins for text in pin[:4]) and all(type(pin.size) is int for pin in pins)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptError(f"{where}: is no lock file", found=f"{type(error).__name__}: {error}") from error
    if not sound or len(lock.pins) != len(pins):
        raise CorruptError(f"{where}: is no lock file", found="members of the wrong type, or one artifact twice")
    return lock


def check_plan(lock: Lock, items: Iterable[PlanItem], recipe_path: str | os.PathLike[str]) -> None:
    """Refuse a plan that differs from the lock: another recipe file, other artifacts, other build keys. Errors: LockError."""
    found = {item.variant.name: item for item in items}
    lines = [f"{name}: is not in the lock" for name in sorted(found.keys() - lock.pins.keys())]
    lines += [f"{name}: is in the lock only" for name in sorted(lock.pins.keys() - found.keys())]
    for name in sorted(found.keys() & lock.pins.keys()):
        if found[name].build_key != lock.pins[name].build_key:
            mine, theirs = str(found[name].build_key), lock.pins[name].build_key
            lines.append(f"{name}: build key {mine[:16]}, locked {theirs[:16]}")
    digest = sha256_hex(Path(recipe_path).read_bytes())
    if digest != lock.recipe_sha256:
        lines.insert(0, f"recipe file: digest {digest[:16]}, locked {lock.recipe_sha256[:16]}")
    _refuse(lock, lines, "would not build what was locked")


def check_bytes(lock: Lock, store: Store) -> None:
    """Refuse a store whose locked artifacts are absent or have other bytes. Errors: LockError."""
    lines = []
    for name, pin in sorted(lock.pins.items()):
        record = store.record(pin.build_key)
        code = record["outputs"]["code"] if record else {"sha256": "absent", "size": 0}
        if (code["sha256"], code["size"]) != (pin.sha256, pin.size):
            lines.append(f"{name}: code {str(code['sha256'])[:16]}, locked {pin.sha256[:16]}")
    _refuse(lock, lines, "does not hold what was locked")


def _refuse(lock: Lock, lines: list[str], fact: str) -> None:
    if lines:
        more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        raise LockError(
            f"lock of {lock.recipe_name}: this {fact}, {len(lines)} differences",
            details=[*lines[:SHOWN], *more],
            hint="lqcd-aot why tells what changed; lqcd-aot lock RECIPE -o FILE locks what is there now",
        )
