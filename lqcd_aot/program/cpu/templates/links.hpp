// Purpose: the packed gauge links of a slab.
// Owns: their layout and its name, packing with phases and scale folded in.
// Refuses to know: spinors and operators.
//
// Stored is -1/2 scale_mu phase U_mu(x), one field a direction: a sweep then reads few streams, each without gaps, which is what
// a processor's prefetcher follows. Backward links are read from the neighbour. Storing their adjoints beside the forward ones
// would save shuffles and double the memory: measured, it wins nothing in the first cache and loses everywhere else.
// A slab's links cover two more slices on both sides, so that two applications in a row need no other buffer than one.
#pragma once

#include "pool.hpp"
#include "storage.hpp"
#include "text.hpp"

namespace lqcd {

inline constexpr int64_t kGaugeHalo = kShards == 1 ? 0 : 2;
inline constexpr int kFields = kEvenOdd ? 2 : 1;
inline constexpr int64_t kLinkField = sites_of(kGaugeHalo) * kStoredLink;  // vectors of one direction (and parity)

// Behind them, where links have two rows only: the factor of the third, (re, im), by direction and outer coordinate along it.
constexpr int64_t factor_at(int mu, int64_t coordinate) {
  int64_t before = kGaugeHalo;
  for (int nu = 0; nu < mu; ++nu) before += kSplit.local[nu] + (nu == 0 ? kGaugeHalo : 0);
  return 2 * (before + coordinate);
}
inline constexpr int64_t kFactors = kFields * 4 * kLinkField;  // where they begin
inline constexpr int64_t kGaugeBytes = (kFactors + (kTwoRows ? factor_at(4, 0) : 0)) * int64_t(sizeof(Vector));

// "links4-f32-v2.2.2.1-8x8x8x8-s1": equal names mean equal bytes for equal links, scale and phases.
constexpr Text layout_name(const Text& content) {
  return content + (sizeof(real) == 4 ? "-f32-v" : "-f64-v") + kSplit.cut[0] + "." + kSplit.cut[1] + "." + kSplit.cut[2] +
         "." + kSplit.cut[3] + "-" + kExtent[0] + "x" + kExtent[1] + "x" + kExtent[2] + "x" + kExtent[3] + "-s" + kShards +
         (kEvenOdd ? "-eo" : "");
}
inline constexpr auto kGaugeLayout = layout_name(Text("links4" LQCD_STORED));

// -1/2 scale phase of direction mu, at the last coordinate or before it.
inline void hop_factor(double (&f)[2], bool last, int mu, const double* scale, const double* phase) {
  f[0] = -0.5 * scale[mu] * (last ? phase[2 * mu] : 1.0);
  f[1] = -0.5 * scale[mu] * (last ? phase[2 * mu + 1] : 0.0);
}

// -1/2 scale phase U_mu at global coordinates, rounded once per component: [9][re, im].
LQCD_APART void scaled_link(real (&out)[kLink], const real* links, const Coordinates& g, int mu, const double* scale,
                            const double* phase) {
  double f[2];
  hop_factor(f, g.at[mu] == kExtent[mu] - 1, mu, scale, phase);
  const double re = f[0], im = f[1];
  const real* u = links + (global_index(g) * 4 + mu) * kLink;
  for (int k = 0; k < kLink; k += 2) {
    out[k] = im == 0 ? real(u[k] * re) : real(u[k] * re - u[k + 1] * im);
    out[k + 1] = im == 0 ? real(u[k + 1] * re) : real(u[k] * im + u[k + 1] * re);
  }
}

// The link of direction d = 2 mu + (0: U_mu(x), 1: U_mu(x - mu)^dag) at global coordinates.
inline void directed_link(real (&out)[kLink], const real* links, Coordinates g, int d, const double* scale,
                          const double* phase) {
  const int mu = d / 2;
  if (d % 2 == 0) return scaled_link(out, links, g, mu, scale, phase);
  g.at[mu] = (g.at[mu] + kExtent[mu] - 1) % kExtent[mu];
  real u[kLink];
  scaled_link(u, links, g, mu, scale, phase);
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      out[(a * 3 + b) * 2] = u[(b * 3 + a) * 2];
      out[(a * 3 + b) * 2 + 1] = -u[(b * 3 + a) * 2 + 1];
    }
}

// The factors of third rows, for every coordinate of the slab. Lanes differ where some hold the last slice.
inline void pack_factors(Vector* packed, int64_t slab, const double* scale, const double* phase) {
  for (int mu = 0; mu < 4; ++mu) {
    const int64_t halo = mu == 0 ? kGaugeHalo : 0;
    for (int64_t at = -halo; at < kSplit.local[mu] + halo; ++at) {
      Coordinates outer{};
      outer.at[mu] = at;
      for (int lane = 0; lane < kLanes; ++lane) {
        double f[2], g[2];
        hop_factor(f, global(outer, lane, slab).at[mu] == kExtent[mu] - 1, mu, scale, phase);
        third_row_factor(g, f[0], f[1]);
        for (int k = 0; k < 2; ++k) packed[kFactors + factor_at(mu, at) + k][lane] = real(g[k]);
      }
    }
  }
}

// kNotInGroup where only two rows are kept and a link's third one is not what the two make it; the buffer then means nothing.
inline Status pack_links(Vector* packed, const real* links, int64_t slab, const double* scale, const double* phase, lqcd_pool* pool) {
  if constexpr (kTwoRows) pack_factors(packed, slab, scale, phase);
  bool refused = false;
  parallel_for(pool, sites_of(kGaugeHalo), [=, &refused](int64_t first, int64_t last) {
    for (int field = 0; field < kFields * 4; ++field) {
      const int parity = field / 4, mu = field % 4;
      for (int64_t site = first; site < last; ++site) {
        const Coordinates outer = coordinates(site, kGaugeHalo, parity);
        Vector all[kLink];
        for (int lane = 0; lane < kLanes; ++lane) {
          real u[kLink];
          const Coordinates g = global(outer, lane, slab);
          if (kTwoRows && !is_special_unitary(links + (global_index(g) * 4 + mu) * kLink))
            __atomic_store_n(&refused, true, __ATOMIC_RELAXED);
          scaled_link(u, links, g, mu, scale, phase);
          for (int k = 0; k < kLink; ++k) all[k][lane] = u[k];
        }
        store_link(packed + field * kLinkField + site * kStoredLink, all);
      }
    }
  });
  return refused ? kNotInGroup : kOk;
}

}  // namespace lqcd
