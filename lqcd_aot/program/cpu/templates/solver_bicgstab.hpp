// Purpose: stabilised bi-conjugate gradient on M x = b, every column with its own scalars.
// Owns: the recursion and when it breaks down (an inner product it divides by is rounding noise). The caller then begins again
// with another shadow residual. Refuses to know: the operator and its fields' layout.
//
//   v = M p;  alpha = rho/(shadow, v);  r -= alpha v;  t = M r;  omega = (t, r)/|t|^2;  x += alpha p + omega r;  r -= omega t
//   rho' = (shadow, r);  p = r + rho'/rho alpha/omega (p - omega v)
// The second number of the history is |omega|. Source: H. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631.
#pragma once

#include "solver_progress.hpp"

namespace lqcd {

inline constexpr int64_t kMethodFields = 3;  // r, p, shadow
inline constexpr int64_t kMethodWork = 2;    // v, t

struct Number {
  double re, im;
};
// Every product is an argument of a fused operation: no compiler rounds a column's numbers in its own way (simd.hpp).
inline Number operator*(Number a, Number b) {
  return {multiply_subtract(a.im, b.im, a.re * b.re), multiply_add(a.im, b.re, a.re * b.im)};
}
inline double square(Number a) { return multiply_add(a.im, a.im, a.re * a.re); }
inline Number operator/(Number a, Number b) {
  const double n = square(b);
  return {multiply_add(a.im, b.im, a.re * b.re) / n, multiply_subtract(a.re, b.im, a.im * b.re) / n};
}

// Whether an inner product is rounding noise against |a| |b|.
inline bool vanishes(double value2, double a2, double b2) {
  constexpr double tiny = 4 * (sizeof(real) == 4 ? 0x1p-23 : 0x1p-52);
  return value2 <= tiny * tiny * a2 * b2;
}

// (other, acc) and |acc|^2
struct InnerWith {
  const Vector* other;

  LQCD_INLINE void operator()(Vector (&acc)[kSpinor], int64_t at, int, Wide* sums) const {
    LoadedSpinor place;
    add_inner(sums[0], sums[1], load_spinor(place, other + at), acc);
    add_norm(sums[2], acc);
  }
};

// y += a x for complex a = (re, im)
LQCD_INLINE void add_loaded(Vector (&y)[kSpinor], Vector re, Vector im, const Vector* x) {
  LQCD_UNROLL for (int k = 0; k < kSpinor; k += 2) {
    y[k] = multiply_subtract(im, x[k + 1], multiply_add(re, x[k], y[k]));
    y[k + 1] = multiply_add(im, x[k], multiply_add(re, x[k + 1], y[k + 1]));
  }
}
LQCD_INLINE void add_complex(Vector (&y)[kSpinor], Vector re, Vector im, const Vector* stored) {
  LoadedSpinor place;
  add_loaded(y, re, im, load_spinor(place, stored));
}
LQCD_INLINE void take(Vector (&y)[kSpinor], const Vector* stored) {
  LoadedSpinor place;
  const Vector* v = load_spinor(place, stored);
  LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) y[k] = v[k];
}

struct Coefficients {
  real re[kBatch], im[kBatch];
  void set(int rhs, Number n) { re[rhs] = real(n.re), im[rhs] = real(n.im); }
  LQCD_INLINE Vector real_part(int rhs) const { return broadcast<Vector>(re[rhs]); }
  LQCD_INLINE Vector imaginary_part(int rhs) const { return broadcast<Vector>(im[rhs]); }
};

// mode: how often this right-hand side has broken down; a shadow residual of scrambled signs after the first time.
inline void begin(const State& s, const System& system, Vector* work, const double* b, const double* factor, const int32_t* mode,
                  const Active& columns) {
  Vector *x = s.x, *r = s.field(kR), *p = s.field(kP), *shadow = s.field(kShadow);
  system.take(r, work, b, factor, columns);
  each_site(columns, system.pool, [=](int64_t at, int, int64_t) {
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) x[solution_at(at) + k] = Vector{};
    LQCD_UNROLL for (int k = 0; k < kStoredSpinor; ++k) p[at + k] = r[at + k], shadow[at + k] = r[at + k];
  });
  scramble(shadow, mode, 0, system.pool);
  Sums<3> sums;
  each_site_sums<3>(columns, system.pool, system.partials, sums, [=](int64_t at, int, Wide* wide) {
    LoadedSpinor places[2];
    const Vector* residual = load_spinor(places[0], r + at);
    add_inner(wide[0], wide[1], load_spinor(places[1], shadow + at), residual);
    add_norm(wide[2], residual);
  });
  for (int rhs = 0; rhs < kBatch; ++rhs) {
    s.rr(rhs) = s.other(2, rhs) = sums.at[rhs][2];  // |shadow| = |r|
    s.other(0, rhs) = sums.at[rhs][0], s.other(1, rhs) = sums.at[rhs][1];
  }
}

