// Purpose: between complex [batch,T,Z,Y,X,4,3] and the packed spinor field of a slab.
// Owns: the packed spinor [outer site][right-hand side][24][lane], its halo, both copies.
// Refuses to know: links and operators.
//
// An even-odd spinor holds the even sites alone; unpacking writes zero on the odd ones.
#pragma once

#include "pool.hpp"
#include "spin.hpp"

namespace lqcd {

inline constexpr int64_t kSiteStride = kBatch * kSpinor;

// Vectors, and bytes, of a field with `halo`.
constexpr int64_t spinor_field(int64_t halo) { return sites_of(halo) * kSiteStride; }
constexpr int64_t spinor_bytes(int64_t halo) { return spinor_field(halo) * int64_t(sizeof(Vector)); }

template <int64_t Halo>
void pack_spinors(real* packed, const real* psi, int64_t slab, lqcd_pool* pool) {
  parallel_for(pool, sites_of(Halo), [=](int64_t first, int64_t last) {
    for (int64_t site = first; site < last; ++site) {
      const Coordinates outer = coordinates(site, Halo, 0);
      for (int lane = 0; lane < kLanes; ++lane) {
        const real* from = psi + global_index(global(outer, lane, slab)) * kSpinor;
        real* to = packed + site * kSiteStride * kLanes + lane;
        for (int rhs = 0; rhs < kBatch; ++rhs, from += kVolume * kSpinor, to += kSpinor * kLanes)
          for (int k = 0; k < kSpinor; ++k) to[k * kLanes] = from[k];
      }
    }
  });
}

inline void unpack_spinors(real* psi, const real* packed, int64_t slab, lqcd_pool* pool) {
  parallel_for(pool, sites_of(0), [=](int64_t first, int64_t last) {
    for (int64_t site = first; site < last; ++site) {
      const Coordinates outer = coordinates(site, 0, 0);
      for (int lane = 0; lane < kLanes; ++lane) {
        const int64_t index = global_index(global(outer, lane, slab));
        real* to = psi + index * kSpinor;
        const real* from = packed + site * kSiteStride * kLanes + lane;
        for (int rhs = 0; rhs < kBatch; ++rhs, to += kVolume * kSpinor, from += kSpinor * kLanes)
          for (int k = 0; k < kSpinor; ++k) to[k] = from[k * kLanes];
        if (!kEvenOdd) continue;
        real* odd = psi + (index ^ 1) * kSpinor;  // X is even: sites come in pairs of opposite parity
        for (int rhs = 0; rhs < kBatch; ++rhs, odd += kVolume * kSpinor)
          for (int k = 0; k < kSpinor; ++k) odd[k] = 0;
      }
    }
  });
}

}  // namespace lqcd
