// Purpose: what makes two half sweeps the clover Schur operator: A = diagonal + csw C.
// Owns: the epilogues and lqcd_pack_clover: A on even sites, A^-1 on odd ones, so it is redone when mass or csw change.
// Refuses to know: sweeps, forms.
#pragma once

#include "dirac_entry.hpp"
#include "epilogue.hpp"
#include "hermitian_inverse.hpp"

namespace lqcd {

inline constexpr int64_t kCloverBytes = kTermBytes;

// A^-1 acc
struct MultiplyTerm {
  const Vector* terms;

  LQCD_INLINE void operator()(Vector (&acc)[kSpinor], const Coordinates& c, int64_t, int) const {
    Vector product[kSpinor];
    multiply_term(product, term_at(terms, c), acc);
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) acc[k] = product[k];
  }
};

// A psi - acc
struct SubtractFromTerm {
  const Vector* in;
  const Vector* terms;

  LQCD_INLINE void operator()(Vector (&acc)[kSpinor], const Coordinates& c, int64_t, int rhs) const {
    LoadedSpinor place;
    Vector product[kSpinor];
    multiply_term(product, term_at(terms, c), spinor_at<0>(place, in, c, rhs));
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) acc[k] = product[k] - acc[k];
  }
};

inline auto odd_epilogue(const Vector* terms, const double*) { return MultiplyTerm{terms + sites_of(kTermHalo) * kTerm}; }
inline auto even_epilogue(const Vector* in, const Vector* terms, const double*) { return SubtractFromTerm{in, terms}; }
inline auto odd_inverse(const Vector* terms, const double* scalars) { return odd_epilogue(terms, scalars); }

}  // namespace lqcd

int32_t lqcd_pack_clover(void* packed, const void* links, int32_t slab, const double* scalars, lqcd_pool* pool) {
  using namespace lqcd;
  if (!aligned(packed) || !links || !scalars || !is_slab(slab)) return kBadArgument;
  const double d = diagonal(scalars), csw = clover_coefficient(scalars);
  pack_terms(static_cast<real*>(packed), static_cast<const real*>(links), slab, pool,
             [=](Doubles (&term)[kTerm], int parity) {
               for (int k = 0; k < kTerm; ++k) term[k] *= csw;
               for (int k = 0; k < 6; ++k) term[k] += d, term[k + kTerm / 2] += d;
               if (parity == 1) invert_term(term);
             });
  return kOk;
}
