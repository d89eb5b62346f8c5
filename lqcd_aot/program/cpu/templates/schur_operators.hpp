// Purpose: what makes two half sweeps the Wilson Schur operator: S = d - H_eo H_oe / d, d the diagonal.
// Owns: the epilogues and the inverse on odd sites. Refuses to know: sweeps, forms.
#pragma once

#include "epilogue.hpp"

namespace lqcd {

inline constexpr int64_t kCloverBytes = 0;

// d psi - acc / d
struct SubtractScaled {
  const Vector* in;
  Vector diagonal, inverse;

  LQCD_INLINE void operator()(Vector (&acc)[kSpinor], const Coordinates& c, int64_t, int rhs) const {
    LoadedSpinor place;
    const Vector* psi = spinor_at<0>(place, in, c, rhs);
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) acc[k] = multiply_subtract(inverse, acc[k], diagonal * psi[k]);
  }
};

inline auto odd_epilogue(const Vector*, const double*) { return HopOnly{}; }
inline auto even_epilogue(const Vector* in, const Vector*, const double* scalars) {
  const double d = diagonal(scalars);
  return SubtractScaled{in, broadcast<Vector>(real(d)), broadcast<Vector>(real(1 / d))};
}

// acc / d: A_oo^-1, for what prepares a right-hand side and completes a solution.
struct Scale {
  Vector factor;

  LQCD_INLINE void operator()(Vector (&acc)[kSpinor], const Coordinates&, int64_t, int) const {
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) acc[k] = factor * acc[k];
  }
};
inline auto odd_inverse(const Vector*, const double* scalars) { return Scale{broadcast<Vector>(real(1 / diagonal(scalars)))}; }

}  // namespace lqcd
