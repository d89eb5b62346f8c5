"""BuildKey: what an artifact's bytes depend on, as named components and their SHA-256.

    build_key = SHA-256("lqcd-aot/build/v1" 0x00 canonical JSON of {conventions, flags, program, salt, spec, target, toolchain})

Owns the list of components and how two of them differ. Paths, hosts, users, environment, clocks, file names and the version of
this package are not components. The components are stored in the record, so an explanation needs no rebuild.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from lqcd_runtime.conventions import CONVENTIONS
from lqcd_runtime.digest import canonical_json, sha256_hex
from lqcd_runtime.signature import SPEC_TAG, Spec

BUILD_TAG = "lqcd-aot/build/v1"
COMPONENTS = ("conventions", "flags", "program", "salt", "spec", "target", "toolchain")


class Key(NamedTuple):
    """A build key: 64 hex digits and the pre-image they were made of (its parts are shared between keys: read only)."""

    hex: str
    components: dict[str, Any]


class Change(NamedTuple):
    """One differing component: its dotted name, the old value, the new value."""

    component: str
    old: Any
    new: Any


def build_key(
    spec: Spec,
    program_digest: str,
    toolchain_identity: Mapping[str, str],
    flags: Sequence[str],
    target: str,
    salt: str = "",
) -> Key:
    """The build key of a spec compiled from a program by a toolchain with flags for a target.

    program_digest: Program.digest; toolchain_identity: Toolchain.identity(); flags: Toolchain.flags(target), in order; salt:
    disowns earlier builds. Errors: TypeError where a component has no canonical spelling. Source: DESIGN section 5.
    """
    return both_keys(spec, program_digest, toolchain_identity, flags, target, salt)[1]


def both_keys(
    spec: Spec,
    program_digest: str,
    toolchain_identity: Mapping[str, str],
    flags: Sequence[str],
    target: str,
    salt: str = "",
) -> tuple[str, Key]:
    """(spec.key, build_key(...)), spelling the spec once: planning asks for both, ten thousand times."""
    form, spelled, spec_key = _spelled(spec)
    start, middle, end, shared = _framed(tuple(toolchain_identity.items()), tuple(flags), target, salt)
    pre_image = start + canonical_json(program_digest) + middle + spelled + end
    components = {**shared, "program": program_digest, "spec": form}
    return spec_key, Key(sha256_hex(pre_image), components)


@lru_cache(maxsize=64)
def _spelled(spec: Spec) -> tuple[dict[str, Any], bytes, str]:
    """A spec's canonical form, its spelling and its key. The variants of one spec come one after the other."""
    form = spec.as_dict()
    spelled = canonical_json(form)
    return form, spelled, sha256_hex(SPEC_TAG.encode("ascii") + b"\0" + spelled)


@lru_cache(maxsize=256)
def _framed(
    toolchain: tuple[tuple[str, str], ...], flags: tuple[str, ...], target: str, salt: str
) -> tuple[bytes, bytes, bytes, dict[str, Any]]:
    """The pre-image around the program and the spec, and its components: the same for all variants of a target.

    Names are sorted in canonical JSON: conventions, flags, [program], salt, [spec], target, toolchain.
    """
    shared: dict[str, Any] = {
        "conventions": CONVENTIONS,
        "flags": list(flags),
        "salt": salt,
        "target": target,
        "toolchain": dict(toolchain),
    }
    start = canonical_json({name: shared[name] for name in ("conventions", "flags")})[:-1] + b',"program":'
    middle = b"," + canonical_json({"salt": salt})[1:-1] + b',"spec":'
    end = b"," + canonical_json({name: shared[name] for name in ("target", "toolchain")})[1:]
    return BUILD_TAG.encode("ascii") + b"\0" + start, middle, end, shared


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Every component in which two pre-images differ, by dotted name, in sorted order; absent values are None.

    Records hold JSON, so both sides are compared as JSON would give them back (tuples as lists).
    """
    a, b = dict(_flat("", old)), dict(_flat("", new))
    return [Change(name, a.get(name), b.get(name)) for name in sorted(a.keys() | b.keys()) if a.get(name) != b.get(name)]


def _flat(prefix: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [pair for key in value for pair in _flat(f"{prefix}.{key}" if prefix else str(key), value[key])]
    return [(prefix, list(value) if isinstance(value, tuple) else value)]
