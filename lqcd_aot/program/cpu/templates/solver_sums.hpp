// Purpose: sweeps and passes over packed vectors that sum while they run, for the columns that still iterate.
// Owns: which columns run, blocks and order of the sums (no bit depends on the thread count), the vector arithmetic of a site.
// Refuses to know: algorithms and operators.
//
// A site adds its products in the artifact's precision, 48 terms at most, lane by lane; everything above a site is float64.
#pragma once

#include "hop.hpp"

namespace lqcd {

inline constexpr int64_t kField = spinor_field(0);  // vectors of one field
inline constexpr int64_t kSumBlock = 8;  // sites of one partial sum
inline constexpr int kMaxSums = 3;                                 // of one column
inline constexpr int64_t kPartials = ((sites_of(0) + kSumBlock - 1) / kSumBlock) * kBatch * kMaxSums;

typedef double Wide __attribute__((vector_size(kLanes * sizeof(double))));

// The columns that take part in a step.
class Active {
 public:
  LQCD_INLINE int count() const { return count_; }
  LQCD_INLINE int operator[](int i) const { return column_[i]; }
  template <class Predicate>
  void choose(const Predicate& takes_part) {
    count_ = 0;
    for (int rhs = 0; rhs < kBatch; ++rhs)
      if (takes_part(rhs)) column_[count_++] = rhs;
  }

 private:
  int count_ = 0;
  int column_[kBatch] = {};
};

// One number per column and sum.
template <int K>
struct Sums {
  double at[kBatch][K];
};

LQCD_INLINE Wide widen(Vector v) { return __builtin_convertvector(v, Wide); }

// sum += |v|^2, re and im in two chains.
LQCD_INLINE void add_norm(Wide& sum, const Vector* v) {
  Vector re = v[0] * v[0], im = v[1] * v[1];
  LQCD_UNROLL for (int k = 2; k < kSpinor; k += 2) {
    re = multiply_add(v[k], v[k], re);
    im = multiply_add(v[k + 1], v[k + 1], im);
  }
  sum += widen(re + im);
}

// (re, im) += sum conj(a) b
LQCD_INLINE void add_inner(Wide& re_sum, Wide& im_sum, const Vector* a, const Vector* b) {
  Vector re = a[0] * b[0], im = a[0] * b[1];
  LQCD_UNROLL for (int k = 0; k < kSpinor; k += 2) {
    if (k > 0) re = multiply_add(a[k], b[k], re), im = multiply_add(a[k], b[k + 1], im);
    re = multiply_add(a[k + 1], b[k + 1], re);
    im = multiply_subtract(a[k + 1], b[k], im);
  }
  re_sum += widen(re);
  im_sum += widen(im);
}

// range(first, last, sums by column) on blocks of sites [from, to): the partial sums.
template <int K, class Range>
void sum_part(lqcd_pool* pool, double* partials, int64_t from, int64_t to, const Range& range) {
  static_assert(K <= kMaxSums, "partials are sized for fewer sums");
  sum_in_blocks<kBatch * K>(pool, from / kSumBlock, block_count(to, kSumBlock), to, kSumBlock, partials,
                            [&](int64_t first, int64_t last, double (&sum)[kBatch * K]) {
                              Wide wide[kBatch * K] = {};
                              range(first, last, wide);
                              for (int j = 0; j < kBatch * K; ++j)
                                for (int lane = 0; lane < kLanes; ++lane) sum[j] += wide[j][lane];
                            }, (kLeastSites + kSumBlock - 1) / kSumBlock);
}

template <int K>
void add_up(double* partials, Sums<K>& sums) {
  double flat[kBatch * K];
  add_blocks_up<kBatch * K>(block_count(sites_of(0), kSumBlock), partials, flat);
  for (int j = 0; j < kBatch * K; ++j) sums.at[j / K][j % K] = flat[j];
}

// A hop sweep over sites [from, to) whose epilogue is followed by finish(acc, offset of the site's spinor, rhs, its K sums).
// When all sites are done the sums are to be added up.
template <bool Dagger, int K, class Epilogue, class Finish>
void hop_sums(Vector* out, const Vector* in, const Vector* links, int parity, int64_t from, int64_t to, const Active& columns,
              lqcd_pool* pool, double* partials, const Epilogue& epilogue, const Finish& finish) {
  sum_part<K>(pool, partials, from, to, [&](int64_t first, int64_t last, Wide* wide) {
    hop_range<Dagger, 0, 0, kStream>(out, in, links, parity, first, last, columns,
                                     [&](Vector (&acc)[kSpinor], const Coordinates& c, int64_t site, int rhs) {
                                       epilogue(acc, c, site, rhs);
                                       finish(acc, site * kSiteStride + rhs * kStoredSpinor, rhs, wide + rhs * K);
                                     });
  });
}

// body(offset of a spinor, rhs, site) on sites [from, to) and every column; nothing is summed.
template <class Body>
void each_site_of(int64_t from, int64_t to, const Active& columns, lqcd_pool* pool, const Body& body) {
  parallel_for(pool, to - from, [&](int64_t first, int64_t last) {
    for (int64_t site = from + first; site < from + last; ++site)
      for (int i = 0; i < columns.count(); ++i) body(site * kSiteStride + columns[i] * kStoredSpinor, columns[i], site);
  }, 8 * kLeastSites);
}
template <class Body>
void each_site(const Active& columns, lqcd_pool* pool, const Body& body) {
  each_site_of(0, sites_of(0), columns, pool, body);
}

// body(offset of a spinor, rhs, its K sums) on every site and column.
template <int K, class Body>
void each_site_sums(const Active& columns, lqcd_pool* pool, double* partials, Sums<K>& sums, const Body& body) {
  sum_part<K>(pool, partials, 0, sites_of(0), [&](int64_t first, int64_t last, Wide* wide) {
    for (int64_t site = first; site < last; ++site)
      for (int i = 0; i < columns.count(); ++i)
        body(site * kSiteStride + columns[i] * kStoredSpinor, columns[i], wide + columns[i] * K);
  });
  add_up<K>(partials, sums);
}

}  // namespace lqcd
