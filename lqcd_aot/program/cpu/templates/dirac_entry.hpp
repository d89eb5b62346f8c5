// Purpose: the entry points that every dirac artifact answers in the same way.
// Owns: argument checks, buffer sizes, packing entry points. Refuses to know: the operator; an entry file states
// halo, buffer sizes and layout name, and defines lqcd_apply.
#pragma once

#include "spinors.hpp"

namespace lqcd {

inline bool aligned(const void* p) { return p && reinterpret_cast<uintptr_t>(p) % 64 == 0; }
inline bool is_slab(int32_t slab) { return slab >= 0 && slab < kShards; }
inline bool can_apply(const void* out, const void* in, const void* gauge, const void* clover, int64_t clover_bytes,
                      const void* work, int64_t work_bytes, const void* scalars) {
  return aligned(out) && aligned(in) && aligned(gauge) && out != in && scalars && (!work_bytes || aligned(work)) &&
         (!clover_bytes || aligned(clover));
}

}  // namespace lqcd

#define LQCD_SPINOR_ENTRY_POINTS(IN_HALO, GAUGE_BYTES, WORK_BYTES, CLOVER_BYTES, LAYOUT)                      \
  uint64_t lqcd_bytes(int32_t what) {                                                                         \
    using namespace lqcd;                                                                                     \
    const int64_t bytes[] = {GAUGE_BYTES, spinor_bytes(IN_HALO), spinor_bytes(0), WORK_BYTES, CLOVER_BYTES};  \
    return what >= 0 && what < 5 ? uint64_t(bytes[what]) : 0;                                                 \
  }                                                                                                           \
  const char* lqcd_gauge_layout(void) {                                                                       \
    using namespace lqcd;                                                                                     \
    static constexpr auto layout = LAYOUT;                                                                    \
    return layout.chars;                                                                                      \
  }                                                                                                           \
  int32_t lqcd_pack_spinor(void* packed, const void* psi, int32_t slab, lqcd_pool* pool) {                    \
    using namespace lqcd;                                                                                     \
    if (!aligned(packed) || !psi || !is_slab(slab)) return kBadArgument;                                      \
    pack_spinors<IN_HALO>(static_cast<Vector*>(packed), static_cast<const real*>(psi), slab, pool);             \
    return kOk;                                                                                               \
  }                                                                                                           \
  int32_t lqcd_unpack_spinor(void* psi, const void* packed, int32_t slab, lqcd_pool* pool) {                  \
    using namespace lqcd;                                                                                     \
    if (!aligned(packed) || !psi || !is_slab(slab)) return kBadArgument;                                      \
    unpack_spinors(static_cast<real*>(psi), static_cast<const Vector*>(packed), slab, pool);                    \
    return kOk;                                                                                               \
  }

#define LQCD_LINK_ENTRY_POINT                                                                                 \
  int32_t lqcd_pack_gauge(void* packed, const void* links, int32_t slab, const double* scale,                 \
                          const double* phase, lqcd_pool* pool) {                                             \
    using namespace lqcd;                                                                                     \
    if (!aligned(packed) || !links || !scale || !phase || !is_slab(slab)) return kBadArgument;                \
    return pack_links(static_cast<Vector*>(packed), static_cast<const real*>(links), slab, scale, phase, pool); \
  }
