// Purpose: artifact of twisted, twisted_dagger, twisted_normal: M = diagonal + i mu gamma_5 + hop, adjoint with -mu.
// Owns: their form and epilogue. Refuses to know: sweeps.
#include "epilogue.hpp"
#include "hop.hpp"

namespace lqcd {

#if defined(LQCD_OPERATOR_twisted)
inline constexpr Form kForm = Form::kPlain;
#elif defined(LQCD_OPERATOR_twisted_dagger)
inline constexpr Form kForm = Form::kAdjoint;
#elif defined(LQCD_OPERATOR_twisted_normal)
inline constexpr Form kForm = Form::kNormal;
#else
#error "no operator of this family is defined"
#endif
inline constexpr int64_t kCloverBytes = 0;

template <bool Dagger, int64_t Halo>
auto make_epilogue(const Vector* in, const Vector*, const double* scalars) {
  const double mu = Dagger ? -twist(scalars) : twist(scalars);
  return AddTwisted<Halo>{in, broadcast<Vector>(real(diagonal(scalars))), broadcast<Vector>(real(mu))};
}

}  // namespace lqcd

#define LQCD_SWEEP hop_sweep
#include "forms.hpp"

LQCD_SPINOR_ENTRY_POINTS(kInHalo, kGaugeBytes, kWorkBytes, kCloverBytes, kGaugeLayout)
LQCD_LINK_ENTRY_POINT
