"""Entries and manifests: what a record says of one artifact, schema versions, and the physics conventions check.

Owns `Entry` (the part of a build record that travels in a bundle and that the runtime reads), the schema words and the rule
for versions: a known major version is read, a later one is TooNewError, anything else is corrupt. Knows no files and no ZIP.

    entry = record without "components", "provenance" (and "seal"), as canonical JSON
"""

from __future__ import annotations

from lqcd_runtime.digest import tagged_sha256
from lqcd_runtime.errors import CorruptError, TooNewError, UsageError
from lqcd_runtime.signature import SPEC_TAG, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RECORD_SCHEMA = "lqcd-aot/record/v1"
BUNDLE_SCHEMA = "lqcd-aot/bundle/v1"
SPEC_INDEX_SCHEMA = "lqcd-aot/spec-index/v1"
NOT_IN_ENTRY = ("components", "provenance", "seal")
CODE = "code"


def parse_object(data: bytes | str, where: str) -> dict[str, Any]:
    """A JSON object. Errors: CorruptError for anything else, a too deep nesting included."""
    import json

    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as err:
        raise CorruptError(f"{where}: is not JSON", found=err) from err
    if not isinstance(value, dict):
        raise CorruptError(f"{where}: is not a JSON object", found=type(value).__name__)
    return value


def check_schema(found: object, known: str, where: str) -> None:
    """Accept exactly `known`. Errors: TooNewError for a later version of the same schema, CorruptError for anything else."""
    if found == known:
        return
    word, _, version = known.rpartition("/v")
    theirs, _, their_version = str(found).rpartition("/v")
    if theirs == word and their_version.isascii() and their_version.isdigit() and int(their_version) > int(version):
        raise TooNewError(
            f"{where}: was written by a later release",
            expected=known,
            found=found,
            hint="pip install --upgrade lqcd-runtime",
        )
    raise CorruptError(f"{where}: has no known schema", expected=known, found=repr(found))


def check_conventions(found: object, where: str) -> None:
    """Refuse physics conventions other than ours: the numbers would be right for another gamma basis or another sign.

    Errors: CorruptError with the differing names.
    """
    from lqcd_runtime.conventions import CONVENTIONS

    if found == CONVENTIONS:
        return
    theirs = found if isinstance(found, dict) else {}
    differ = sorted(k for k in {*CONVENTIONS, *theirs} if CONVENTIONS.get(k) != theirs.get(k))
    raise CorruptError(
        f"{where}: follows other physics conventions",
        expected="; ".join(f"{k}: {CONVENTIONS.get(k)}" for k in differ),
        found="; ".join(f"{k}: {theirs.get(k)}" for k in differ),
        hint="build the artifact again with this release of lqcd-aot",
    )


class Entry:
    """One artifact: what it computes (`spec`), for which `target`, and the digests of its files.

    outputs: {role: {"sha256", "size", "media_type"}}; "code" is what an engine loads. witness: dictionary or None;
    witness_status: "passed" or "unchecked: <reason>". Immutable by custom; made by `from_dict`.
    """

    __slots__ = ("_raw", "build_key", "outputs", "spec", "spec_key", "target", "witness", "witness_status")

    def __init__(self, raw: dict[str, Any], spec: Spec) -> None:
        self._raw = raw
        self.spec = spec
        self.spec_key: str = raw["spec_key"]
        self.build_key: str = raw["build_key"]
        self.target: str = raw["target"]
        self.outputs: dict[str, dict[str, Any]] = raw["outputs"]
        self.witness: dict[str, Any] | None = raw["witness"]
        self.witness_status: str = raw["witness_status"]

    @classmethod
    def from_dict(cls, raw: object, where: str) -> Entry:
        """An entry from parsed JSON; `where` names its place in messages.

        Errors: TooNewError, CorruptError (absent or ill-typed members, a spec that is not its own key, other conventions).
        """
        if not isinstance(raw, dict):
            raise CorruptError(f"{where}: is not a JSON object")
        check_schema(raw.get("schema"), RECORD_SCHEMA, where)
        try:
            spec = Spec.from_dict(raw["spec"])
            key = tagged_sha256(SPEC_TAG, raw["spec"])  # TypeError for numbers that have no exact spelling
        except (KeyError, TypeError, ValueError, UsageError) as err:
            raise CorruptError(f"{where}: is not a record of an artifact", found=f"{type(err).__name__}: {err}") from err
        if key != raw.get("spec_key"):
            raise CorruptError(f"{where}: its spec does not have its spec_key", expected=raw.get("spec_key"), found=key)
        return cls.of_spec(raw, spec, where)

    @classmethod
    def of_spec(cls, raw: dict[str, Any], spec: Spec, where: str) -> Entry:
        """The same, of a spec that was made of the entry's and compared with its key. Errors: as `from_dict`."""
        check_schema(raw.get("schema"), RECORD_SCHEMA, where)
        try:
            entry = cls(raw, spec)
            code = entry.outputs[CODE]
            sound = isinstance(code["sha256"], str) and isinstance(code["size"], int) and isinstance(entry.target, str)
        except (KeyError, TypeError) as err:
            raise CorruptError(f"{where}: is not a record of an artifact", found=f"{type(err).__name__}: {err}") from err
        if not sound:
            raise CorruptError(f"{where}: is not a record of an artifact", found="members of the wrong type")
        check_conventions(raw.get("conventions"), where)
        return entry

    @property
    def name(self) -> str:
        """The variant's name, e.g. wilson-8x8x8x8-f64-b1@x86-64-v3: also what `lqcd_identity` of the artifact returns."""
        return f"{self.spec.name}@{self.target}"

    @property
    def code(self) -> dict[str, Any]:
        """{"sha256", "size", "media_type"} of the machine code."""
        return self.outputs[CODE]

    def as_dict(self) -> dict[str, Any]:
        """The canonical dictionary, as it stands in entries.jsonl."""
        return self._raw

    def __repr__(self) -> str:
        return f"Entry({self.name})"


def entry_dict(record: dict[str, Any]) -> dict[str, Any]:
    """The entry of a build record: everything but the pre-image of the key and the provenance."""
    return {k: v for k, v in record.items() if k not in NOT_IN_ENTRY}
