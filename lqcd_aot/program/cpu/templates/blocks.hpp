// Purpose: the fused form of the hop term: eight 12x12 spin-colour blocks a site, built once per gauge field.
// Owns: their layout and its name, building them from links, a sweep that multiplies with them.
// Refuses to know: half spinors. (1 -/+ gamma_mu) is multiplied out, so zeros are stored and multiplied too.
//
//   block_d(x) = (1 -/+ gamma) (x) V_d(x), row-major over [spin, colour], d = T+ T- Z+ Z- Y+ Y- X+ X-, -1/2 and phases inside
// The adjoint operator is gamma_5 M gamma_5: it uses the same blocks.
#pragma once

#include "links.hpp"
#include "spinors.hpp"

namespace lqcd {

inline constexpr int64_t kBlock = 12 * 12 * 2;
inline constexpr int64_t kBlocksHalo = kShards == 1 ? 0 : 1;
inline constexpr int64_t kBlocksBytes = sites_of(kBlocksHalo) * 8 * kBlock * int64_t(sizeof(Vector));
inline constexpr auto kBlocksLayout = layout_name(Text("blocks12"));

// (re, im) times i^power
LQCD_INLINE void turn(int power, real& re, real& im) {
  const real a = re, b = im;
  re = power == 0 ? a : power == 1 ? -b : power == 2 ? -a : b;
  im = power == 0 ? b : power == 1 ? a : power == 2 ? -b : -a;
}

// One lane of block d; `to` points at that lane.
inline void build_block(real* to, const real (&u)[kLink], int d) {
  for (int64_t k = 0; k < kBlock; ++k) to[k * kLanes] = 0;
  for (int spin = 0; spin < 4; ++spin)
    for (int term = 0; term < 2; ++term) {  // the unit matrix, then gamma
      const int column = term == 0 ? spin : kColumn[d / 2][spin];
      const int power = term == 0 ? 0 : projector_power<false>(d, spin);
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) {
          real re = u[(a * 3 + b) * 2], im = u[(a * 3 + b) * 2 + 1];
          turn(power, re, im);
          real* entry = to + ((spin * 3 + a) * 12 + column * 3 + b) * 2 * kLanes;
          entry[0] = re;
          entry[kLanes] = im;
        }
    }
}

inline void build_blocks(real* packed, const real* links, int64_t slab, const double* scale, const double* phase,
                         lqcd_pool* pool) {
  parallel_for(pool, sites_of(kBlocksHalo), [=](int64_t first, int64_t last) {
    for (int64_t site = first; site < last; ++site) {
      const Coordinates outer = coordinates(site, kBlocksHalo, 0);
      for (int lane = 0; lane < kLanes; ++lane)
        for (int d = 0; d < 8; ++d) {
          real u[kLink];
          directed_link(u, links, global(outer, lane, slab), d, scale, phase);
          build_block(packed + (site * 8 + d) * kBlock * kLanes + lane, u, d);
        }
    }
  });
}

// acc += block psi, three rows at a time.
LQCD_INLINE void multiply_block(Vector (&acc)[kSpinor], const Vector* block, const Vector (&psi)[kSpinor]) {
  constexpr int rows = 3;
  for (int row = 0; row < 12; row += rows) {
    Vector re[rows], im[rows];
    LQCD_UNROLL for (int r = 0; r < rows; ++r) re[r] = acc[2 * (row + r)], im[r] = acc[2 * (row + r) + 1];
    for (int column = 0; column < 12; ++column) {
      const Vector p_re = psi[2 * column], p_im = psi[2 * column + 1];
      LQCD_UNROLL for (int r = 0; r < rows; ++r) {
        const Vector* b = block + ((row + r) * 12 + column) * 2;
        re[r] = multiply_subtract(b[1], p_im, multiply_add(b[0], p_re, re[r]));
        im[r] = multiply_add(b[1], p_re, multiply_add(b[0], p_im, im[r]));
      }
    }
    LQCD_UNROLL for (int r = 0; r < rows; ++r) acc[2 * (row + r)] = re[r], acc[2 * (row + r) + 1] = im[r];
  }
}

template <int D, bool Dagger>
LQCD_INLINE void load_neighbour(Vector (&psi)[kSpinor], const Vector* in, bool face) {
  LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) psi[k] = Dagger && k >= kHalf ? -in[k] : in[k];
  if (kSplit.cut[D / 2] > 1 && face) {
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) psi[k] = across_face<D>(psi[k]);
  }
}

template <int D, bool Dagger, int64_t InHalo>
LQCD_INLINE void add_blocks(Vector (*acc)[kSpinor], const Vector* blocks, const Vector* in, const Neighbours& n) {
  if constexpr (D < 8) {
    for (int rhs = 0; rhs < kBatch; ++rhs) {  // a block stays in the first cache while the right-hand sides pass
      Vector psi[kSpinor];
      load_neighbour<D, Dagger>(psi, in + n.position[D] * kSiteStride + rhs * kSpinor, n.face[D]);
      multiply_block(acc[rhs], blocks + D * kBlock, psi);
    }
    add_blocks<D + 1, Dagger, InHalo>(acc, blocks, in, n);
  }
}

// As hop_sweep of hop.hpp, with blocks for links.
template <bool Dagger, int64_t InHalo, int64_t OutHalo, bool Result, class Epilogue>
void block_sweep(Vector* out, const Vector* in, const Vector* blocks, lqcd_pool* pool, const Epilogue& epilogue) {
  parallel_for(pool, sites_of(OutHalo), [=, &epilogue](int64_t first, int64_t last) {
    LQCD_ALIGN_STACK;
    for (int64_t site = first; site < last; ++site) {
      const Coordinates c = coordinates(site, OutHalo, 0);
      const Neighbours n = neighbours<InHalo>(c);
      Vector acc[kBatch][kSpinor] = {};
      add_blocks<0, Dagger, InHalo>(acc, blocks + position(c.at[0], c.at[1], c.at[2], c.at[3], kBlocksHalo) * 8 * kBlock, in, n);
      for (int rhs = 0; rhs < kBatch; ++rhs) {
        if (Dagger)
          for (int k = kHalf; k < kSpinor; ++k) acc[rhs][k] = -acc[rhs][k];
        epilogue(acc[rhs], c, site, rhs);
        for (int k = 0; k < kSpinor; ++k) out[site * kSiteStride + rhs * kSpinor + k] = acc[rhs][k];
      }
    }
  });
}

}  // namespace lqcd