// An iteration leaves nothing to the next.
struct Unfinished {};
inline void finish(const State&, const System&, const Unfinished&) {}

inline void iterate(const State& s, const System& system, Vector* v, Active& columns, Progress& progress, int32_t n, Unfinished&) {
  Vector *x = s.x, *r = s.field(kR), *p = s.field(kP), *shadow = s.field(kShadow), *t = v + kField;
  Number alpha[kBatch], omega[kBatch];
  Coefficients a, w, c;
  const auto going = [&](int rhs) { return progress.runs(rhs); };
  Sums<3> sums;
  Sums<1> half;
  system.apply<false, 3>(v, p, columns, sums, InnerWith{shadow});
  for (int i = 0; i < columns.count(); ++i) {
    const int rhs = columns[i];
    const Number value{sums.at[rhs][0], sums.at[rhs][1]};
    if (!is_finite(square(value))) progress.fail(rhs, false);
    else if (vanishes(square(value), s.other(2, rhs), sums.at[rhs][2])) progress.fail(rhs, true);
    else alpha[rhs] = Number{s.other(0, rhs), s.other(1, rhs)} / value, a.set(rhs, alpha[rhs]);
  }
  columns.choose(going);
  each_site_sums<1>(columns, system.pool, system.partials, half, [=, &a](int64_t at, int rhs, Wide* wide) {
    Vector y[kSpinor];
    take(y, r + at);
    add_complex(y, -a.real_part(rhs), -a.imaginary_part(rhs), v + at);
    add_norm(wide[0], y);
    store_spinor<false>(r + at, y);
  });
  system.apply<false, 3>(t, r, columns, sums, InnerWith{r});
  for (int i = 0; i < columns.count(); ++i) {
    const int rhs = columns[i];
    const Number value{sums.at[rhs][0], -sums.at[rhs][1]};  // (t, r) from (r, t)
    const double tt = sums.at[rhs][2], ss = half.at[rhs][0];
    // r = 0 is an exact solution, not a failure. Otherwise the half step is kept, and the caller begins again.
    omega[rhs] = {0, 0};
    if (ss != 0 && vanishes(square(value), tt, ss)) progress.fail(rhs, true);
    else if (ss != 0) omega[rhs] = {value.re / tt, value.im / tt};
    w.set(rhs, omega[rhs]);
  }
  each_site_sums<3>(columns, system.pool, system.partials, sums, [=, &a, &w](int64_t at, int rhs, Wide* wide) {
    Vector y[kSpinor];
    Vector* solution = x + solution_at(at);
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) y[k] = solution[k];
    add_complex(y, a.real_part(rhs), a.imaginary_part(rhs), p + at);
    add_complex(y, w.real_part(rhs), w.imaginary_part(rhs), r + at);
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) solution[k] = y[k];
    take(y, r + at);
    add_complex(y, -w.real_part(rhs), -w.imaginary_part(rhs), t + at);
    LoadedSpinor place;
    add_inner(wide[0], wide[1], load_spinor(place, shadow + at), y);
    add_norm(wide[2], y);
    store_spinor<false>(r + at, y);
  });
  for (int i = 0; i < columns.count(); ++i) {
    const int rhs = columns[i];
    const Number rho{sums.at[rhs][0], sums.at[rhs][1]}, before{s.other(0, rhs), s.other(1, rhs)};
    s.rr(rhs) = sums.at[rhs][2];
    s.other(0, rhs) = rho.re, s.other(1, rhs) = rho.im;
    progress.done(rhs, n, s.rr(rhs), __builtin_sqrt(square(omega[rhs])));
    if (progress.runs(rhs) && vanishes(square(rho), s.other(2, rhs), s.rr(rhs))) progress.fail(rhs, true);
    if (progress.runs(rhs) || s.rr(rhs) > 0) c.set(rhs, rho / before * (alpha[rhs] / omega[rhs]));
    else c.set(rhs, {0, 0});
  }
  each_site(columns, system.pool, [=, &c, &w](int64_t at, int rhs, int64_t) {
    Vector y[kSpinor], z[kSpinor];
    take(y, p + at);
    take(z, r + at);
    add_complex(y, -w.real_part(rhs), -w.imaginary_part(rhs), v + at);
    add_loaded(z, c.real_part(rhs), c.imaginary_part(rhs), y);
    store_spinor<false>(p + at, z);
  });
}

}  // namespace lqcd
