// Purpose: the entry points of kind `solver`.
// Owns: argument checks, the layout of state and workspace, status words. Refuses to know: algorithm and system; the entry file
// includes both before: System, kMethodFields (vectors kept between calls beside x), kMethodWork, begin, iterate, and finish of the
// Unfinished step that an iteration leaves to the next.
#pragma once

#include "dirac_entry.hpp"

namespace lqcd {

inline constexpr int64_t kNumbers = (4 * kBatch + 7) / 8 * 8;  // float64 per column that live between calls
inline constexpr int64_t kFieldBytes = spinor_bytes(0);
inline constexpr int64_t kSolution = sites_of(0) * kBatch * kSpinor;  // vectors
inline constexpr int64_t kStateBytes = kNumbers * 8 + kSolution * int64_t(sizeof(Vector)) + (kMethodFields + kSourceFields) * kFieldBytes;
inline constexpr int64_t kSolverWork = (kMethodWork + kSystemWork) * kFieldBytes + (kPartials * 8 + 63) / 64 * 64;

inline State state_at(void* state) {
  auto* numbers = static_cast<double*>(state);
  auto* x = reinterpret_cast<Vector*>(numbers + kNumbers);
  return {numbers, x, x + kSolution};
}

inline System system_at(const State& state, const void* gauge, const void* clover, void* work, const double* scalars,
                        lqcd_pool* pool) {
  auto* vectors = static_cast<Vector*>(work);
  return {static_cast<const Vector*>(gauge), static_cast<const Vector*>(clover), scalars, pool,
          state.field(kMethodFields), vectors + kMethodWork * kField,
          reinterpret_cast<double*>(vectors + (kMethodWork + kSystemWork) * kField)};
}

inline bool can_solve(const void* state, const void* gauge, const void* clover, const void* work, const double* scalars) {
  return aligned(state) && aligned(gauge) && aligned(work) && scalars && (!kCloverBytes || aligned(clover));
}

inline Active every_column() {
  Active all;
  all.choose([](int) { return true; });
  return all;
}

}  // namespace lqcd

uint64_t lqcd_bytes(int32_t what) {
  using namespace lqcd;
  const int64_t bytes[] = {kGaugeBytes, 0, 0, kSolverWork, kCloverBytes, kStateBytes};
  return what >= 0 && what < 6 ? uint64_t(bytes[what]) : 0;
}

const char* lqcd_gauge_layout(void) {
  static constexpr auto layout = lqcd::kGaugeLayout;
  return layout.chars;
}

LQCD_LINK_ENTRY_POINT

int32_t lqcd_solve_begin(void* state, const double* b, const double* factor, const int32_t* mode, const void* gauge,
                         const void* clover, void* work, const double* scalars, double* norms, lqcd_pool* pool) {
  using namespace lqcd;
  if (!can_solve(state, gauge, clover, work, scalars) || !b || !factor || !mode || !norms) return kBadArgument;
  const State s = state_at(state);
  begin(s, system_at(s, gauge, clover, work, scalars, pool), static_cast<Vector*>(work), b, factor, mode, every_column());
  for (int rhs = 0; rhs < kBatch; ++rhs) norms[rhs] = s.rr(rhs);
  return kOk;
}

int32_t lqcd_solve_iterate(void* state, const void* gauge, const void* clover, void* work, const double* scalars,
                           const double* stop, int32_t iterations, double* history, int32_t* outcome, lqcd_pool* pool) {
  using namespace lqcd;
  if (!can_solve(state, gauge, clover, work, scalars) || !stop || iterations < 0 || !history || !outcome) return kBadArgument;
  const State s = state_at(state);
  Progress progress{stop, history, outcome};
  for (int rhs = 0; rhs < kBatch; ++rhs) progress.start(rhs, s.rr(rhs));
  const System system = system_at(s, gauge, clover, work, scalars, pool);
  Unfinished step{};
  for (int32_t n = 0; n < iterations; ++n) {
    Active columns;
    columns.choose([&](int rhs) { return progress.runs(rhs); });
    if (columns.count() == 0) break;
    iterate(s, system, static_cast<Vector*>(work), columns, progress, n, step);
  }
  finish(s, system, step);
  return kOk;
}

int32_t lqcd_solve_end(double* out, const double* base, const double* factor, void* state, const void* gauge, const void* clover,
                       void* work, const double* scalars, lqcd_pool* pool) {
  using namespace lqcd;
  if (!can_solve(state, gauge, clover, work, scalars) || !out || !factor) return kBadArgument;
  const State s = state_at(state);
  system_at(s, gauge, clover, work, scalars, pool).give(out, base, factor, s.x, static_cast<Vector*>(work),
                                                                every_column());
  return kOk;
}
