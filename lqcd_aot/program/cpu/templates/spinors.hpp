// Purpose: between complex [batch,T,Z,Y,X,4,3] and the packed spinor field of a slab.
// Owns: the packed spinor [outer site][right-hand side][a stored spinor], its halo, both copies.
// Refuses to know: links and operators.
//
// An even-odd spinor holds the even sites alone; unpacking writes zero on the odd ones.
#pragma once

#include "pool.hpp"
#include "storage.hpp"

namespace lqcd {

inline constexpr int64_t kSiteStride = kBatch * kStoredSpinor;

// Vectors, and bytes, of a field with `halo`.
constexpr int64_t spinor_field(int64_t halo) { return sites_of(halo) * kSiteStride; }
constexpr int64_t spinor_bytes(int64_t halo) { return spinor_field(halo) * int64_t(sizeof(Vector)); }

template <int64_t Halo>
void pack_spinors(Vector* packed, const real* psi, int64_t slab, lqcd_pool* pool) {
  parallel_for(pool, sites_of(Halo), [=](int64_t first, int64_t last) {
    for (int64_t site = first; site < last; ++site) {
      const Coordinates outer = coordinates(site, Halo, 0);
      const real* from[kLanes];
      for (int lane = 0; lane < kLanes; ++lane) from[lane] = psi + global_index(global(outer, lane, slab)) * kSpinor;
      for (int rhs = 0; rhs < kBatch; ++rhs) {
        Vector v[kSpinor];
        for (int lane = 0; lane < kLanes; ++lane)
          for (int k = 0; k < kSpinor; ++k) v[k][lane] = from[lane][rhs * kVolume * kSpinor + k];
        store_spinor<false>(packed + site * kSiteStride + rhs * kStoredSpinor, v);
      }
    }
  });
}

inline void unpack_spinors(real* psi, const Vector* packed, int64_t slab, lqcd_pool* pool) {
  parallel_for(pool, sites_of(0), [=](int64_t first, int64_t last) {
    for (int64_t site = first; site < last; ++site) {
      const Coordinates outer = coordinates(site, 0, 0);
      real* to[kLanes];
      for (int lane = 0; lane < kLanes; ++lane) to[lane] = psi + global_index(global(outer, lane, slab)) * kSpinor;
      for (int rhs = 0; rhs < kBatch; ++rhs) {
        LoadedSpinor place;
        const Vector* v = load_spinor(place, packed + site * kSiteStride + rhs * kStoredSpinor);
        for (int lane = 0; lane < kLanes; ++lane) {
          real* at = to[lane] + rhs * kVolume * kSpinor;
          for (int k = 0; k < kSpinor; ++k) at[k] = v[k][lane];
          if (!kEvenOdd) continue;
          const int64_t odd = (to[lane] - psi) / kSpinor % 2 ? -kSpinor : kSpinor;  // X is even: its pair has the other parity
          for (int k = 0; k < kSpinor; ++k) at[odd + k] = 0;
        }
      }
    }
  });
}

}  // namespace lqcd
