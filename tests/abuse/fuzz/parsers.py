"""The parsers that meet foreign bytes. Each entry: name -> (function of bytes, errors that are an answer).

Anything else that comes out (another exception, a hang, an allocation that the input's size does not justify) is a defect.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from lqcd_runtime.errors import LqcdError

Parser = Callable[[bytes], object]


def recipe(data: bytes) -> object:
    """A recipe file, expanded as far as its first hundred variants, where no "auto" asks for whole programs to be lowered."""
    from itertools import islice

    from lqcd_aot.recipe import expand
    from lqcd_aot.recipe.load import loads

    read = loads(data)
    return read if b"auto" in data else list(islice(expand(read), 100))


def lock(data: bytes) -> object:
    """A lock file."""
    from lqcd_aot.ship.lock import parse_lock

    return parse_lock(data, "lock")


def entry(data: bytes) -> object:
    """An entry of a manifest."""
    from lqcd_runtime.manifest import Entry, parse_object

    return Entry.from_dict(parse_object(data, "entry"), "entry")


def record(data: bytes) -> object:
    """A record in a store. Answers with ValueError, which the store treats as a miss."""
    from lqcd_aot.store.record_format import parse_record

    return parse_record(data, "0" * 64)


def bundle(data: bytes) -> object:
    """A bundle file: opened, every byte verified, its signatures read, its entries listed."""
    from lqcd_runtime.bundle_file import BundleFile
    from lqcd_runtime.signatures import signatures

    opened = BundleFile(_file(data, "fuzz.lqcd"))
    try:
        entries = list(opened.entries())
        signatures(opened)
        return opened.verify(), entries
    finally:
        opened.close()


def index(data: bytes) -> object:
    """A bundle whose binary index is the input and whose digests are all right: only the index itself can be wrong."""
    from tests.abuse.fuzz.seeds import bundle_with_index

    return bundle(bundle_with_index(data))


def envelope(data: bytes) -> object:
    """A signature over a manifest."""
    from lqcd_runtime.signatures import check_manifest

    return check_manifest(data, "0" * 64, "signature")


def record_signatures(data: bytes) -> object:
    """Signatures of records."""
    from lqcd_runtime.signatures import check_records

    return check_records(data, {"0" * 64: "1" * 64}, "signatures")


def public_key(data: bytes) -> object:
    """A public key file."""
    from lqcd_aot.trust.keys import parse_public_key

    return parse_public_key(data, "key")


def reference(data: bytes) -> object:
    """What a remote says a name stands for."""
    from lqcd_aot.ship.remotes.shelf import parse_reference

    return parse_reference(data, "remote")


def image_index(data: bytes) -> object:
    """What a registry says a tag stands for."""
    from lqcd_aot.ship.remotes.oci import reference_in

    return reference_in(data, "remote")


def gauge_file(data: bytes) -> object:
    """A gauge configuration: NERSC, LIME or MILC."""
    from lqcd_runtime.gauge_io import load_gauge

    return load_gauge(_file(data, "fuzz.cfg"))


def neff(data: bytes) -> object:
    """The header of a NEFF."""
    from lqcd_runtime.neff import parse_neff

    return parse_neff(data)


def sim_neff(data: bytes) -> object:
    """The container that the compiler's double writes."""
    from lqcd_runtime.neff import parse_sim

    return parse_sim(data)


def hlo(data: bytes) -> object:
    """An HLO module, parsed and validated."""
    from lqcd_aot.program.hlo.validate import validate

    return validate(data)


def _hlo_answers() -> tuple[type[Exception], ...]:
    from lqcd_aot.program.hlo.validate import InvalidHlo

    return (InvalidHlo,)


PARSERS: dict[str, Parser] = {
    f.__name__: f
    for f in (
        recipe, lock, entry, record, bundle, index, envelope, record_signatures, public_key, reference, image_index, gauge_file,
        neff, sim_neff, hlo,
    )
}  # fmt: skip


def answers(name: str) -> tuple[type[Exception], ...]:
    """The errors that a parser may answer with."""
    more: tuple[type[Exception], ...] = {"record": (ValueError,), "hlo": _hlo_answers()}.get(name, ())
    return (LqcdError, *more)


_folder: str | None = None


def _file(data: bytes, name: str) -> str:
    """The input as a file, always the same one of this process."""
    global _folder
    if _folder is None or not Path(_folder).is_dir():
        _folder = tempfile.mkdtemp(prefix=f"lqcd-fuzz-{os.getpid()}-")
    path = Path(_folder) / name
    path.write_bytes(data)
    return str(path)


def clean() -> None:
    """Remove the file."""
    import shutil

    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)
