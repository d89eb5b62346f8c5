// Purpose: which sweeps make up wilson_hop, wilson, wilson_dagger and wilson_normal.
// Owns: the halo and workspace each needs, lqcd_apply. Refuses to know: how a sweep multiplies; an entry file names it in
// LQCD_SWEEP<Dagger, InHalo, OutHalo>(out, in, gauge, pool, epilogue).
#pragma once

#include "dirac_entry.hpp"
#include "epilogue.hpp"

namespace lqcd {

#if defined(LQCD_OPERATOR_wilson_normal)
inline constexpr int64_t kMiddleHalo = kShards == 1 ? 0 : 1, kInHalo = 2 * kMiddleHalo;
inline constexpr int64_t kWorkBytes = spinor_bytes(kMiddleHalo);
#else
inline constexpr int64_t kInHalo = kShards == 1 ? 0 : 1, kWorkBytes = 0;
#endif

template <bool Dagger, int64_t InHalo, int64_t OutHalo>
void wilson(void* out, const void* in, const Vector* gauge, const double* scalars, lqcd_pool* pool) {
  const auto* psi = static_cast<const Vector*>(in);
  const AddDiagonal<InHalo> epilogue{psi, broadcast<Vector>(real(diagonal(scalars)))};
  LQCD_SWEEP<Dagger, InHalo, OutHalo>(static_cast<Vector*>(out), psi, gauge, pool, epilogue);
}

}  // namespace lqcd

int32_t lqcd_apply(void* out, const void* in, const void* gauge, const void*, void* work, const double* scalars,
                   lqcd_pool* pool) {
  using namespace lqcd;
  if (!can_apply(out, in, gauge, work, kWorkBytes, scalars)) return kBadArgument;
  const auto* links = static_cast<const Vector*>(gauge);
#if defined(LQCD_OPERATOR_wilson_hop)
  LQCD_SWEEP<false, kInHalo, 0>(static_cast<Vector*>(out), static_cast<const Vector*>(in), links, pool, HopOnly{});
#elif defined(LQCD_OPERATOR_wilson)
  wilson<false, kInHalo, 0>(out, in, links, scalars, pool);
#elif defined(LQCD_OPERATOR_wilson_dagger)
  wilson<true, kInHalo, 0>(out, in, links, scalars, pool);
#elif defined(LQCD_OPERATOR_wilson_normal)
  wilson<false, kInHalo, kMiddleHalo>(work, in, links, scalars, pool);
  wilson<true, kMiddleHalo, 0>(out, work, links, scalars, pool);
#else
#error "no operator of this family is defined"
#endif
  return kOk;
}
