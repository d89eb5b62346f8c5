// Purpose: the even-odd system S x_e = b_e - H_eo A_oo^-1 b_o, as the algorithms see it, for a right-hand side on all sites.
// Owns: two half sweeps per application, the preparation of the right-hand side, the odd sites of the solution:
//   x_o = A_oo^-1 (b_o - H_oe x_e).  The residual of the full system then is that of the even one, and zero on odd sites.
// Refuses to know: algorithms, and what the site-diagonal term A is.
//
// Included after odd_epilogue, even_epilogue, odd_inverse and kCloverBytes.
#pragma once

#include "half_sweeps.hpp"
#include "solver_fields.hpp"
#include "solver_sums.hpp"

namespace lqcd {

inline constexpr int64_t kSourceFields = 1;  // b_o
inline constexpr int64_t kSystemWork = 1;    // what the first half sweep leaves on odd sites

struct System {
  const Vector* links;
  const Vector* clover;
  const double* scalars;
  lqcd_pool* pool;
  Vector* source;
  Vector* work;
  double* partials;

  // out = finish(S in) or finish(S^dag in), with its sums. prepare(first, last) makes the sites of `in` that are about to be read.
  template <bool Dagger, int K, class Finish, class Prepare = Ready>
  void apply(Vector* out, const Vector* in, const Active& columns, Sums<K>& sums, const Finish& finish,
             const Prepare& prepare = {}) const {
    constexpr bool slices = by_slices(kSumBlock);
    half_sweeps<slices>(
        prepare,
        [&](int64_t first, int64_t last) {
          hop_part<Dagger, kStream && !slices>(work, in, links, 1, first, last, columns, pool, odd_epilogue(clover, scalars));
        },
        [&](int64_t first, int64_t last) {
          hop_sums<Dagger, K>(out, work, links, 0, first, last, columns, pool, partials, even_epilogue(in, clover, scalars),
                              finish);
        });
    add_up<K>(partials, sums);
  }

  void take(Vector* to, Vector* spare, const double* b, const double* factor, const Active& columns) const {
    gather(to, b, factor, 0, pool);
    gather(source, b, factor, 1, pool);
    invert_odd(work, columns, [=, this](Vector (&v)[kSpinor], int64_t at) {
      LoadedSpinor place;
      const Vector* b_odd = load_spinor(place, source + at);
      LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) v[k] = b_odd[k];
    });
    hop_part<false, kStream>(spare, work, links, 0, 0, sites_of(0), columns, pool, HopOnly{});
    each_site(columns, pool, [=](int64_t at, int, int64_t) {
      LoadedSpinor places[2];
      const Vector *b_even = load_spinor(places[0], to + at), *hop = load_spinor(places[1], spare + at);
      Vector v[kSpinor];
      LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) v[k] = b_even[k] - hop[k];
      store_spinor<false>(to + at, v);
    });
  }

  void give(double* out, const double* base, const double* factor, const Vector* x, Vector* spare, const Active& columns) const {
    scatter(out, base, factor, 0, pool, [=](LoadedSpinor&, int64_t at) { return x + solution_at(at); });
    const Vector* even = kHalves ? spare : x;
    if constexpr (kHalves)
      each_site(columns, pool, [=](int64_t at, int, int64_t) { store_spinor<false>(spare + at, x + solution_at(at)); });
    hop_part<false, kStream>(work, even, links, 1, 0, sites_of(0), columns, pool, HopOnly{});
    invert_odd(work, columns, [=, this](Vector (&v)[kSpinor], int64_t at) {
      LoadedSpinor places[2];
      const Vector *b_odd = load_spinor(places[0], source + at), *hop = load_spinor(places[1], work + at);
      LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) v[k] = b_odd[k] - hop[k];
    });
    scatter(out, base, factor, 1, pool, [to = work](LoadedSpinor& place, int64_t at) { return load_spinor(place, to + at); });
  }

 private:
  // out = A_oo^-1 of what read(v, offset) fills in.
  template <class Read>
  void invert_odd(Vector* out, const Active& columns, const Read& read) const {
    const auto inverse = odd_inverse(clover, scalars);
    each_site(columns, pool, [=](int64_t at, int rhs, int64_t site) {
      Vector v[kSpinor];
      read(v, at);
      inverse(v, coordinates(site, 0, 1), site, rhs);
      store_spinor<false>(out + at, v);
    });
  }
};

}  // namespace lqcd
