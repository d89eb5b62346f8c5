// Purpose: the spin algebra of (1 -/+ gamma_mu) in the DeGrand-Rossi basis.
// Owns: the four gamma matrices as powers of i, projection to two spins and back. Refuses to know: links and lattices.
//
// gamma_mu has one entry a row: row r has i^kPower[mu][r] in column kColumn[mu][r]. With s = -1 or +1,
//   h_r = psi_r + s i^p psi_column (r = 0, 1);  rows 2, 3 of (1 + s gamma) psi are s i^p h_column.
// A spinor is 24 vectors [spin][colour][re, im], a half spinor 12.
#pragma once

#include "layout.hpp"

namespace lqcd {

inline constexpr int kSpinor = 24;
inline constexpr int kHalf = 12;
inline constexpr int kColumn[4][4] = {{2, 3, 0, 1}, {2, 3, 0, 1}, {3, 2, 1, 0}, {3, 2, 1, 0}};
inline constexpr int kPower[4][4] = {{0, 0, 0, 0}, {1, 3, 3, 1}, {2, 0, 0, 2}, {1, 1, 3, 3}};

// Power of i of s gamma_mu at row r for direction d; forward takes s = -1, backward +1, the adjoint operator the opposite.
template <bool Dagger>
constexpr int projector_power(int d, int row) {
  const bool minus = (d % 2 == 0) != Dagger;
  return (kPower[d / 2][row] + (minus ? 2 : 0)) % 4;
}

// a + i^Power b, component (0 re, 1 im) of it; b is given as its two components.
template <int Power, int Component>
LQCD_INLINE Vector add_turned(Vector a, Vector b_re, Vector b_im) {
  if constexpr (Power % 2 == 0) {
    const Vector b = Component == 0 ? b_re : b_im;
    return Power == 0 ? a + b : a - b;
  } else {
    const Vector b = Component == 0 ? b_im : b_re;
    return (Component == 0) == (Power == 1) ? a - b : a + b;
  }
}

template <int D, bool Dagger, int Spin>
LQCD_INLINE void project_spin(Vector (&h)[kHalf], const Vector* psi) {
  constexpr int column = kColumn[D / 2][Spin], power = projector_power<Dagger>(D, Spin);
  LQCD_UNROLL for (int c = 0; c < 6; c += 2) {
    const Vector re = psi[column * 6 + c], im = psi[column * 6 + c + 1];
    h[Spin * 6 + c] = add_turned<power, 0>(psi[Spin * 6 + c], re, im);
    h[Spin * 6 + c + 1] = add_turned<power, 1>(psi[Spin * 6 + c + 1], re, im);
  }
}

// The half spinor of (1 -/+ gamma) psi for direction D.
template <int D, bool Dagger>
LQCD_INLINE void project(Vector (&h)[kHalf], const Vector* psi) {
  project_spin<D, Dagger, 0>(h, psi);
  project_spin<D, Dagger, 1>(h, psi);
}

// acc += the full spinor of half-spinor component (spin, colour) with value (re, im).
template <int D, bool Dagger, int Spin, bool First>
LQCD_INLINE void reconstruct(Vector (&acc)[kSpinor], int colour, Vector re, Vector im) {
  constexpr int row = kColumn[D / 2][Spin];  // gamma is its own inverse: the lower row that takes from Spin
  constexpr int power = projector_power<Dagger>(D, row);
  Vector& up_re = acc[Spin * 6 + colour * 2];
  Vector& up_im = acc[Spin * 6 + colour * 2 + 1];
  Vector& low_re = acc[row * 6 + colour * 2];
  Vector& low_im = acc[row * 6 + colour * 2 + 1];
  if constexpr (First) {
    static_assert(D == 0, "the first direction is T, whose gamma is real");
    up_re = re, up_im = im;
    low_re = power == 0 ? re : -re, low_im = power == 0 ? im : -im;
  } else {
    up_re += re, up_im += im;
    low_re = add_turned<power, 0>(low_re, re, im);
    low_im = add_turned<power, 1>(low_im, re, im);
  }
}

}  // namespace lqcd
