// Purpose: artifact of wilson_hop, wilson, wilson_dagger, wilson_normal with fused 12x12 blocks (made by wilson_blocks).
// Owns: the choice of the sweep. Refuses to know: everything else.
#include "blocks.hpp"
#include "wilson_operators.hpp"
#define LQCD_SWEEP block_sweep
#include "forms.hpp"

LQCD_SPINOR_ENTRY_POINTS(kInHalo, kBlocksBytes, kWorkBytes, kCloverBytes, kBlocksLayout)
