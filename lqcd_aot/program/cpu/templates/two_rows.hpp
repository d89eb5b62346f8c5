// Purpose: SU(3) links kept as two rows, 12 reals: which links may be, and the third row from the two.
// Owns: the product that makes it, the test of a link. Refuses to know: lattices, phases' places, sweeps.
//
// A row of U is the conjugate of the cross product of the other two. What is packed is f U, f = -1/2 scale phase, so
//   row 2 of f U = g conj(row 0 of f U x row 1 of f U),   g = f / conj(f)^2 = f^3 / |f|^4
// g is -2 or 2 where scale is 1 and the phase a sign: then nothing of it rounds, and the unit matrix comes back exactly.
#pragma once

#include "spin.hpp"

namespace lqcd {

// The third row behind the two: u has 18 vectors, of which 12 are given; factor: (re, im) of g.
LQCD_INLINE void add_third_row(Vector* u, const Vector* factor) {
  const Vector g_re = factor[0], g_im = factor[1];
  LQCD_UNROLL for (int c = 0; c < 3; ++c) {
    const int i = 2 * ((c + 1) % 3), j = 2 * ((c + 2) % 3);
    const Vector *x = u, *y = u + 6;
    Vector re = x[i] * y[j], im = x[i] * y[j + 1];
    re = multiply_subtract(x[i + 1], y[j + 1], re);
    im = multiply_add(x[i + 1], y[j], im);
    re = multiply_subtract(x[j], y[i], re);
    im = multiply_subtract(x[j], y[i + 1], im);
    re = multiply_add(x[j + 1], y[i + 1], re);
    im = multiply_subtract(x[j + 1], y[i], im);
    u[12 + 2 * c] = multiply_add(g_im, im, g_re * re);
    u[13 + 2 * c] = multiply_subtract(g_re, im, g_im * re);
  }
}

// g of a factor f; of zero, whose rows are zero, zero.
inline void third_row_factor(double (&g)[2], double re, double im) {
  const double square = re * re + im * im;
  const double size = square * square;
  g[0] = size == 0 ? 0 : re * (re * re - 3 * im * im) / size;
  g[1] = size == 0 ? 0 : im * (3 * re * re - im * im) / size;
}

// The largest of | |row 0|^2 - 1 |, | |row 1|^2 - 1 |, |row 0 . row 1*| and |row 2 - conj(row 0 x row 1)| component by component that
// rounding explains, in units of the arithmetic's 2^-24 or 2^-53: 3 for a matrix rounded once, 16 for one orthonormalised in
// that arithmetic, 8 for the test itself in double; the next power of two.
inline constexpr double kNotUnitary = 32;

// Whether the third row says no more than the other two do, within rounding. Not for NaN.
LQCD_APART bool is_special_unitary(const real* u) {
  const double bound = kNotUnitary * (sizeof(real) == 4 ? 0x1p-24 : 0x1p-53);
  double norm[2] = {-1, -1}, dot_re = 0, dot_im = 0;
  for (int k = 0; k < 6; k += 2) {
    const double a = u[k], b = u[k + 1], c = u[6 + k], d = u[7 + k];
    norm[0] += a * a + b * b;
    norm[1] += c * c + d * d;
    dot_re += a * c + b * d;
    dot_im += b * c - a * d;
  }
  const auto small = [=](double v) { return v <= bound && v >= -bound; };
  bool good = small(norm[0]) && small(norm[1]) && dot_re * dot_re + dot_im * dot_im <= bound * bound;
  for (int c = 0; c < 3; ++c) {
    const int i = 2 * ((c + 1) % 3), j = 2 * ((c + 2) % 3);
    const double xi = u[i], xi_im = u[i + 1], xj = u[j], xj_im = u[j + 1];
    const double yi = u[6 + i], yi_im = u[7 + i], yj = u[6 + j], yj_im = u[7 + j];
    const double re = u[12 + 2 * c] - ((xi * yj - xi_im * yj_im) - (xj * yi - xj_im * yi_im));
    const double im = u[13 + 2 * c] + ((xi * yj_im + xi_im * yj) - (xj * yi_im + xj_im * yi));
    good = good && re * re + im * im <= bound * bound;
  }
  return good;
}

}  // namespace lqcd
