// Purpose: between complex128 [batch,T,Z,Y,X,4,3] of the caller and packed solver vectors in the artifact's precision.
// Owns: rounding and the per-column factor, which makes a right-hand side of any size one of norm 1, and undoes it in the solution.
// Refuses to know: algorithms and operators.
#pragma once

#include "spinors.hpp"

namespace lqcd {

// Calls body(index of a global site, its numbers in the packed field) for every lane and right-hand side of one parity.
template <class Body>
void each_lane(lqcd_pool* pool, int parity, const Body& body) {
  parallel_for(pool, sites_of(0), [&](int64_t first, int64_t last) {
    for (int64_t site = first; site < last; ++site) {
      const Coordinates outer = coordinates(site, 0, parity);
      for (int lane = 0; lane < kLanes; ++lane) {
        const int64_t index = global_index(global(outer, lane, 0));
        for (int rhs = 0; rhs < kBatch; ++rhs)
          body(rhs, index * kSpinor, (site * kSiteStride + rhs * kSpinor) * kLanes + lane);
      }
    }
  });
}

// packed = factor b. A factor of 0 gives a column of zeros whatever b holds.
inline void gather(Vector* packed, const double* b, const double* factor, int parity, lqcd_pool* pool) {
  auto* to = reinterpret_cast<real*>(packed);
  each_lane(pool, parity, [=](int rhs, int64_t from, int64_t at) {
    const double* numbers = b + rhs * kVolume * kSpinor + from;
    for (int k = 0; k < kSpinor; ++k) to[at + k * kLanes] = factor[rhs] == 0 ? real(0) : real(factor[rhs] * numbers[k]);
  });
}

// out = base + factor packed (base may be null, or out itself). A column of factor 0 is the base's.
inline void scatter(double* out, const double* base, const double* factor, const Vector* packed, int parity, lqcd_pool* pool) {
  const auto* numbers = reinterpret_cast<const real*>(packed);
  each_lane(pool, parity, [=](int rhs, int64_t place, int64_t at) {
    const int64_t start = rhs * kVolume * kSpinor + place;
    for (int k = 0; k < kSpinor; ++k) {
      const double before = base ? base[start + k] : 0.0;
      out[start + k] = factor[rhs] == 0 ? before : before + factor[rhs] * double(numbers[at + k * kLanes]);
    }
  });
}

// Changes signs of a packed field as a hash of (global index, component, seed) says: the same on every machine and layout.
inline void scramble(Vector* packed, const int32_t* seed, int parity, lqcd_pool* pool) {
  auto* numbers = reinterpret_cast<real*>(packed);
  each_lane(pool, parity, [=](int rhs, int64_t place, int64_t at) {
    if (seed[rhs] <= 0) return;
    for (int k = 0; k < kSpinor; k += 2) {
      uint64_t h = (uint64_t(place + k) + 1) * 0x9E3779B97F4A7C15u + uint64_t(seed[rhs]) * 0xD1B54A32D192ED03u;
      h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
      h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
      if ((h >> 63) == 0) continue;
      numbers[at + k * kLanes] = -numbers[at + k * kLanes];
      numbers[at + (k + 1) * kLanes] = -numbers[at + (k + 1) * kLanes];
    }
  });
}

}  // namespace lqcd
