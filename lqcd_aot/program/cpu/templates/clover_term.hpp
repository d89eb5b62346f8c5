// Purpose: the packed clover term and its product with a spinor.
// Owns: its layout. Refuses to know: how it is computed from links (clover_pack.hpp).
//
// A site holds two Hermitian 6x6 blocks, upper spins then lower ones (the term commutes with gamma_5), index = spin * 3 + colour:
// 6 real diagonal entries, then the entries below the diagonal row by row as (re, im): 72 vectors. Its fields carry the halo of
// a slab's links; an even-odd buffer holds the even field, then the odd one.
#pragma once

#include "links.hpp"
#include "spin.hpp"

namespace lqcd {

inline constexpr int64_t kTerm = 72;
inline constexpr int64_t kTermHalo = kShards == 1 ? 0 : 1;
inline constexpr int64_t kTermBytes = kFields * sites_of(kTermHalo) * kTerm * int64_t(sizeof(Vector));

// Place of the real part of entry (row, column), row > column, within a block of 36.
constexpr int below_diagonal(int row, int column) { return 6 + row * (row - 1) + 2 * column; }

// out = block psi for one chirality: columns are summed in order.
LQCD_INLINE void multiply_chirality(Vector* out, const Vector* block, const Vector* psi) {
  LQCD_UNROLL for (int row = 0; row < 6; ++row) {
    Vector re, im;
    LQCD_UNROLL for (int column = 0; column < 6; ++column) {
      const Vector p_re = psi[2 * column], p_im = psi[2 * column + 1];
      if (row == column) {
        re = column == 0 ? block[row] * p_re : multiply_add(block[row], p_re, re);
        im = column == 0 ? block[row] * p_im : multiply_add(block[row], p_im, im);
        continue;
      }
      const bool below = row > column;
      const Vector* entry = block + (below ? below_diagonal(row, column) : below_diagonal(column, row));
      re = column == 0 ? entry[0] * p_re : multiply_add(entry[0], p_re, re);
      im = column == 0 ? entry[0] * p_im : multiply_add(entry[0], p_im, im);
      re = below ? multiply_subtract(entry[1], p_im, re) : multiply_add(entry[1], p_im, re);
      im = below ? multiply_add(entry[1], p_re, im) : multiply_subtract(entry[1], p_re, im);
    }
    out[2 * row] = re;
    out[2 * row + 1] = im;
  }
}

LQCD_INLINE void multiply_term(Vector (&out)[kSpinor], const Vector* term, const Vector* psi) {
  multiply_chirality(out, term, psi);
  multiply_chirality(out + kHalf, term + kTerm / 2, psi + kHalf);
}

LQCD_INLINE const Vector* term_at(const Vector* terms, const Coordinates& c) {
  return terms + position(c.at[0], c.at[1], c.at[2], c.at[3], kTermHalo) * kTerm;
}

}  // namespace lqcd
