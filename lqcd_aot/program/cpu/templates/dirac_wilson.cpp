// Purpose: artifact of wilson_hop, wilson, wilson_dagger, wilson_normal with half-spinor arithmetic.
// Owns: which sweeps make up each of them. Refuses to know: how a sweep is done.
#include "abi.hpp"
#include "dirac_entry.hpp"
#include "epilogue.hpp"
#include "hop.hpp"

namespace lqcd {

#if defined(LQCD_OPERATOR_wilson_normal)
inline constexpr int64_t kMiddleHalo = kShards == 1 ? 0 : 1, kInHalo = 2 * kMiddleHalo;
inline constexpr int64_t kWorkBytes = spinor_bytes(kMiddleHalo);
#else
inline constexpr int64_t kInHalo = kShards == 1 ? 0 : 1, kWorkBytes = 0;
#endif

template <bool Dagger, int64_t InHalo, int64_t OutHalo>
void wilson(void* out, const void* in, const Vector* links, const double* scalars, lqcd_pool* pool) {
  const auto* psi = static_cast<const Vector*>(in);
  const AddDiagonal<InHalo> epilogue{psi, broadcast<Vector>(real(diagonal(scalars)))};
  hop_sweep<Dagger, InHalo, OutHalo>(static_cast<Vector*>(out), psi, links, 0, pool, epilogue);
}

}  // namespace lqcd

LQCD_DIRAC_ENTRY_POINTS(kInHalo, kGaugeBytes, kWorkBytes, 0, kGaugeLayout)
LQCD_LINK_ENTRY_POINT

int32_t lqcd_apply(void* out, const void* in, const void* gauge, const void*, void* work, const double* scalars,
                   lqcd_pool* pool) {
  using namespace lqcd;
  if (!aligned(out) || !aligned(in) || !aligned(gauge) || !scalars || out == in) return kBadArgument;
  if (kWorkBytes && !aligned(work)) return kBadArgument;
  const auto* links = static_cast<const Vector*>(gauge);
#if defined(LQCD_OPERATOR_wilson_hop)
  hop_sweep<false, kInHalo, 0>(static_cast<Vector*>(out), static_cast<const Vector*>(in), links, 0, pool, HopOnly{});
#elif defined(LQCD_OPERATOR_wilson)
  wilson<false, kInHalo, 0>(out, in, links, scalars, pool);
#elif defined(LQCD_OPERATOR_wilson_dagger)
  wilson<true, kInHalo, 0>(out, in, links, scalars, pool);
#elif defined(LQCD_OPERATOR_wilson_normal)
  wilson<false, kInHalo, kMiddleHalo>(work, in, links, scalars, pool);
  wilson<true, kMiddleHalo, 0>(out, work, links, scalars, pool);
#else
#error "no operator of this file is defined"
#endif
  return kOk;
}
