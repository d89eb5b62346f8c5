// Purpose: artifact of wilson_schur, wilson_schur_dagger, wilson_schur_normal.
// Owns: their form. Refuses to know: sweeps, epilogues.
#include "hop.hpp"
#include "schur_operators.hpp"

namespace lqcd {

#if defined(LQCD_OPERATOR_wilson_schur)
inline constexpr Form kForm = Form::kPlain;
#elif defined(LQCD_OPERATOR_wilson_schur_dagger)
inline constexpr Form kForm = Form::kAdjoint;
#elif defined(LQCD_OPERATOR_wilson_schur_normal)
inline constexpr Form kForm = Form::kNormal;
#else
#error "no operator of this family is defined"
#endif

}  // namespace lqcd

#include "schur.hpp"

LQCD_SPINOR_ENTRY_POINTS(0, kGaugeBytes, kWorkBytes, kCloverBytes, kGaugeLayout)
LQCD_LINK_ENTRY_POINT
