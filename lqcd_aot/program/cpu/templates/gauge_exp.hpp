// Purpose: exp(z) of traceless anti-Hermitian 3x3 matrices, exact to rounding and unitary to rounding for any norm.
// Owns: the series. Refuses to know: why a link is multiplied by it.
//
// Cayley-Hamilton: z^3 = t z + d with t = tr z^2 / 2 (real, <= 0) and d = det z (imaginary), so every power series of z is
// f0 + f1 z + f2 z^2. Horner's rule f <- 1 + z f / k in these three numbers needs no matrix product and no formula that is singular
// where eigenvalues meet. Largest |eigenvalue| of a traceless z: sqrt(2/3 sum |z_ij|^2); it is brought below 1 by halving, undone by
// squaring the result, and 1/19! is below the rounding of float64.
#pragma once

#include "gauge_matrix.hpp"

namespace lqcd {

inline constexpr int kTerms = 18;
inline constexpr int kMaxHalvings = 40;  // |z| of 1e12; beyond that, or with an infinite element, the result is not finite anyway

// Number of halvings that bring every lane's largest |eigenvalue| below 1. `size`: sum |z_ij|^2 of each lane.
template <class W>
LQCD_INLINE int halvings(const typename W::V& size) {
  double largest = 0.0;
  for (int lane = 0; lane < W::kLanes; ++lane)
    if (double(size[lane]) > largest) largest = double(size[lane]);
  int n = 0;
  for (; largest > 1.5 && n < kMaxHalvings; ++n) largest *= 0.25;
  return n;
}

template <class W, class R>
LQCD_INLINE typename W::M exponential(typename W::M z) {
  using V = typename W::V;
  const int n = halvings<W>(real_trace_times_dagger(z, z));
  R scale = 1;
  for (int i = 0; i < n; ++i) scale *= R(0.5);
  for (int i = 0; i < 9; ++i) {
    z.re[i] *= scale;
    z.im[i] *= scale;
  }
  const auto zz = z * z;
  const V t = real_trace_times_dagger(z, z) * R(-0.5);
  // Im det z = Im tr z^3 / 3, because the eigenvalues of z sum to zero: tr z^3 = 3 det z; z^dagger = -z.
  V d = zz.re[0] * z.im[0] + zz.im[0] * z.re[0];
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b)
      if (a + b) d += zz.re[3 * a + b] * z.im[3 * b + a] + zz.im[3 * a + b] * z.re[3 * b + a];
  d *= R(1.0 / 3.0);

  const V zero = t - t;
  V f0 = zero + R(1), g0 = zero, f1 = zero, g1 = zero, f2 = zero, g2 = zero;  // f + i g
  for (int k = kTerms; k > 0; --k) {
    const R inverse = R(1) / R(k);
    const V old_f2 = f2, old_g2 = g2, old_f1 = f1, old_g1 = g1;
    f2 = old_f1 * inverse;
    g2 = old_g1 * inverse;
    f1 = (f0 + t * old_f2) * inverse;
    g1 = (g0 + t * old_g2) * inverse;
    f0 = R(1) - d * old_g2 * inverse;
    g0 = d * old_f2 * inverse;
  }
  typename W::M out;
  for (int i = 0; i < 9; ++i) {
    out.re[i] = f1 * z.re[i] - g1 * z.im[i] + f2 * zz.re[i] - g2 * zz.im[i];
    out.im[i] = f1 * z.im[i] + g1 * z.re[i] + f2 * zz.im[i] + g2 * zz.re[i];
  }
  for (int a = 0; a < 9; a += 4) {
    out.re[a] += f0;
    out.im[a] += g0;
  }
  for (int i = 0; i < n; ++i) out = out * out;
  return out;
}

}  // namespace lqcd
