// Purpose: the system M x = b over all sites, as the algorithms see it.
// Owns: one sweep per application, the trivial preparation of right-hand side and solution. Refuses to know: algorithms.
//
// Included after make_epilogue<Dagger, Halo>(in, clover, scalars) and kCloverBytes.
#pragma once

#include "solver_fields.hpp"
#include "solver_sums.hpp"

namespace lqcd {

inline constexpr int64_t kSourceFields = 0;  // of the right-hand side that a solution needs at its end
inline constexpr int64_t kSystemWork = 0;    // fields that an application overwrites

struct System {
  const Vector* links;
  const Vector* clover;
  const double* scalars;
  lqcd_pool* pool;
  Vector* source;
  Vector* work;
  double* partials;

  // out = finish(M in) or finish(M^dag in), with its sums. prepare(first, last) makes the sites of `in`.
  template <bool Dagger, int K, class Finish, class Prepare = Ready>
  void apply(Vector* out, const Vector* in, const Active& columns, Sums<K>& sums, const Finish& finish,
             const Prepare& prepare = {}) const {
    prepare(int64_t(0), sites_of(0));
    hop_sums<Dagger, K>(out, in, links, 0, 0, sites_of(0), columns, pool, partials, make_epilogue<Dagger, 0>(in, clover, scalars),
                        finish);
    add_up<K>(partials, sums);
  }

  // to = the right-hand side; `spare` is a field that may be overwritten.
  void take(Vector* to, Vector*, const double* b, const double* factor, const Active&) const { gather(to, b, factor, 0, pool); }

  // out = base + factor x; `spare` as above.
  void give(double* out, const double* base, const double* factor, const Vector* x, Vector*, const Active&) const {
    scatter(out, base, factor, 0, pool, [=](LoadedSpinor&, int64_t at) { return x + solution_at(at); });
  }
};

}  // namespace lqcd
