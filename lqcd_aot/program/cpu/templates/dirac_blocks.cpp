// Purpose: artifact of wilson_hop, wilson, wilson_dagger, wilson_normal with fused 12x12 blocks (made by wilson_blocks).
// Owns: the choice of the sweep. Refuses to know: everything else.
#include "abi.hpp"
#include "blocks.hpp"

#define LQCD_SWEEP block_sweep
#include "wilson_family.hpp"

LQCD_SPINOR_ENTRY_POINTS(kInHalo, kBlocksBytes, kWorkBytes, 0, kBlocksLayout)
