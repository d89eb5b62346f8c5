// Purpose: how a site's spinor and a link lie in memory, where that is not as they are computed with.
// Owns: the formats, loading and storing of one site. Refuses to know: lattices, sweeps, solvers.
//
//   as computed   24 and 18 vectors of LQCD_REAL
//   float16       LQCD_STORAGE_float16: halves, 24 and 18 a site (12 and 9 vectors); a spinor has one vector of scales behind it, the
//                 power of two of its largest component lane by lane, so that no magnitude leaves the range; what is scaled is exact
//   bfloat16      LQCD_STORAGE_bfloat16: the upper half of a float, whose exponent it has: 12 and 9 vectors, no scale
//   two rows      LQCD_STORAGE_float32_12, _float64_12: spinors as computed, links without their third row, 12 vectors (two_rows.hpp)
// Offsets count in vectors everywhere. Arithmetic knows no format: it loads, and rounds to nearest once when it stores.
#pragma once

#include "two_rows.hpp"

namespace lqcd {

inline constexpr int kLink = 18;

#if defined(LQCD_STORAGE_float16) || defined(LQCD_STORAGE_bfloat16)
inline constexpr bool kHalves = true;
#else
inline constexpr bool kHalves = false;
#endif
#if defined(LQCD_STORAGE_float32_12) || defined(LQCD_STORAGE_float64_12)
inline constexpr bool kTwoRows = true;
#else
inline constexpr bool kTwoRows = false;
#endif
#if defined(LQCD_STORAGE_float16)
inline constexpr bool kScaled = true;
#define LQCD_STORED "-h16"
#elif defined(LQCD_STORAGE_bfloat16)
inline constexpr bool kScaled = false;
#define LQCD_STORED "-b16"
#else
inline constexpr bool kScaled = false;
#if defined(LQCD_STORAGE_float32_12) || defined(LQCD_STORAGE_float64_12)
#define LQCD_STORED "-r12"
#else
#define LQCD_STORED ""
#endif
#endif
static_assert(!kHalves || sizeof(real) == 4, "halves are what floats are stored as");

inline constexpr int kStoredLink = kHalves ? kLink / 2 : kTwoRows ? 12 : kLink;
inline constexpr int kStoredSpinor = kHalves ? kSpinor / 2 + kScaled : kSpinor;

typedef uint32_t Bits __attribute__((vector_size(kLanes * 4)));
typedef uint16_t Halves __attribute__((vector_size(kLanes * 2), may_alias));

#if defined(LQCD_STORAGE_float16)
typedef _Float16 Float16s __attribute__((vector_size(kLanes * 2)));
LQCD_INLINE Vector widen_half(Halves half) { return __builtin_convertvector((Float16s)half, Vector); }
LQCD_INLINE Halves narrow_half(Vector v) { return (Halves)__builtin_convertvector(v, Float16s); }
#elif defined(LQCD_STORAGE_bfloat16)
LQCD_INLINE Vector widen_half(Halves half) { return (Vector)(__builtin_convertvector(half, Bits) << 16); }
// To nearest, ties to even; NaN stays NaN, whatever its payload.
LQCD_INLINE Halves narrow_half(Vector v) {
  const Bits bits = (Bits)v, rounded = bits + 0x7fff + ((bits >> 16) & 1);
  const Bits nan = (Bits)(v != v);
  return __builtin_convertvector(((rounded & ~nan) | (nan & 0x7fc00000)) >> 16, Halves);
}
#endif

// What a load needs beside the stored numbers: nothing where they are as computed, else a place for them.
struct LoadedLink {
  Vector at[kHalves || kTwoRows ? kLink : 1];
};
struct LoadedSpinor {
  Vector at[kHalves ? kSpinor : 1];
};

// third: the factor of a third row that is not stored.
LQCD_INLINE const Vector* load_link(LoadedLink& place, const Vector* stored, const Vector* third) {
#if defined(LQCD_STORAGE_float16) || defined(LQCD_STORAGE_bfloat16)
  const auto* halves = reinterpret_cast<const Halves*>(stored);
  (void)third;
  LQCD_UNROLL for (int k = 0; k < kLink; ++k) place.at[k] = widen_half(halves[k]);
  return place.at;
#else
  if constexpr (!kTwoRows) return stored;
  LQCD_UNROLL for (int k = 0; k < kStoredLink; ++k) place.at[k] = stored[k];
  add_third_row(place.at, third);
  return place.at;
#endif
}

LQCD_INLINE void store_link(Vector* stored, const Vector* u) {
#if defined(LQCD_STORAGE_float16) || defined(LQCD_STORAGE_bfloat16)
  auto* halves = reinterpret_cast<Halves*>(stored);
  LQCD_UNROLL for (int k = 0; k < kLink; ++k) halves[k] = narrow_half(u[k]);
#else
  LQCD_UNROLL for (int k = 0; k < kStoredLink; ++k) stored[k] = u[k];
#endif
}

LQCD_INLINE const Vector* load_spinor(LoadedSpinor& place, const Vector* stored) {
#if defined(LQCD_STORAGE_float16) || defined(LQCD_STORAGE_bfloat16)
  const auto* halves = reinterpret_cast<const Halves*>(stored);
  LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) {
    place.at[k] = widen_half(halves[k]);
    if constexpr (kScaled) place.at[k] = place.at[k] * stored[kSpinor / 2];
  }
  return place.at;
#else
  (void)place;
  return stored;
#endif
}

#if defined(LQCD_STORAGE_float16)
// The power of two at or below the largest component of a lane, from 2^-100 to 2^126: so divided every component is below 4. NaN
// and infinity stay what they are.
LQCD_INLINE Bits scale_bits(const Vector* v) {
  Bits largest = Bits{} + 0x0d800000;
  LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) {
    const Bits size = (Bits)v[k] & 0x7f800000;
    largest = size > largest ? size : largest;
  }
  const Bits most = Bits{} + 0x7e800000;  // the largest power whose inverse is a normal number too
  return largest > most ? most : largest;
}
#endif

template <bool Stream>
LQCD_INLINE void store_spinor(Vector* stored, const Vector* v) {
#if defined(LQCD_STORAGE_float16)
  auto* halves = reinterpret_cast<Halves*>(stored);
  const Bits scale = scale_bits(v);
  const Vector inverse = (Vector)(0x7f000000 - scale);  // 1/2^e exactly
  LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) store<Stream>(halves + k, narrow_half(v[k] * inverse));
  store<Stream>(stored + kSpinor / 2, (Vector)scale);
#elif defined(LQCD_STORAGE_bfloat16)
  auto* halves = reinterpret_cast<Halves*>(stored);
  LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) store<Stream>(halves + k, narrow_half(v[k]));
#else
  LQCD_UNROLL for (int k = 0; k < kSpinor; ++k) store<Stream>(stored + k, v[k]);
#endif
}

}  // namespace lqcd
