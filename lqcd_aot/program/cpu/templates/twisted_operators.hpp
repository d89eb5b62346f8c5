// Purpose: what makes a hop sweep the twisted operator: M = diagonal + i mu gamma_5 + hop; its adjoint has -mu.
// Owns: the epilogue. Refuses to know: sweeps, forms.
#pragma once

#include "epilogue.hpp"

namespace lqcd {

inline constexpr int64_t kCloverBytes = 0;

template <bool Dagger, int64_t Halo>
auto make_epilogue(const Vector* in, const Vector*, const double* scalars) {
  const double mu = Dagger ? -twist(scalars) : twist(scalars);
  return AddTwisted<Halo>{in, broadcast<Vector>(real(diagonal(scalars))), broadcast<Vector>(real(mu))};
}

}  // namespace lqcd
