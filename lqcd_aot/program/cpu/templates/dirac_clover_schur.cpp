// Purpose: artifact of clover_schur, clover_schur_dagger, clover_schur_normal.
// Owns: their form. Refuses to know: sweeps, epilogues.
#include "clover_schur_operators.hpp"
#include "hop.hpp"

namespace lqcd {

#if defined(LQCD_OPERATOR_clover_schur)
inline constexpr Form kForm = Form::kPlain;
#elif defined(LQCD_OPERATOR_clover_schur_dagger)
inline constexpr Form kForm = Form::kAdjoint;
#elif defined(LQCD_OPERATOR_clover_schur_normal)
inline constexpr Form kForm = Form::kNormal;
#else
#error "no operator of this family is defined"
#endif

}  // namespace lqcd

#include "schur.hpp"

LQCD_SPINOR_ENTRY_POINTS(0, kGaugeBytes, kWorkBytes, kCloverBytes, kGaugeLayout)
LQCD_LINK_ENTRY_POINT
