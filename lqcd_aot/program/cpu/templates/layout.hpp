// Purpose: which site lives where in a packed field.
// Owns: the split of the lattice over vector lanes ("virtual nodes"), slabs with halo slices, coordinates, lane permutations.
// Refuses to know: what a site holds, and arithmetic.
//
// The lattice is cut into equal sub-lattices, one per lane: lane c holds the sites local + c * kLocal. A neighbour is then the
// same lane of the next outer site; only across a sub-lattice face it is another lane. Extents that cannot be halved use fewer
// lanes. A slab (kShards > 1) is never cut in T; its fields carry `halo` further T slices on both sides.
//
// An even-odd field holds one site of every pair in X. Where sub-lattices have an odd extent, half of them begin on an odd site:
// their lanes then hold the other site of the pair ("mixed lanes"). Steps in T, Z, Y keep the place of the pair in every lane;
// a step in X moves only the lanes that leave their pair.
#pragma once

#include "simd.hpp"

#ifndef LQCD_EVEN_ODD
#define LQCD_EVEN_ODD 0
#endif

namespace lqcd {

inline constexpr int kBatch = LQCD_BATCH;
inline constexpr int kShards = LQCD_SHARDS;
inline constexpr bool kEvenOdd = LQCD_EVEN_ODD;
inline constexpr int64_t kExtent[4] = {LQCD_T, LQCD_Z, LQCD_Y, LQCD_X};
inline constexpr int64_t kVolume = kExtent[0] * kExtent[1] * kExtent[2] * kExtent[3];

struct Coordinates {
  int64_t at[4];
};

struct Split {
  int cut[4];      // sub-lattices per direction
  int64_t local[4];  // extents of one
  int lanes;
};

constexpr bool can_halve(const Split& s, int mu) {
  // X of an even-odd sub-lattice stays even, so that pairs of sites stay in one lane.
  return s.local[mu] % (kEvenOdd && mu == 3 ? 4 : 2) == 0 && !(mu == 0 && kShards > 1);
}

// Halve the longest of Y, Z, X until the vector is full: smaller slices and planes, so a neighbour in T or Z is still in cache.
// T, which would make slices larger, is next, then cuts that mix lanes; a sub-lattice of extent 1, all of it face, comes last.
constexpr int64_t rank_of(const Split& s, int mu) {
  const int64_t mixes = kEvenOdd && mu < 3 && s.local[mu] / 2 % 2;
  return s.local[mu] < 4 ? s.local[mu] : (int64_t(mixes ? 1 : mu > 0 ? 3 : 2) << 32) + s.local[mu];
}

constexpr Split split_lattice() {
  constexpr int order[4] = {2, 1, 3, 0};
  Split s{{1, 1, 1, 1}, {kExtent[0] / kShards, kExtent[1], kExtent[2], kExtent[3]}, 1};
  while (s.lanes < kMaxLanes) {
    int best = -1;
    for (int mu : order)
      if (can_halve(s, mu) && (best < 0 || rank_of(s, mu) > rank_of(s, best))) best = mu;
    if (best < 0) break;
    s.cut[best] *= 2;
    s.local[best] /= 2;
    s.lanes *= 2;
  }
  return s;
}

inline constexpr Split kSplit = split_lattice();
inline constexpr int kLanes = kSplit.lanes;
inline constexpr int64_t kRow = kEvenOdd ? kSplit.local[3] / 2 : kSplit.local[3];  // sites of a row in X in one field
inline constexpr int64_t kSlice = kSplit.local[1] * kSplit.local[2] * kRow;
static_assert(kExtent[0] % kShards == 0, "shards must divide T");
static_assert(!kEvenOdd || kShards == 1, "even-odd fields are not cut into slabs");

using Vector = VectorOf<kLanes>::type;

constexpr int64_t sites_of(int64_t halo) { return (kSplit.local[0] + 2 * halo) * kSlice; }

// Position of outer coordinates in a field with `halo` extra slices; t counts from the first slice that the slab owns.
LQCD_INLINE int64_t position(int64_t t, int64_t z, int64_t y, int64_t x, int64_t halo) {
  return (((t + halo) * kSplit.local[1] + z) * kSplit.local[2] + y) * kRow + (kEvenOdd ? x / 2 : x);
}

// Outer coordinates of a position. parity selects the field of an even-odd pair; x is that of the lanes of parity 0.
LQCD_INLINE Coordinates coordinates(int64_t position, int64_t halo, int parity) {
  const int64_t x = position % kRow, y = position / kRow % kSplit.local[2];
  const int64_t z = position / (kRow * kSplit.local[2]) % kSplit.local[1], t = position / kSlice - halo;
  return {t, z, y, kEvenOdd ? 2 * x + ((t + z + y + parity) & 1) : x};
}

constexpr int lane_coordinate(int lane, int mu) {
  for (int nu = 3; nu > mu; --nu) lane /= kSplit.cut[nu];
  return lane % kSplit.cut[mu];
}

// Parity of the first site of a lane's sub-lattice, and whether an even-odd field has lanes of both.
constexpr int lane_parity(int lane) {
  int64_t sum = 0;
  for (int mu = 0; mu < 3; ++mu) sum += lane_coordinate(lane, mu) * kSplit.local[mu];
  return int(sum % 2);
}
constexpr bool mixes_lanes() {
  for (int lane = 0; lane < kLanes; ++lane)
    if (kEvenOdd && lane_parity(lane)) return true;
  return false;
}
inline constexpr bool kMixed = mixes_lanes();

// The lane whose sub-lattice is `step` further in direction mu, periodically.
constexpr int lane_neighbour(int lane, int mu, int step) {
  int stride = 1;
  for (int nu = 3; nu > mu; --nu) stride *= kSplit.cut[nu];
  const int c = lane_coordinate(lane, mu), cut = kSplit.cut[mu];
  return lane + ((c + step + cut) % cut - c) * stride;
}

// Global coordinates of a lane of an outer site of slab `slab`; periodic in T, which a halo leaves.
LQCD_INLINE Coordinates global(Coordinates outer, int lane, int64_t slab) {
  Coordinates g = outer;
  if (kMixed) g.at[3] ^= lane_parity(lane);
  for (int mu = 0; mu < 4; ++mu) g.at[mu] += lane_coordinate(lane, mu) * kSplit.local[mu];
  if (kShards > 1) g.at[0] = ((g.at[0] + slab * kSplit.local[0]) % kExtent[0] + kExtent[0]) % kExtent[0];
  return g;
}

LQCD_INLINE int64_t global_index(const Coordinates& g) {
  return ((g.at[0] * kExtent[1] + g.at[1]) * kExtent[2] + g.at[2]) * kExtent[3] + g.at[3];
}

// Direction d = 2 * mu + (0 forward, 1 backward). The value of the neighbour across a face: every lane takes from the next.
template <int D, class V, int... I>
LQCD_INLINE V shuffle_lanes(V v, Indices<I...>) {
  return __builtin_shufflevector(v, v, lane_neighbour(I, D / 2, D % 2 ? -1 : 1)...);
}
template <int D>
LQCD_INLINE Vector across_face(Vector v) {
  if constexpr (kSplit.cut[D / 2] == 1) return v;
  else return shuffle_lanes<D>(v, CountTo<kLanes>::type{});
}

// Mixed lanes, a step in X from a site whose lanes of parity 0 have x % 2 == Odd: does a lane leave its pair?
template <int D, bool Odd>
constexpr bool leaves_pair(int lane) {
  return (Odd != (lane_parity(lane) == 1)) == (D == 6);
}
template <int D, bool Odd, class V, int... I>
LQCD_INLINE V leaving_lanes(V leaving, V staying, Indices<I...>) {
  return __builtin_shufflevector(staying, leaving, (leaves_pair<D, Odd>(I) ? kLanes + I : I)...);
}
template <int D, bool Odd>
LQCD_INLINE Vector leaving_lanes(Vector leaving, Vector staying) {
  return leaving_lanes<D, Odd>(leaving, staying, CountTo<kLanes>::type{});
}

// The eight neighbours of an outer site: positions in a field with InHalo, and whether the step crosses a face. Mixed lanes in X:
// those of the lanes that leave their pair; `here`, of those that stay; `odd`: x % 2 of the lanes of parity 0.
struct Neighbours {
  int64_t position[8];
  bool face[8];
  int64_t here;
  bool odd;
};

template <int64_t InHalo>
LQCD_INLINE Neighbours neighbours(const Coordinates& c) {
  constexpr int64_t stride[4] = {kSlice, kSplit.local[2] * kRow, kRow, 1};
  const int64_t here = position(c.at[0], c.at[1], c.at[2], c.at[3], InHalo);
  Neighbours n;
  n.here = here;
  n.odd = c.at[3] % 2;
  for (int mu = 0; mu < 4; ++mu) {
    const bool wraps = !(mu == 0 && kShards > 1);
    const bool pairs = kMixed && mu == 3;  // positions of pairs, not of sites
    const int64_t last = pairs ? kRow - 1 : kSplit.local[mu] - 1, at = pairs ? c.at[3] / 2 : c.at[mu];
    n.face[2 * mu] = wraps && at == last;
    n.face[2 * mu + 1] = wraps && at == 0;
    if (kEvenOdd && mu == 3 && !kMixed) {  // a step in X changes the half index only for one of the two parities
      const int64_t base = here - c.at[3] / 2;
      n.position[6] = base + (n.face[6] ? 0 : c.at[3] + 1) / 2;
      n.position[7] = base + (n.face[7] ? last : c.at[3] - 1) / 2;
    } else {
      n.position[2 * mu] = here + (n.face[2 * mu] ? -last : 1) * stride[mu];
      n.position[2 * mu + 1] = here + (n.face[2 * mu + 1] ? last : -1) * stride[mu];
    }
  }
  return n;
}

}  // namespace lqcd
