// Purpose: an operator, its adjoint and its normal product from one sweep and one epilogue.
// Owns: the halo and workspace each form needs, lqcd_apply. Refuses to know: how a sweep multiplies, what an epilogue adds.
//
// The entry file defines before inclusion: kForm, LQCD_SWEEP<Dagger, InHalo, OutHalo, Result>(out, in, gauge, pool, epilogue) and
// make_epilogue<Dagger, Halo>(in, clover, scalars).
#pragma once

#include "dirac_entry.hpp"

namespace lqcd {

inline constexpr int64_t kStep = kShards == 1 ? 0 : 1;  // halo slices that one application uses up
inline constexpr int64_t kInHalo = kForm == Form::kNormal ? 2 * kStep : kStep;
inline constexpr int64_t kWorkBytes = kForm == Form::kNormal ? spinor_bytes(kStep) : 0;

template <bool Dagger, int64_t InHalo, int64_t OutHalo, bool Result>
void apply_once(void* out, const void* in, const Vector* gauge, const Vector* clover, const double* scalars,
                lqcd_pool* pool) {
  const auto* psi = static_cast<const Vector*>(in);
  LQCD_SWEEP<Dagger, InHalo, OutHalo, Result>(static_cast<Vector*>(out), psi, gauge, pool,
                                      make_epilogue<Dagger, InHalo>(psi, clover, scalars));
}

}  // namespace lqcd

int32_t lqcd_apply(void* out, const void* in, const void* gauge, const void* clover, void* work, const double* scalars,
                   lqcd_pool* pool) {
  using namespace lqcd;
  if (!can_apply(out, in, gauge, clover, kCloverBytes, work, kWorkBytes, scalars)) return kBadArgument;
  const auto *links = static_cast<const Vector*>(gauge), *terms = static_cast<const Vector*>(clover);
  if constexpr (kForm == Form::kNormal) {
    apply_once<false, kInHalo, kStep, false>(work, in, links, terms, scalars, pool);
    apply_once<true, kStep, 0, true>(out, work, links, terms, scalars, pool);
  } else {
    apply_once<kForm == Form::kAdjoint, kInHalo, 0, true>(out, in, links, terms, scalars, pool);
  }
  return kOk;
}
