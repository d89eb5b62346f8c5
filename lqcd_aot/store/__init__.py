"""The artifact store: bytes and digests, no physics.

On disk: artifacts/README.md. What each file is for:

    fs.py             the port: every write of store and pack is one of its calls; real implementation; retries
    owner.py          who wrote a temporary file or holds a lease, and whether that process is dead
    layout.py         paths and VERSION
    writer.py         temporary file -> fsync -> rename or link -> fsync of the folder; errors; permissions
    sealed.py         canonical JSON that carries its own digest
    problems.py       what was found wrong, each once
    corrupt.py        putting bad entries aside
    blobs.py          bytes under their digest
    record_format.py  what a record and a spec's index must hold
    records.py        build records: first writer wins, divergences, the fast listing
    specs.py          from a spec to its records
    failures.py       which failed compiles are remembered
    leases.py         who is building what
    listing.py        the disposable list that spares a plan the reading of every record
    roots.py          what garbage collection must keep
    pins.py           a root that is checked
    layers.py         read-only stores below a store
    gc_mark.py        garbage collection: what goes, and why
    condemned.py      what is unreferenced, and since when
    departing.py      removals that can be taken back
    gc.py             garbage collection: evict, sweep
    temporaries.py    cleaning tmp/
    verify.py         reading and judging everything
    verified.py       what need not be read again: the journal of what was verified
    inventory.py      what can be reused at one look, and whether its bytes are right
    contents.py       everything a store holds, with its state
    statistics.py     logical, unique and compressed bytes
    store.py          the folder as a whole
"""

from lqcd_aot.store.failures import Failure as Failure
from lqcd_aot.store.inventory import Inventory as Inventory
from lqcd_aot.store.problems import Problem as Problem
from lqcd_aot.store.record_format import Published as Published
from lqcd_aot.store.record_format import Record as Record
from lqcd_aot.store.roots import Root as Root
from lqcd_aot.store.store import Store as Store
from lqcd_aot.store.store import open_store as open_store
from lqcd_aot.store.verify import VerifyReport as VerifyReport

__all__ = ["Failure", "Inventory", "Problem", "Published", "Record", "Root", "Store", "VerifyReport", "open_store"]
