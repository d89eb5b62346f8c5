// Purpose: the C interface of a CPU artifact, version 1 (artifacts/README.md, "Entry points").
// Owns: the declarations of every entry point, status codes, buffer kinds, slots of `scalars`.
// Refuses to know: layouts, arithmetic, operators. An entry file defines the entry points of its kind and no others.
#pragma once

#include <stdint.h>

#define LQCD_EXPORT extern "C" __attribute__((visibility("default")))

#ifndef LQCD_IDENTITY
#error "LQCD_IDENTITY is the string spec.name@target; the engine refuses an artifact that answers another one"
#endif

struct lqcd_pool;

namespace lqcd {

inline constexpr int32_t kAbi = 1;

enum Status : int32_t { kOk = 0, kBadArgument = 2, kNotInGroup = 3 };
enum Buffer : int32_t { kPackedGauge = 0, kSpinorIn = 1, kSpinorOut = 2, kWorkspace = 3, kPackedClover = 4, kState = 5 };
enum Scalar : int32_t { kDiagonal = 0, kCsw = 1, kTwist = 2, kScalarCount = 8 };

}  // namespace lqcd

// Every artifact. A pool belongs to the artifact that made it and serves one call at a time; a null pool means serial. A negative
// number of threads: so many, the further ones pinned to CPUs (pool.hpp).
LQCD_EXPORT int32_t lqcd_abi(void);
LQCD_EXPORT const char* lqcd_identity(void);
LQCD_EXPORT lqcd_pool* lqcd_pool_new(int32_t threads);
LQCD_EXPORT void lqcd_pool_free(lqcd_pool* pool);
// Bytes of a buffer (lqcd::Buffer); 0 for one that this artifact does not use. Buffers are aligned to 64 bytes.
LQCD_EXPORT uint64_t lqcd_bytes(int32_t what);

// Kinds `dirac` and `builder`. links: complex [T,Z,Y,X,4,3,3], psi: complex [batch,T,Z,Y,X,4,3], both the full lattice.
// Status 3 of lqcd_pack_gauge: the artifact keeps two rows of a link, and of these links the third is not what two make it.
// scale: factor of the hop term per direction; phase: (re,im) of the factor of U_mu on the last slice of direction mu.
LQCD_EXPORT const char* lqcd_gauge_layout(void);
LQCD_EXPORT int32_t lqcd_pack_gauge(void* packed, const void* links, int32_t slab, const double* scale,
                                    const double* phase, lqcd_pool* pool);
LQCD_EXPORT int32_t lqcd_pack_spinor(void* packed, const void* psi, int32_t slab, lqcd_pool* pool);
LQCD_EXPORT int32_t lqcd_unpack_spinor(void* psi, const void* packed, int32_t slab, lqcd_pool* pool);
LQCD_EXPORT int32_t lqcd_pack_clover(void* packed, const void* links, int32_t slab, const double* scalars,
                                     lqcd_pool* pool);
LQCD_EXPORT int32_t lqcd_apply(void* out, const void* in, const void* gauge, const void* clover, void* work,
                               const double* scalars, lqcd_pool* pool);

// Kind `solver`: state (bytes 5) belongs to the caller and holds packed vectors between calls; b, out, base: complex128
// [batch,T,Z,Y,X,4,3] of the full lattice, whatever the artifact's precision and parity; factor [batch]: the system solved is that
// of factor b, rounded to the artifact's precision, and a column of factor 0 is left alone.
//   begin    x = 0, r from b. mode [batch]: cg: 1 keeps the search direction of the state (reliable update); bicgstab: how often the
//            column broke down so far. norms [batch]: |r|^2 of the recursion (cg: of M^dag b)
//   iterate  up to `iterations` for every column with |r|^2 > stop [batch]. history [iterations][2][batch]: |r|^2; cg: what |b - M x|^2
//            fell by, bicgstab: |omega|. outcome [batch][2]: iterations done, status (0 runs, 1 at or below stop, 2 breakdown, 3 not finite)
//   end      out = base (may be null or out) + factor x, on all sites. The state stays as it is, so that iterate may go on.
LQCD_EXPORT int32_t lqcd_solve_begin(void* state, const double* b, const double* factor, const int32_t* mode, const void* gauge,
                                     const void* clover, void* work, const double* scalars, double* norms, lqcd_pool* pool);
LQCD_EXPORT int32_t lqcd_solve_iterate(void* state, const void* gauge, const void* clover, void* work, const double* scalars,
                                       const double* stop, int32_t iterations, double* history, int32_t* outcome,
                                       lqcd_pool* pool);
LQCD_EXPORT int32_t lqcd_solve_end(double* out, const double* base, const double* factor, void* state, const void* gauge,
                                   const void* clover, void* work, const double* scalars, lqcd_pool* pool);

// Kinds `observable` and `gauge_map`. Results are float64; links keep the artifact's dtype.
LQCD_EXPORT int32_t lqcd_observe(double* results, const void* links, const double* scalars, void* work,
                                 lqcd_pool* pool);
LQCD_EXPORT int32_t lqcd_map(void* links_out, const void* links_in, const double* scalars, void* work,
                             lqcd_pool* pool);

// The answers that are the same for every kind.
int32_t lqcd_abi(void) { return lqcd::kAbi; }
const char* lqcd_identity(void) { return LQCD_IDENTITY; }
