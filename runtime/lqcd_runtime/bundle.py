"""`Bundle`: what a user holds after `open`: entries, selection, operators, observables, over a bundle file or a store folder.

Owns `open_bundle` and the artifacts loaded through one bundle (each loaded once, unloaded when the last operator is gone).
Where bytes come from is the business of `bundle_file` and `store_reader`; what they mean, of `operator` and `engines`.
"""

from __future__ import annotations

import os

from lqcd_runtime.bundle_file import BundleFile
from lqcd_runtime.errors import UsageError
from lqcd_runtime.select import select
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import this_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from lqcd_runtime.engines.cpu import CpuArtifact
    from lqcd_runtime.engines.neff_artifact import NeffArtifact
    from lqcd_runtime.gauge_calls import GaugeMap, Observable
    from lqcd_runtime.manifest import Entry
    from lqcd_runtime.neff_observable import NeffObservable
    from lqcd_runtime.neff_solver import ChunkSolver
    from lqcd_runtime.operator import DiracOperator
    from lqcd_runtime.select import Selection
    from lqcd_runtime.store_layers import LayeredFolder
    from lqcd_runtime.store_reader import StoreFolder
    from lqcd_runtime.target import Host


def open_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Open a bundle file or a store folder for reading.

    Errors: LqcdError where nothing is there, StoreError for a folder that is no store, CorruptError, TooNewError.
    """
    text = os.fspath(path)
    if os.path.isdir(text):
        from lqcd_runtime.store_layers import open_layers

        return Bundle(open_layers(text))
    return Bundle(BundleFile(text))


class Bundle:
    """Prebuilt artifacts, ready to be selected and loaded. A context manager; safe to share between threads."""

    def __init__(self, source: BundleFile | StoreFolder | LayeredFolder) -> None:
        import weakref

        self.source = source
        self.path = source.path
        self._loaded: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self.packed_gauges: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Bundle({self.path!r})"

    def close(self) -> None:
        """Release the file. Operators made before stay usable."""
        self.source.close()

    def entries(self) -> Iterator[Entry]:
        """All entries, sorted by (spec_key, target)."""
        return self.source.entries()

    def find(self, spec: Spec) -> list[Entry]:
        """The entries of a spec, for whatever target."""
        return self.source.find(spec)

    def verify(self) -> int:
        """Compare every byte with its digest; the number of bytes compared. Errors: CorruptError."""
        return self.source.verify()

    def read_blob(self, sha256: str) -> bytes:
        """The bytes with this digest. Errors: CorruptError."""
        return self.source.read_blob(sha256)

    def record(self, build_key: str) -> dict[str, Any]:
        """The build record: entry, pre-image of the build key, provenance. Errors: CorruptError."""
        import json

        return dict(json.loads(self.source.record(build_key)))

    def layer_of(self, entry: Entry) -> str:
        """Where an entry comes from: the bundle file, or the folder of the store that gives it."""
        return self.source.layer_of(entry.build_key)

    def select(self, spec: Spec, host: Host | None = None, engine: str | None = None) -> Selection:
        """The artifact of a spec for a host (this one by default), and a decision for every candidate.

        engine: "cpu", "neuron" or "sim" to accept no other. Errors: NoVariant with the nearest candidate and the differing
        fields; UsageError for an unknown engine.
        """
        entries, rejected = self.source.candidates(spec)
        return select(
            spec,
            entries,
            host or this_host(),
            rejected=rejected,
            nearest=lambda: self.source.nearest(spec),
            where=f"{self.source.kind} {self.path}",
            engine=engine,
        )

    def load(self, entry: Entry) -> Any:
        """The loaded artifact of an entry, one per entry and process: CpuArtifact or, for NEFFs, NeffArtifact.

        Errors: EngineError, CorruptError, TooNewError.
        """
        artifact: CpuArtifact | NeffArtifact | None = self._loaded.get(entry.build_key)
        if artifact is None:
            from lqcd_runtime.engines import load

            artifact = load(self.read_blob(entry.code["sha256"]), entry)
            self._loaded[entry.build_key] = artifact
        return artifact

    def loaded(self) -> list[Entry]:
        """The entries whose artifacts are loaded now through this bundle, by name: what a measurement really used."""
        return sorted((artifact.entry for artifact in self._loaded.values()), key=lambda entry: entry.name)

    def operator(
        self,
        name: str,
        *,
        gauge: Any,
        mass: float | None = None,
        kappa: float | None = None,
        csw: float | None = None,
        mu: float | None = None,
        t_boundary: int = 1,
        phases: Sequence[complex] | None = None,
        anisotropy: Any = None,
        dtype: str = "float64",
        storage: str | None = None,
        batch: int = 1,
        fused: bool = False,
        shards: int = 1,
        threads: int | None = None,
        engine: str | None = None,
        cores: Sequence[int] | None = None,
    ) -> DiracOperator:
        """A Dirac operator over a gauge field (Gauge or complex [T,Z,Y,X,4,3,3]).

        mass or kappa = 1/(8+2m), csw, mu: as the operator needs. t_boundary: 1 or -1, or `phases` of T, Z, Y, X.
        anisotropy: xi0, (xi0, nu) or {"xi0":, "nu":}. dtype, storage (None: as dtype), batch, fused, shards: which artifact.
        engine: "cpu", "neuron", or "sim" for a simulated artifact, which nothing else chooses. threads: of the CPU; cores:
        NeuronCores that share the right-hand sides, all by default. Errors: UsageError, NoVariant, CorruptError, EngineError.
        """
        from lqcd_runtime.inputs import resolve
        from lqcd_runtime.operator_choice import Running, lattice_of, operator
        from lqcd_runtime.signature import kind_of

        if kind_of(name) != "dirac":
            raise UsageError(
                f"operator {name}: is no Dirac operator", found=kind_of(name), hint=f"bundle.observable({name!r}, ...)"
            )
        inputs = resolve(
            name, mass=mass, kappa=kappa, csw=csw, mu=mu, t_boundary=t_boundary, phases=phases, anisotropy=anisotropy
        )  # fmt: skip
        spec = Spec(name, lattice_of(gauge), dtype, storage=storage, batch=batch, fused=fused, shards=shards)
        return operator(self, spec, gauge, inputs, Running(threads, engine, None if cores is None else tuple(cores)))

    def chunk_solver(
        self,
        name: str,
        *,
        gauge: Any,
        iterations: int,
        dtype: str = "float32",
        batch: int = 1,
        fused: bool = False,
        engine: str | None = None,
        cores: Sequence[int] | None = None,
        **inputs: Any,
    ) -> ChunkSolver:
        """Corrections by a solver chunk, for `lqcd_runtime.solve(D, b, inner=...)`; see neff_solver.

        name: e.g. "wilson_cg_chunk"; iterations: per call; inputs: mass or kappa, t_boundary or phases, anisotropy; the rest
        and the errors as `operator`.
        """
        from lqcd_runtime.inputs import resolve
        from lqcd_runtime.neff_solver import chunk_solver
        from lqcd_runtime.operator_choice import lattice_of

        spec = Spec(name, lattice_of(gauge), dtype, batch=batch, fused=fused, iterations=iterations)
        return chunk_solver(self, spec, gauge, resolve(name, **inputs), engine, None if cores is None else tuple(cores))

    def observable(
        self, name: str, lattice: Any, dtype: str = "float64", *, threads: int | None = None, engine: str | None = None
    ) -> Observable | NeffObservable:
        """A gauge observable as a callable: `(gauge, **inputs) -> {result: float}`. engine, errors: as `operator`."""
        from lqcd_runtime.gauge_calls import Observable
        from lqcd_runtime.target import CPU_TARGETS

        artifact = self._gauge_artifact("observable", name, lattice, dtype, engine)
        if artifact.entry.target in CPU_TARGETS:
            return Observable(artifact, threads)
        from lqcd_runtime.neff_observable import NeffObservable

        return NeffObservable(artifact)

    def gauge_map(self, name: str, lattice: Any, dtype: str = "float64", *, threads: int | None = None) -> GaugeMap:
        """A map of gauge fields as a callable: `(gauge, **inputs) -> links`. Errors: as `operator`."""
        from lqcd_runtime.gauge_calls import GaugeMap

        return GaugeMap(self._gauge_artifact("gauge_map", name, lattice, dtype), threads)

    def _gauge_artifact(self, kind: str, name: str, lattice: Any, dtype: str, engine: str | None = None) -> Any:
        spec = Spec(name, lattice, dtype)
        if spec.kind != kind:
            raise UsageError(f"operator {name}: is of another kind", expected=kind, found=spec.kind)
        return self.load(self.select(spec, engine=engine).choice)
