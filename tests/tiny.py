"""A tiny dirac artifact in C, for tests of the engine: M psi = diagonal * psi + (slab + 1) * first link element.

It keeps the ABI but packs nothing: packed spinors are one slab of psi as it stands. Pools are counted, threads are not made.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lqcd_runtime.digest import sha256_hex
from lqcd_runtime.manifest import Entry, entry_dict
from lqcd_runtime.signature import Spec
from lqcd_runtime.target import this_host
from tests.made import record

SOURCE = r"""
#include <complex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define E __attribute__((visibility("default")))
typedef double complex c;
enum { SITES = T * Z * Y * X, SLAB = SITES / SHARDS, N = SLAB * 12 };
static int pools;
E int32_t lqcd_abi(void) { return ABI; }
E const char* lqcd_identity(void) { return IDENTITY; }
E void* lqcd_pool_new(int32_t n) { int* p = malloc(sizeof(int)); *p = n; ++pools; return p; }
E void lqcd_pool_free(void* p) { --pools; free(p); }
E uint64_t lqcd_bytes(int32_t what) {
  const uint64_t bytes[] = {16, sizeof(c) * N * BATCH, sizeof(c) * N * BATCH, 8, 0};
  return bytes[what];
}
E const char* lqcd_gauge_layout(void) { return "tiny"; }
E int32_t lqcd_pack_gauge(void* p, const void* u, int32_t slab, const double* scale, const double* phase, void* pool) {
  c value = ((const c*)u)[0] * scale[1] * (phase[0] + I * phase[1]) * (slab + 1);
  memcpy(p, &value, sizeof value);
  return 0;
}
E int32_t lqcd_pack_spinor(void* p, const void* psi, int32_t slab, void* pool) {
  for (int b = 0; b < BATCH; ++b) memcpy((c*)p + b * N, (const c*)psi + b * SITES * 12 + slab * N, sizeof(c) * N);
  return 0;
}
E int32_t lqcd_unpack_spinor(void* psi, const void* p, int32_t slab, void* pool) {
  for (int b = 0; b < BATCH; ++b) memcpy((c*)psi + b * SITES * 12 + slab * N, (const c*)p + b * N, sizeof(c) * N);
  return 0;
}
#ifndef WITHOUT_APPLY
E int32_t lqcd_apply(void* out, const void* in, const void* u, const void* a, void* w, const double* s, void* pool) {
  if (s[0] == 666) return 2;
  double threads = pool ? *(int*)pool : 1;
  memcpy(w, &threads, 8);
  for (int i = 0; i < N * BATCH; ++i) ((c*)out)[i] = s[0] * ((const c*)in)[i] + *(const c*)u;
  return 0;
}
E double tiny_last_threads(const void* w) { return *(const double*)w; }
#endif
"""


def compile_tiny(folder: Path, spec: Spec, *, identity: str | None = None, abi: int = 1, extra: tuple[str, ...] = ()) -> bytes:
    """Machine code for this host; `identity` other than the right one, another `abi`, or -D flags on request."""
    t, z, y, x = spec.lattice
    name = identity if identity is not None else f"{spec.name}@{this_host().best_target()}"
    defines = {
        "T": t, "Z": z, "Y": y, "X": x, "BATCH": spec.batch, "SHARDS": spec.shards, "ABI": abi, "IDENTITY": f'"{name}"',
    }  # fmt: skip
    source, out = folder / "tiny.c", folder / f"tiny-{sha256_hex(repr((defines, extra)).encode())[:16]}.so"
    source.write_text(SOURCE, encoding="ascii")
    flags = [f"-D{k}={v}" for k, v in defines.items()]
    subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", "-O1", "-shared", "-fPIC", "-s", *flags, *extra, "-o", str(out), str(source)],
        check=True, capture_output=True,
    )  # fmt: skip
    return out.read_bytes()


def tiny_entry(spec: Spec, code: bytes) -> Entry:
    """The entry of machine code for this host."""
    target = this_host().best_target()
    assert target is not None
    return Entry.from_dict(entry_dict(record(spec, target, code)), "tiny")
