// Purpose: between complex128 [batch,T,Z,Y,X,4,3] of the caller and packed solver vectors in the artifact's precision.
// Owns: rounding and the per-column factor, which makes a right-hand side of any size one of norm 1, and undoes it in the solution.
// Refuses to know: algorithms and operators.
#pragma once

#include "spinors.hpp"

namespace lqcd {

// packed = factor b. A factor of 0 gives a column of zeros whatever b holds.
inline void gather(Vector* packed, const double* b, const double* factor, int parity, lqcd_pool* pool) {
  each_spinor<0>(pool, parity, 0, [=](int rhs, int64_t at, const int64_t (&place)[kLanes]) {
    Vector v[kSpinor] = {};
    if (factor[rhs] != 0)
      for (int lane = 0; lane < kLanes; ++lane)
        for (int k = 0; k < kSpinor; ++k) v[k][lane] = real(factor[rhs] * b[place[lane] + k]);
    store_spinor<false>(packed + at, v);
  });
}

// The solution is kept as computed, whatever else is stored in halves: it is a sum over all iterations.
LQCD_INLINE int64_t solution_at(int64_t at) { return kHalves ? at / kStoredSpinor * kSpinor : at; }

// out = base + factor x on the sites of one parity (base may be null, or out itself). A column of factor 0 is the base's.
// spinor(place, offset): the vectors of x at the offset of a stored spinor.
template <class Spinor>
void scatter(double* out, const double* base, const double* factor, int parity, lqcd_pool* pool, const Spinor& spinor) {
  each_spinor<0>(pool, parity, 0, [=](int rhs, int64_t at, const int64_t (&place)[kLanes]) {
    LoadedSpinor loaded;
    const Vector* v = spinor(loaded, at);
    for (int lane = 0; lane < kLanes; ++lane)
      for (int k = 0; k < kSpinor; ++k) {
        const int64_t to = place[lane] + k;
        const double before = base ? base[to] : 0.0;
        out[to] = factor[rhs] == 0 ? before : before + factor[rhs] * double(v[k][lane]);
      }
  });
}

// Changes signs of a packed field as a hash of (global index, component, seed) says: the same on every machine and layout.
inline void scramble(Vector* packed, const int32_t* seed, int parity, lqcd_pool* pool) {
  each_spinor<0>(pool, parity, 0, [=](int rhs, int64_t at, const int64_t (&place)[kLanes]) {
    if (seed[rhs] <= 0) return;
    LoadedSpinor loaded;
    const Vector* old = load_spinor(loaded, packed + at);
    Vector v[kSpinor];
    for (int k = 0; k < kSpinor; ++k) v[k] = old[k];
    for (int lane = 0; lane < kLanes; ++lane)
      for (int k = 0; k < kSpinor; k += 2) {
        const int64_t number = place[lane] - rhs * kVolume * kSpinor + k;
        uint64_t h = (uint64_t(number) + 1) * 0x9E3779B97F4A7C15u + uint64_t(seed[rhs]) * 0xD1B54A32D192ED03u;
        h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
        h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
        if ((h >> 63) == 0) continue;
        v[k][lane] = -v[k][lane];
        v[k + 1][lane] = -v[k + 1][lane];
      }
    store_spinor<false>(packed + at, v);
  });
}

}  // namespace lqcd
