// Purpose: the even-odd (Schur) operators on even sites, their adjoint and normal product.
// Owns: the order of the half sweeps, the workspace, lqcd_apply. Refuses to know: what the site-diagonal term A is.
//
//   S = A_ee - H_eo A_oo^-1 H_oe;   S^dag the same with the adjoint hop, because A is Hermitian
// The entry file defines kForm, kCloverBytes, odd_epilogue(clover, scalars): acc -> A_oo^-1 acc, and
// even_epilogue(in, clover, scalars): acc -> A_ee psi - acc.
#pragma once

#include "dirac_entry.hpp"
#include "half_sweeps.hpp"

namespace lqcd {

inline constexpr int64_t kField = spinor_field(0);
inline constexpr int64_t kWorkBytes = (kForm == Form::kNormal ? 2 : 1) * spinor_bytes(0);

template <bool Dagger, bool Result>
void schur(Vector* out, const Vector* in, Vector* odd, const Vector* links, const Vector* clover, const double* scalars,
           lqcd_pool* pool) {
  constexpr bool slices = by_slices(1);
  half_sweeps<slices>(
      Ready{},
      [&](int64_t first, int64_t last) {
        hop_part<Dagger, kStream && !slices>(odd, in, links, 1, first, last, AllColumns{}, pool, odd_epilogue(clover, scalars));
      },
      [&](int64_t first, int64_t last) {
        hop_part<Dagger, Result ? kStreamResult : kStream>(out, odd, links, 0, first, last, AllColumns{}, pool,
                                                           even_epilogue(in, clover, scalars));
      });
}

}  // namespace lqcd

int32_t lqcd_apply(void* out, const void* in, const void* gauge, const void* clover, void* work, const double* scalars,
                   lqcd_pool* pool) {
  using namespace lqcd;
  if (!can_apply(out, in, gauge, clover, kCloverBytes, work, kWorkBytes, scalars)) return kBadArgument;
  const auto *links = static_cast<const Vector*>(gauge), *terms = static_cast<const Vector*>(clover);
  const auto* psi = static_cast<const Vector*>(in);
  auto *result = static_cast<Vector*>(out), *odd = static_cast<Vector*>(work);
  if constexpr (kForm == Form::kNormal) {
    schur<false, false>(odd + kField, psi, odd, links, terms, scalars, pool);
    schur<true, true>(result, odd + kField, odd, links, terms, scalars, pool);
  } else {
    schur<kForm == Form::kAdjoint, true>(result, psi, odd, links, terms, scalars, pool);
  }
  return kOk;
}
