// Purpose: 3x3 complex matrices whose elements are SIMD vectors over neighbouring sites (or plain numbers).
// Owns: products, the projection on the Lie algebra, traces. Refuses to know: where a matrix comes from.
#pragma once

namespace lqcd {

#define LQCD_INLINE inline __attribute__((always_inline))

// Element (a,b) is re[3*a+b] + i im[3*a+b]. V: a number or a vector type with + - * and broadcast of numbers.
template <class V>
struct Matrix {
  V re[9], im[9];

  LQCD_INLINE void add(const Matrix& other) {
    for (int i = 0; i < 9; ++i) {
      re[i] += other.re[i];
      im[i] += other.im[i];
    }
  }
};

template <class V>
LQCD_INLINE Matrix<V> dagger(const Matrix<V>& m) {
  Matrix<V> out;
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      out.re[3 * a + b] = m.re[3 * b + a];
      out.im[3 * a + b] = -m.im[3 * b + a];
    }
  return out;
}

// x y
template <class V>
LQCD_INLINE Matrix<V> operator*(const Matrix<V>& x, const Matrix<V>& y) {
  Matrix<V> out;
#pragma GCC unroll 3
  for (int a = 0; a < 3; ++a)
#pragma GCC unroll 3
    for (int b = 0; b < 3; ++b) {
      const int i = 3 * a;
      V re = x.re[i] * y.re[b], im = x.re[i] * y.im[b];
      re -= x.im[i] * y.im[b];
      im += x.im[i] * y.re[b];
#pragma GCC unroll 2
      for (int c = 1; c < 3; ++c) {
        re += x.re[i + c] * y.re[3 * c + b];
        im += x.re[i + c] * y.im[3 * c + b];
        re -= x.im[i + c] * y.im[3 * c + b];
        im += x.im[i + c] * y.re[3 * c + b];
      }
      out.re[i + b] = re;
      out.im[i + b] = im;
    }
  return out;
}

// x y^dagger and x^dagger y; the transposition costs no instruction.
template <class V>
LQCD_INLINE Matrix<V> times_dagger(const Matrix<V>& x, const Matrix<V>& y) {
  return x * dagger(y);
}

template <class V>
LQCD_INLINE Matrix<V> dagger_times(const Matrix<V>& x, const Matrix<V>& y) {
  return dagger(x) * y;
}

// Re tr(x y^dagger)
template <class V>
LQCD_INLINE V real_trace_times_dagger(const Matrix<V>& x, const Matrix<V>& y) {
  V sum = x.re[0] * y.re[0];
  sum += x.im[0] * y.im[0];
  for (int i = 1; i < 9; ++i) {
    sum += x.re[i] * y.re[i];
    sum += x.im[i] * y.im[i];
  }
  return sum;
}

// P(m) = (m - m^dagger)/2 - tr(m - m^dagger)/6: traceless and anti-Hermitian, the result times `factor`.
template <class V, class R>
LQCD_INLINE Matrix<V> project_algebra(const Matrix<V>& m, R factor) {
  Matrix<V> out;
  const R half = R(0.5) * factor;
  const V trace = (m.im[0] + m.im[4] + m.im[8]) * R(1.0 / 3.0);
  for (int a = 0; a < 3; ++a) {
    out.re[4 * a] = m.re[4 * a] - m.re[4 * a];  // zero, or NaN where the element is not finite
    out.im[4 * a] = (m.im[4 * a] - trace) * factor;
    for (int b = 0; b < a; ++b) {
      const int i = 3 * a + b, j = 3 * b + a;
      out.re[i] = (m.re[i] - m.re[j]) * half;
      out.im[i] = (m.im[i] + m.im[j]) * half;
      out.re[j] = -out.re[i];
      out.im[j] = out.im[i];
    }
  }
  return out;
}

}  // namespace lqcd
