// Purpose: artifact of twisted, twisted_dagger, twisted_normal.
// Owns: their form. Refuses to know: sweeps, epilogues.
#include "twisted_operators.hpp"
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

}  // namespace lqcd

#define LQCD_SWEEP hop_sweep
#include "forms.hpp"

LQCD_SPINOR_ENTRY_POINTS(kInHalo, kGaugeBytes, kWorkBytes, kCloverBytes, kGaugeLayout)
LQCD_LINK_ENTRY_POINT
