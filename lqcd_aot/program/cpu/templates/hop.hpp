// Purpose: one sweep of the hop term over a packed field, with a per-site epilogue.
// Owns: the order of the arithmetic of a site: directions T+ T- Z+ Z- Y+ Y- X+ X-, colours in order, then the epilogue.
// Refuses to know: masses, clover terms, even and odd (a caller names the fields).
//
//   out(x) = epilogue(in'(x), sum_d (1 -/+ gamma) V_d(x) in(x + d)),  V_d the packed links (-1/2 inside)
// Dagger exchanges the projectors' signs. Links are read once a site and shared by all right-hand sides of the batch.
#pragma once

#include "links.hpp"
#include "spinors.hpp"

namespace lqcd {

// Bytes that a sweep touches. Above the first limit little of the output would survive in the last cache: stores bypass it. What
// the caller gets, and nobody here reads again, bypasses it from the second limit on, which leaves the cache to the input. Above
// the third one part of a site's input comes from beyond the second cache: the sweep asks for it ahead of time.
inline constexpr int64_t kSweepBytes = kGaugeBytes + 2 * spinor_bytes(0);
inline constexpr bool kStream = kSweepBytes >= 16 << 20, kStreamResult = kSweepBytes >= 4 << 20;
inline constexpr bool kPrefetch = kSweepBytes >= 512 << 10;

// One row of V h (Adjoint: of V^dag h) for one spin: colours are summed in the order 0, 1, 2.
template <bool Adjoint>
LQCD_INLINE void link_row(Vector& re, Vector& im, const Vector* u, const Vector* h, int row) {
  LQCD_UNROLL for (int b = 0; b < 3; ++b) {
    const int k = 2 * (Adjoint ? b * 3 + row : row * 3 + b);
    const Vector u_re = u[k], u_im = u[k + 1], h_re = h[2 * b], h_im = h[2 * b + 1];
    re = b == 0 ? u_re * h_re : multiply_add(u_re, h_re, re);
    im = b == 0 ? u_re * h_im : multiply_add(u_re, h_im, im);
    re = Adjoint ? multiply_add(u_im, h_im, re) : multiply_subtract(u_im, h_im, re);
    im = Adjoint ? multiply_subtract(u_im, h_re, im) : multiply_add(u_im, h_re, im);
  }
}

// Where the links of one site are: u[d] for each direction.
// third[d]: the factor of its third row, where that is not stored; near: of the mixed lanes that stay in their pair.
struct SiteLinks {
  const Vector* u[8];
  const Vector* third[8];
  const Vector* near;
};

// What a site needs from beyond the second cache: its own links; the spinors one step ahead in T and Z, read there for the first
// time, or for the first time since a slice ago; those behind in T where three slices overflow the second cache. A processor's own
// prefetcher gives up at every page, which is one or two sites long here. The software's is spread over the arithmetic, four of
// the longest vectors' spinors ahead at most: further ahead the first cache has lost it before it is used. What comes from memory
// takes longer than that: where fields overflow the last cache, spinors ahead in T are fetched into the second cache first; so are
// single columns' links, which even-odd sweeps, that use a link once, gain from at every size.
inline constexpr int64_t kAhead = 64 / int64_t(sizeof(Vector));
inline constexpr bool kFetchBehind = 3 * kSlice * kSiteStride * int64_t(sizeof(Vector)) >= 8 << 20;
inline constexpr bool kFarSpinors = kStream, kFarLinks = kBatch == 1 && (kStream || kEvenOdd);
inline constexpr int64_t kFarAhead = (kBatch == 1 ? 6 : 12) * kAhead, kAheadInT = kFarSpinors ? 1 : kAhead;

// Part D of 8 of the spinor at `from`, into all caches, or only into those behind the first.
template <int D, bool Far = false>
LQCD_INLINE void prefetch_spinor(const Vector* from) {
  constexpr int64_t bytes = int64_t(sizeof(Vector)) * kStoredSpinor, first = bytes * D / 8, last = bytes * (D + 1) / 8;
  LQCD_UNROLL for (int64_t at = (first + 63) / 64 * 64; at < last; at += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(from) + at, 0, Far ? 2 : 3);
}

// During direction D of one right-hand side: for the next one, which follows in memory, be it of this site or of the next.
template <int D>
LQCD_INLINE void prefetch_spinors(const Vector* in, const Neighbours& n) {
  if constexpr (!kPrefetch) return;
  if constexpr (kFarSpinors) prefetch_spinor<D, true>(in + n.position[0] * kSiteStride + kFarAhead * kStoredSpinor);
  prefetch_spinor<D>(in + n.position[0] * kSiteStride + kAheadInT * kStoredSpinor);
  prefetch_spinor<D>(in + n.position[2] * kSiteStride + kAhead * kStoredSpinor);
  if constexpr (kFetchBehind) prefetch_spinor<D>(in + n.position[1] * kSiteStride + kAhead * kStoredSpinor);
}

// Links of a later site; every right-hand side asks for one part of `parts`. On the full lattice backward links have been forward
// ones shortly before; those of the other parity have not.
LQCD_INLINE void prefetch_links(const SiteLinks& links, int part, int parts) {
  if constexpr (!kPrefetch) return;
  constexpr int64_t distance = (kFarLinks ? 4 * kAhead : kBatch == 1 ? kAhead : 1) * kStoredLink;
  constexpr int64_t lines = (kStoredLink * int64_t(sizeof(Vector)) + 63) / 64;
  for (int64_t line = lines * part / parts; line < lines * (part + 1) / parts; ++line)
    for (int d = 0; d < 8; d += kEvenOdd ? 1 : 2)
      __builtin_prefetch(reinterpret_cast<const char*>(links.u[d] + distance) + line * 64, 0, kFarLinks ? 2 : 3);
}

// values of the next sub-lattice in the lanes that step across a face.
template <int D, int N>
LQCD_INLINE void cross_face(Vector (&values)[N], const Neighbours& n) {
  if (kSplit.cut[D / 2] == 1 || !n.face[D]) return;
  LQCD_UNROLL for (int k = 0; k < N; ++k) {
    const Vector crossed = across_face<D>(values[k]);
    if constexpr (!(kMixed && D / 2 == 3)) values[k] = crossed;
    else values[k] = n.odd ? leaving_lanes<D, true>(crossed, values[k]) : leaving_lanes<D, false>(crossed, values[k]);
  }
}

// Adds direction D of one right-hand side. A backward product is formed at the neighbour, then shuffled.
template <int D, bool Dagger>
LQCD_INLINE void add_direction(Vector (&acc)[kSpinor], const Vector* psi, const Vector* u, const Neighbours& n) {
  constexpr bool backward = D % 2;
  Vector h[kHalf], r[kHalf];
  project<D, Dagger>(h, psi);
  if constexpr (!backward) cross_face<D>(h, n);
  LQCD_UNROLL for (int a = 0; a < 3; ++a) {
    link_row<backward>(r[2 * a], r[2 * a + 1], u, h, a);
    link_row<backward>(r[6 + 2 * a], r[7 + 2 * a], u, h + 6, a);
  }
  if constexpr (backward) cross_face<D>(r, n);
  LQCD_UNROLL for (int a = 0; a < 3; ++a) {
    reconstruct<D, Dagger, 0, D == 0>(acc, a, r[2 * a], r[2 * a + 1]);
    reconstruct<D, Dagger, 1, D == 0>(acc, a, r[6 + 2 * a], r[7 + 2 * a]);
  }
}

// Mixed lanes, D a step in X: each lane's part of the spinor and the link, of the next pair or of its own.
template <int D, bool Dagger>
LQCD_INLINE void add_mixed(Vector (&acc)[kSpinor], const Vector* in, const SiteLinks& links, const Neighbours& n) {
  const Vector* far = links.u[D];
  LoadedSpinor next, own;
  LoadedLink next_link, own_link;
  const Vector *leaving = load_spinor(next, in + n.position[D] * kSiteStride), *staying = load_spinor(own, in + n.here * kSiteStride);
  const Vector *other = load_link(next_link, far, links.third[D]);
  const Vector* near = load_link(own_link, far + (n.here - n.position[D]) * kStoredLink, links.near);
  Vector psi[kSpinor], u[kLink];
  LQCD_UNROLL for (int k = 0; k < kSpinor; ++k)
    psi[k] = n.odd ? leaving_lanes<D, true>(leaving[k], staying[k]) : leaving_lanes<D, false>(leaving[k], staying[k]);
  LQCD_UNROLL for (int k = 0; k < kLink; ++k)
    u[k] = D == 6 ? other[k] : n.odd ? leaving_lanes<D, true>(other[k], near[k]) : leaving_lanes<D, false>(other[k], near[k]);
  add_direction<D, Dagger>(acc, psi, u, n);
}

// A backward link is the neighbour's: its factor is that of the coordinate before.
LQCD_INLINE void find_factors(SiteLinks& links, const Vector* factors, const Coordinates& c, const Neighbours& n) {
  for (int mu = 0; mu < 4; ++mu) {
    int64_t before = n.face[2 * mu + 1] ? kSplit.local[mu] - 1 : c.at[mu] - 1;
    if (kMixed && mu == 3) {  // of the pair before this one, the site of the other parity
      before = (n.face[7] ? 2 * (kRow - 1) : c.at[3] / 2 * 2 - 2) + (n.odd ? 0 : 1);
      links.near = factors + factor_at(3, c.at[3] ^ 1);
    }
    links.third[2 * mu] = factors + factor_at(mu, c.at[mu]);
    links.third[2 * mu + 1] = factors + factor_at(mu, before);
  }
}

template <int64_t InHalo>
LQCD_INLINE SiteLinks site_links(const Vector* here, const Vector* there, const Vector* factors, const Coordinates& c,
                                 const Neighbours& n) {
  constexpr int64_t shift = (kGaugeHalo - InHalo) * kSlice;  // from positions in the spinor field to those in the links
  const int64_t site = position(c.at[0], c.at[1], c.at[2], c.at[3], kGaugeHalo);
  SiteLinks links{};
  if constexpr (kTwoRows) find_factors(links, factors, c, n);
  for (int d = 0; d < 8; ++d)
    links.u[d] = (d % 2 == 0 ? here + site * kStoredLink : there + (n.position[d] + shift) * kStoredLink) + d / 2 * kLinkField;
  return links;
}

template <int D, bool Dagger>
LQCD_INLINE void add_directions(Vector (&acc)[kSpinor], const Vector* in, const SiteLinks& links, const Neighbours& n) {
  if constexpr (D < 8) {
    prefetch_spinors<D>(in, n);
    if constexpr (kBatch == 1) prefetch_links(links, D, 8);
    if constexpr (kMixed && D / 2 == 3) add_mixed<D, Dagger>(acc, in, links, n);
    else {
      LoadedSpinor psi;
      LoadedLink u;
      add_direction<D, Dagger>(acc, load_spinor(psi, in + n.position[D] * kSiteStride), load_link(u, links.u[D], links.third[D]), n);
    }
    add_directions<D + 1, Dagger>(acc, in, links, n);
  }
}

// The columns of a sweep: all right-hand sides of the batch. A solver passes those that are still iterating.
struct AllColumns {
  LQCD_INLINE int count() const { return kBatch; }
  LQCD_INLINE int operator[](int i) const { return i; }
};

// What makes sites [first, last) of a sweep's input before they are read, where they are there already.
struct Ready {
  LQCD_INLINE void operator()(int64_t, int64_t) const {}
};

// Sites [first, last) of `out` (with OutHalo) from `in` (with InHalo). parity: that of the sites of `out`, for even-odd fields.
// epilogue(acc, coordinates, position in out, rhs) turns the sum into what is stored, with Stream past the caches.
template <bool Dagger, int64_t InHalo, int64_t OutHalo, bool Stream, class Columns, class Epilogue>
LQCD_INLINE void hop_range(Vector* out, const Vector* in, const Vector* links, int parity, int64_t first, int64_t last,
                           const Columns& columns, const Epilogue& epilogue) {
  const Vector* here = links + (kEvenOdd ? parity * 4 * kLinkField : 0);
  const Vector* there = links + (kEvenOdd ? (1 - parity) * 4 * kLinkField : 0);
  LQCD_ALIGN_STACK;
  for (int64_t site = first; site < last; ++site) {
    const Coordinates c = coordinates(site, OutHalo, parity);
    const Neighbours n = neighbours<InHalo>(c);
    const SiteLinks u = site_links<InHalo>(here, there, links + kFactors, c, n);
    for (int i = 0; i < columns.count(); ++i) {
      const int rhs = columns[i];
      if constexpr (kBatch > 1) prefetch_links(u, i, columns.count());
      Vector acc[kSpinor];
      add_directions<0, Dagger>(acc, in + rhs * kStoredSpinor, u, n);
      epilogue(acc, c, site, rhs);
      store_spinor<Stream>(out + site * kSiteStride + rhs * kStoredSpinor, acc);
    }
  }
  finish_stores<Stream>();
}

// Outer sites that are worth a thread: about a microsecond.
inline constexpr int64_t kLeastSites = kBatch < 8 ? 8 / kBatch : 1;

// Sweep over all sites of `out`, for all right-hand sides. Result: `out` is what the caller gets.
template <bool Dagger, int64_t InHalo, int64_t OutHalo, bool Result, class Epilogue>
void hop_sweep(Vector* out, const Vector* in, const Vector* links, lqcd_pool* pool, const Epilogue& epilogue) {
  parallel_for(pool, sites_of(OutHalo), [=, &epilogue](int64_t first, int64_t last) {
    hop_range<Dagger, InHalo, OutHalo, Result ? kStreamResult : kStream>(out, in, links, 0, first, last, AllColumns{}, epilogue);
  }, kLeastSites);
}

}  // namespace lqcd
