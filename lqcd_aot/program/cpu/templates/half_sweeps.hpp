// Purpose: two half sweeps of an even-odd operator in a row: even sites -> odd sites -> even sites.
// Owns: their order in memory-bound sizes, where the second follows the first slice by slice: links are then read from memory
// once for both, and the odd sites in between stay in the cache. Refuses to know: epilogues, sums, algorithms.
#pragma once

#include "hop.hpp"

namespace lqcd {

static_assert(kEvenOdd, "fields of this header hold one parity");
inline constexpr int64_t kSlices = kSplit.local[0];

// A whole number of `block`s a slice, and the sizes: does the second sweep follow the first?
constexpr bool by_slices(int64_t block) { return kStream && kSlices >= 4 && kSlice % block == 0; }

// Calls odd(first, last) and even(first, last) on ranges that cover the sites of either parity; even ones of a slice when the odd
// ones of that slice and of both its neighbours are done. prepare(first, last), on even sites, is called once for each of them before
// any odd one beside it, and before the same range of even(first, last).
template <bool BySlices, class Prepare, class Odd, class Even>
LQCD_INLINE void half_sweeps(const Prepare& prepare, const Odd& odd, const Even& even) {
  if constexpr (!BySlices) {
    prepare(int64_t(0), sites_of(0));
    odd(int64_t(0), sites_of(0));
    even(int64_t(0), sites_of(0));
  } else {
    prepare((kSlices - 2) * kSlice, kSlices * kSlice);
    prepare(int64_t(0), 2 * kSlice);
    odd((kSlices - 1) * kSlice, kSlices * kSlice);
    odd(int64_t(0), kSlice);
    for (int64_t t = 0; t < kSlices; ++t) {
      if (t + 2 < kSlices - 2) prepare((t + 2) * kSlice, (t + 3) * kSlice);
      if (t + 1 < kSlices - 1) odd((t + 1) * kSlice, (t + 2) * kSlice);
      even(t * kSlice, (t + 1) * kSlice);
    }
  }
}

// A half sweep over sites [from, to) of `out`, which have this parity.
template <bool Dagger, bool Stream, class Columns, class Epilogue>
void hop_part(Vector* out, const Vector* in, const Vector* links, int parity, int64_t from, int64_t to, const Columns& columns,
              lqcd_pool* pool, const Epilogue& epilogue) {
  parallel_for(pool, to - from, [&](int64_t first, int64_t last) {
    hop_range<Dagger, 0, 0, Stream>(out, in, links, parity, from + first, from + last, columns, epilogue);
  }, kLeastSites);
}

}  // namespace lqcd
