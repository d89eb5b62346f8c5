// Purpose: between complex [batch,T,Z,Y,X,4,3] and the packed spinor field of a slab.
// Owns: the packed spinor [outer site][right-hand side][a stored spinor], its halo, both copies, the order of copies.
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

// Sites whose right-hand sides are taken one after the other: the columns of a batch lie powers of two apart, so taken side by side
// they would drive each other out of the cache.
inline constexpr int64_t kRun = kBatch > 1 ? 8 : 1;

// Calls body(rhs, offset of the spinor in a packed field, where each lane's numbers are in the unpacked columns) for every site and
// right-hand side of one parity.
template <int64_t Halo, class Body>
void each_spinor(lqcd_pool* pool, int parity, int64_t slab, const Body& body) {
  parallel_for(pool, sites_of(Halo), [&](int64_t first, int64_t last) {
    for (int64_t run = first; run < last; run += kRun) {
      const int64_t count = last - run < kRun ? last - run : kRun;
      int64_t place[kRun][kLanes];
      for (int64_t i = 0; i < count; ++i) {
        const Coordinates outer = coordinates(run + i, Halo, parity);
        for (int lane = 0; lane < kLanes; ++lane) place[i][lane] = global_index(global(outer, lane, slab)) * kSpinor;
      }
      for (int rhs = 0; rhs < kBatch; ++rhs)
        for (int64_t i = 0; i < count; ++i) {
          body(rhs, (run + i) * kSiteStride + rhs * kStoredSpinor, place[i]);
          for (int lane = 0; lane < kLanes; ++lane) place[i][lane] += kVolume * kSpinor;
        }
    }
  });
}

template <int64_t Halo>
void pack_spinors(Vector* packed, const real* psi, int64_t slab, lqcd_pool* pool) {
  each_spinor<Halo>(pool, 0, slab, [=](int, int64_t at, const int64_t (&place)[kLanes]) {
    Vector v[kSpinor];
    for (int lane = 0; lane < kLanes; ++lane)
      for (int k = 0; k < kSpinor; ++k) v[k][lane] = psi[place[lane] + k];
    store_spinor<false>(packed + at, v);
  });
}

inline void unpack_spinors(real* psi, const Vector* packed, int64_t slab, lqcd_pool* pool) {
  each_spinor<0>(pool, 0, slab, [=](int, int64_t at, const int64_t (&place)[kLanes]) {
    LoadedSpinor loaded;
    const Vector* v = load_spinor(loaded, packed + at);
    for (int lane = 0; lane < kLanes; ++lane) {
      real* to = psi + place[lane];
      for (int k = 0; k < kSpinor; ++k) to[k] = v[k][lane];
      if (!kEvenOdd) continue;
      const int64_t odd = place[lane] / kSpinor % 2 ? -kSpinor : kSpinor;  // X is even: its pair has the other parity
      for (int k = 0; k < kSpinor; ++k) to[odd + k] = 0;
    }
  });
}

}  // namespace lqcd
