// Purpose: artifact of wilson_hop, wilson, wilson_dagger, wilson_normal with half-spinor arithmetic.
// Owns: the choice of the sweep. Refuses to know: everything else.
#include "abi.hpp"
#include "hop.hpp"

#define LQCD_SWEEP hop_sweep
#include "wilson_family.hpp"

LQCD_SPINOR_ENTRY_POINTS(kInHalo, kGaugeBytes, kWorkBytes, 0, kGaugeLayout)
LQCD_LINK_ENTRY_POINT
