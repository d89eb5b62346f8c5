// Purpose: conjugate gradient on M^dag M x = M^dag b, every column with its own scalars.
// Owns: the recursion. Refuses to know: the operator and its fields' layout.
//
//   w = M p, |w|^2;  alpha = |r|^2/|w|^2;  r -= alpha M^dag w, |r|^2;  beta = new/old;  x += alpha p, p = r + beta p
// p^dag A p is |M p|^2, so alpha is known before the second application and r is updated inside it: A p is never stored. The last step
// waits for the next iteration's M p, which makes p slice by slice just before it is read; finish does it after the last one.
// The second number of the history is alpha |r|^2, by which |b - M x|^2 falls in the iteration.
// Source: M. Hestenes, E. Stiefel, J. Res. NBS 49 (1952) 409, section 10.
#pragma once

#include "solver_progress.hpp"

namespace lqcd {

inline constexpr int64_t kMethodFields = 2;  // r, p
inline constexpr int64_t kMethodWork = 1;    // w

struct NormOnly {
  LQCD_INLINE void operator()(Vector (&acc)[kSpinor], int64_t, int, Wide* sums) const { add_norm(sums[0], acc); }
};

// r - alpha acc, and its norm
struct SubtractFromResidual {
  const Vector* r;
  const real* alpha;

  LQCD_INLINE void operator()(Vector (&acc)[kSpinor], int64_t at, int rhs, Wide* sums) const {
    const Vector a = broadcast<Vector>(alpha[rhs]);
    LoadedSpinor place;
    const Vector* before = load_spinor(place, r + at);
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) acc[k] = multiply_subtract(a, acc[k], before[k]);
    add_norm(sums[0], acc);
  }
};

// mode 0: from nothing. mode 1: x starts at zero, but the search direction stays, moved by what the new residual differs from the
// recursive one (a reliable update): the Krylov space built so far is not lost.
inline void begin(const State& s, const System& system, Vector* w, const double* b, const double* factor, const int32_t* mode,
                  const Active& columns) {
  Vector *x = s.x, *r = s.field(kR), *p = s.field(kP);
  // other(0) is the factor that r and p are scaled with.
  each_site(columns, system.pool, [=, &s](int64_t at, int rhs, int64_t) {
    const Vector scale = broadcast<Vector>(mode[rhs] == 1 ? real(factor[rhs] / s.other(0, rhs)) : real(0));
    const Vector zero{};
    LoadedSpinor places[2];
    const Vector *direction = load_spinor(places[0], p + at), *residual = load_spinor(places[1], r + at);
    Vector v[kSpinor];
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) {
      v[k] = mode[rhs] == 1 ? scale * (direction[k] - residual[k]) : zero;
      x[solution_at(at) + k] = zero;
    }
    store_spinor<false>(p + at, v);
  });
  system.take(w, r, b, factor, columns);
  each_site(columns, system.pool, [=](int64_t at, int, int64_t) {
    const Vector zero[kSpinor] = {};
    store_spinor<false>(r + at, zero);
  });
  real minus[kBatch];
  for (int rhs = 0; rhs < kBatch; ++rhs) minus[rhs] = real(-1), s.other(0, rhs) = factor[rhs];
  Sums<1> rr;
  system.apply<true, 1>(r, w, columns, rr, SubtractFromResidual{r, minus});
  each_site(columns, system.pool, [=](int64_t at, int, int64_t) {
    LoadedSpinor places[2];
    const Vector *direction = load_spinor(places[0], p + at), *residual = load_spinor(places[1], r + at);
    Vector v[kSpinor];
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) v[k] = direction[k] + residual[k];
    store_spinor<false>(p + at, v);
  });
  for (int rhs = 0; rhs < kBatch; ++rhs) s.rr(rhs) = rr.at[rhs][0];
}

// The last step of an iteration: x += alpha p, p = r + beta p, for the columns that made the iteration.
struct Unfinished {
  Active columns;
  real alpha[kBatch], beta[kBatch];
};

inline void move_on(const State& s, lqcd_pool* pool, const Unfinished& step, int64_t from, int64_t to) {
  Vector *x = s.x, *r = s.field(kR), *p = s.field(kP);
  if (step.columns.count() == 0) return;
  each_site_of(from, to, step.columns, pool, [=, &step](int64_t at, int rhs, int64_t) {
    const Vector a = broadcast<Vector>(step.alpha[rhs]), c = broadcast<Vector>(step.beta[rhs]);
    LoadedSpinor places[2];
    const Vector *direction = load_spinor(places[0], p + at), *residual = load_spinor(places[1], r + at);
    Vector* solution = x + solution_at(at);
    Vector v[kSpinor];
    LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) {
      solution[k] = multiply_add(a, direction[k], solution[k]);
      v[k] = multiply_add(c, direction[k], residual[k]);
    }
    store_spinor<false>(p + at, v);
  });
}

inline void finish(const State& s, const System& system, const Unfinished& step) {
  move_on(s, system.pool, step, 0, sites_of(0));
}

inline void iterate(const State& s, const System& system, Vector* w, Active& columns, Progress& progress, int32_t n,
                    Unfinished& step) {
  Vector *r = s.field(kR), *p = s.field(kP);
  Sums<1> ww, rr;
  system.apply<false, 1>(w, p, columns, ww, NormOnly{},
                         [&](int64_t first, int64_t last) { move_on(s, system.pool, step, first, last); });
  for (int i = 0; i < columns.count(); ++i) {
    const int rhs = columns[i];
    const double value = ww.at[rhs][0];
    if (!(value > 0) || !is_finite(value)) progress.fail(rhs, is_finite(value));
    else step.alpha[rhs] = real(s.rr(rhs) / value);
  }
  columns.choose([&](int rhs) { return progress.runs(rhs); });
  step.columns = columns;
  system.apply<true, 1>(r, w, columns, rr, SubtractFromResidual{r, step.alpha});
  for (int i = 0; i < columns.count(); ++i) {
    const int rhs = columns[i];
    const double before = s.rr(rhs);
    step.beta[rhs] = real(rr.at[rhs][0] / before);
    s.rr(rhs) = rr.at[rhs][0];
    progress.done(rhs, n, rr.at[rhs][0], double(step.alpha[rhs]) * before);
  }
}

}  // namespace lqcd
