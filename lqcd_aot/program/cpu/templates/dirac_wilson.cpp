// Purpose: artifact of wilson_hop, wilson, wilson_dagger, wilson_normal with half-spinor arithmetic.
// Owns: the choice of the sweep. Refuses to know: everything else.
#include "hop.hpp"
#include "wilson_operators.hpp"
#define LQCD_SWEEP hop_sweep
#include "forms.hpp"

LQCD_SPINOR_ENTRY_POINTS(kInHalo, kGaugeBytes, kWorkBytes, kCloverBytes, kGaugeLayout)
LQCD_LINK_ENTRY_POINT
