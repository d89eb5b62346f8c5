// Purpose: what makes a hop sweep the clover operator: M = diagonal + csw C + hop; C is Hermitian.
// Owns: the epilogue and lqcd_pack_clover (the bare C: mass and csw stay run-time inputs). Refuses to know: sweeps, forms.
#pragma once

#include "clover_pack.hpp"
#include "dirac_entry.hpp"
#include "epilogue.hpp"

namespace lqcd {

inline constexpr int64_t kCloverBytes = kTermBytes;

// acc + (diagonal + csw C) psi
template <int64_t Halo>
struct AddClover {
  const Vector* in;
  const Vector* terms;
  Vector diagonal, csw;

  LQCD_INLINE void operator()(Vector (&acc)[kSpinor], const Coordinates& c, int64_t, int rhs) const {
    LoadedSpinor place;
    const Vector* psi = spinor_at<Halo>(place, in, c, rhs);
    Vector product[kSpinor];
    multiply_term(product, term_at(terms, c), psi);
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k)
      acc[k] = multiply_add(csw, product[k], multiply_add(diagonal, psi[k], acc[k]));
  }
};

template <bool Dagger, int64_t Halo>
auto make_epilogue(const Vector* in, const Vector* terms, const double* scalars) {
  return AddClover<Halo>{in, terms, broadcast<Vector>(real(diagonal(scalars))),
                         broadcast<Vector>(real(clover_coefficient(scalars)))};
}

}  // namespace lqcd

int32_t lqcd_pack_clover(void* packed, const void* links, int32_t slab, const double*, lqcd_pool* pool) {
  using namespace lqcd;
  if (!aligned(packed) || !links || !is_slab(slab)) return kBadArgument;
  pack_terms(static_cast<real*>(packed), static_cast<const real*>(links), slab, pool, [](Doubles (&)[kTerm], int) {});
  return kOk;
}
