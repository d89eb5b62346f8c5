// Purpose: artifact of wilson_blocks: links -> the fused blocks that a fused dirac artifact of equal layout name multiplies with.
// Owns: the entry points of kind builder. Refuses to know: spinors and operators.
#include "abi.hpp"
#include "blocks.hpp"
#include "dirac_entry.hpp"

uint64_t lqcd_bytes(int32_t what) { return what == lqcd::kPackedGauge ? uint64_t(lqcd::kBlocksBytes) : 0; }

const char* lqcd_gauge_layout(void) { return lqcd::kBlocksLayout.chars; }

int32_t lqcd_pack_gauge(void* packed, const void* links, int32_t slab, const double* scale, const double* phase,
                        lqcd_pool* pool) {
  using namespace lqcd;
  if (!aligned(packed) || !links || !scale || !phase || !is_slab(slab)) return kBadArgument;
  build_blocks(static_cast<real*>(packed), static_cast<const real*>(links), slab, scale, phase, pool);
  return kOk;
}
