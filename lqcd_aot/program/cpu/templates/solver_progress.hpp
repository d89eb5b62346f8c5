// Purpose: what an algorithm keeps between calls, and what it tells the caller.
// Owns: the numbers of the columns in the state, status words, the history. Refuses to know: algorithms.
#pragma once

#include "solver_sums.hpp"

namespace lqcd {

enum ColumnStatus : int32_t { kRunning = 0, kBelowStop = 1, kBreakdown = 2, kNotFinite = 3 };
enum StateField : int { kR = 0, kP = 1, kShadow = 2 };

inline bool is_finite(double v) { return v - v == 0; }

struct State {
  double* numbers;
  Vector* x;  // as computed (solution_at)
  Vector* fields;

  double& rr(int rhs) const { return numbers[rhs]; }                        // |r|^2 of the recursion
  double& other(int which, int rhs) const { return numbers[(1 + which) * kBatch + rhs]; }  // three more, of the algorithm
  Vector* field(int which) const { return fields + which * kField; }
};

// history [iterations][2][batch]: |r|^2 after an iteration and one further number of the algorithm; outcome [batch][2]:
// iterations done in this call, status.
struct Progress {
  const double* stop;
  double* history;
  int32_t* outcome;

  void start(int rhs, double rr) {
    outcome[2 * rhs] = 0;
    outcome[2 * rhs + 1] = !is_finite(rr) ? kNotFinite : rr <= stop[rhs] ? kBelowStop : kRunning;
  }
  bool runs(int rhs) const { return outcome[2 * rhs + 1] == kRunning; }
  void fail(int rhs, bool finite) { outcome[2 * rhs + 1] = finite ? kBreakdown : kNotFinite; }
  // Column rhs has done iteration n of this call.
  void done(int rhs, int32_t n, double rr, double further) {
    history[(2 * n) * kBatch + rhs] = rr;
    history[(2 * n + 1) * kBatch + rhs] = further;
    outcome[2 * rhs] = n + 1;
    if (!runs(rhs)) return;
    if (!is_finite(rr)) fail(rhs, false);
    else if (rr <= stop[rhs]) outcome[2 * rhs + 1] = kBelowStop;
  }
};

}  // namespace lqcd
