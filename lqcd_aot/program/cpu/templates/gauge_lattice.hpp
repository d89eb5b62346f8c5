// Purpose: the gauge field as structure of arrays, so that a SIMD vector holds neighbouring sites along X.
// Owns: the work layout, its packing and unpacking, neighbours. Refuses to know: loops, observables, flow.
//
//   field[row = (t,z,y)][mu][component: 9 re, 9 im][kStride],  element 1 + x holds site x
//
// Element 0 is site X-1 and the elements from X+1 on repeat the row periodically: a load of kLanes sites at x-1, x or x+1 never
// needs a permutation or a special case, for any X >= 2. Lanes beyond X-1 compute repeated sites; they are not summed or stored.
// Work<double> or Work<float>: arithmetic in that type whatever the type of the caller's links (LQCD_REAL).
#pragma once

#include <stdint.h>

#include "gauge_matrix.hpp"
#include "pool.hpp"

namespace lqcd {

inline constexpr int kExtent[4] = {LQCD_T, LQCD_Z, LQCD_Y, LQCD_X};
inline constexpr int64_t kRows = int64_t(LQCD_T) * LQCD_Z * LQCD_Y;
inline constexpr int64_t kSites = kRows * LQCD_X;

using Link = LQCD_REAL;  // of the caller's arrays: complex, C order [T,Z,Y,X,4,3,3]
inline constexpr int kLinkReals = 18, kSiteReals = 4 * kLinkReals;

// The smallest vector that covers a row, but no longer than a register.
template <class R>
constexpr int lanes() {
  int n = 2;
  while (n < LQCD_X && 2 * n * int(sizeof(R)) <= LQCD_VECTOR_BYTES) n *= 2;
  return n;
}

// A class of its own: gcc loses the attribute of a dependent type that is used where it is declared.
template <class R>
struct VectorOf {
  typedef R Type __attribute__((vector_size(lanes<R>() * sizeof(R))));
};

struct Site {
  int at[4];  // t, z, y and, in steps of the lanes, x; at[3] may be one step outside the row

  LQCD_INLINE Site shifted(int mu, int by) const {
    Site out = *this;
    const int moved = at[mu] + by;
    out.at[mu] = mu == 3 ? moved : moved < 0 ? kExtent[mu] - 1 : moved == kExtent[mu] ? 0 : moved;
    return out;
  }
};

LQCD_INLINE Site site_of_row(int64_t row, int x) {
  const int y = int(row % LQCD_Y), z = int(row / LQCD_Y % LQCD_Z), t = int(row / (int64_t(LQCD_Y) * LQCD_Z));
  return {{t, z, y, x}};
}

template <class R>
struct Work {
  static constexpr int kLanes = lanes<R>();
  static constexpr int kSteps = (LQCD_X + kLanes - 1) / kLanes;
  static constexpr int kStride = kSteps * kLanes + 2;
  static constexpr int64_t kRowReals = int64_t(kStride) * kSiteReals;
  static constexpr uint64_t kBytes = (sizeof(R) * kRows * kRowReals + 63) / 64 * 64;

  using V = typename VectorOf<R>::Type;
  using M = Matrix<V>;

  static LQCD_INLINE int64_t offset(const Site& s, int mu) {
    const int64_t row = (int64_t(s.at[0]) * LQCD_Z + s.at[1]) * LQCD_Y + s.at[2];
    return row * kRowReals + int64_t(mu) * kLinkReals * kStride + 1 + s.at[3];
  }

  static LQCD_INLINE M load(const R* field, const Site& s, int mu) {
    const R* p = field + offset(s, mu);
    M out;
    for (int i = 0; i < 9; ++i) {
      __builtin_memcpy(&out.re[i], p + i * kStride, sizeof(V));
      __builtin_memcpy(&out.im[i], p + (9 + i) * kStride, sizeof(V));
    }
    return out;
  }

  static LQCD_INLINE void store(R* field, const Site& s, int mu, const M& m) {
    R* p = field + offset(s, mu);
    for (int i = 0; i < 9; ++i) {
      __builtin_memcpy(p + i * kStride, &m.re[i], sizeof(V));
      __builtin_memcpy(p + (9 + i) * kStride, &m.im[i], sizeof(V));
    }
  }

  // Repeat the row periodically outside [0, X); to be called when all of its sites are stored.
  static void close_row(R* field, int64_t row) {
    for (R* p = field + row * kRowReals; p < field + (row + 1) * kRowReals; p += kStride) {
      p[0] = p[LQCD_X];
      for (int e = LQCD_X + 1; e < kStride; ++e) p[e] = p[e - LQCD_X];
    }
  }

  static void pack(R* field, const Link* links, lqcd_pool* pool) {
    parallel_for(pool, kRows, [=](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        const Link* from = links + row * LQCD_X * kSiteReals;
        R* to = field + row * kRowReals + 1;
        for (int mu = 0; mu < 4; ++mu)
          for (int i = 0; i < 9; ++i)
            for (int x = 0; x < LQCD_X; ++x) {
              const Link* element = from + x * kSiteReals + mu * kLinkReals + 2 * i;
              to[(mu * kLinkReals + i) * kStride + x] = R(element[0]);
              to[(mu * kLinkReals + 9 + i) * kStride + x] = R(element[1]);
            }
        close_row(field, row);
      }
    });
  }

  static void unpack(Link* links, const R* field, lqcd_pool* pool) {
    parallel_for(pool, kRows, [=](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        Link* to = links + row * LQCD_X * kSiteReals;
        const R* from = field + row * kRowReals + 1;
        for (int x = 0; x < LQCD_X; ++x)
          for (int mu = 0; mu < 4; ++mu)
            for (int i = 0; i < 9; ++i) {
              Link* element = to + x * kSiteReals + mu * kLinkReals + 2 * i;
              element[0] = Link(from[(mu * kLinkReals + i) * kStride + x]);
              element[1] = Link(from[(mu * kLinkReals + 9 + i) * kStride + x]);
            }
      }
    });
  }

  // sum += the lanes of v that are sites of the row, in order
  static LQCD_INLINE void add_sites(double& sum, const V& v, int x) {
    for (int lane = 0; lane < kLanes; ++lane)
      if (x + lane < LQCD_X) sum += double(v[lane]);
  }
};

}  // namespace lqcd
