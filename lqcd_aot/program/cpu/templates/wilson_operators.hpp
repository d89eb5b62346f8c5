// Purpose: the operators wilson_hop, wilson, wilson_dagger, wilson_normal, for either kind of sweep.
// Owns: their form and epilogue; a solver (LQCD_SOLVER) takes the epilogue alone. Refuses to know: sweeps.
#pragma once

#include "epilogue.hpp"

namespace lqcd {

#ifndef LQCD_SOLVER
#if defined(LQCD_OPERATOR_wilson_hop) || defined(LQCD_OPERATOR_wilson)
inline constexpr Form kForm = Form::kPlain;
#elif defined(LQCD_OPERATOR_wilson_dagger)
inline constexpr Form kForm = Form::kAdjoint;
#elif defined(LQCD_OPERATOR_wilson_normal)
inline constexpr Form kForm = Form::kNormal;
#else
#error "no operator of this family is defined"
#endif
#endif
inline constexpr int64_t kCloverBytes = 0;

template <bool Dagger, int64_t Halo>
auto make_epilogue(const Vector* in, const Vector*, const double* scalars) {
#if defined(LQCD_OPERATOR_wilson_hop)
  (void)in, (void)scalars;
  return HopOnly{};
#else
  return AddDiagonal<Halo>{in, broadcast<Vector>(real(diagonal(scalars)))};
#endif
}

}  // namespace lqcd
