// Purpose: artifact of clover, clover_dagger, clover_normal.
// Owns: their form. Refuses to know: sweeps, epilogues.
#include "clover_operators.hpp"
#include "hop.hpp"

namespace lqcd {

#if defined(LQCD_OPERATOR_clover)
inline constexpr Form kForm = Form::kPlain;
#elif defined(LQCD_OPERATOR_clover_dagger)
inline constexpr Form kForm = Form::kAdjoint;
#elif defined(LQCD_OPERATOR_clover_normal)
inline constexpr Form kForm = Form::kNormal;
#else
#error "no operator of this family is defined"
#endif

}  // namespace lqcd

#define LQCD_SWEEP hop_sweep
#include "forms.hpp"

LQCD_SPINOR_ENTRY_POINTS(kInHalo, kGaugeBytes, kWorkBytes, kCloverBytes, kGaugeLayout)
LQCD_LINK_ENTRY_POINT
