// Purpose: one vector type and the few operations on it that the Dirac templates use.
// Owns: the width, fused multiply-add, streaming stores, the alignment of spilled vectors. Refuses to know: lattices and fields.
//
// Arithmetic is spelled so that a product only ever feeds an explicit fma or another product: no compiler then has a choice of
// contraction, and a site gets the same bits in every lane, layout, thread and slab. NaN and infinities follow IEEE 754.
#pragma once

#include <stdint.h>

namespace lqcd {

using real = LQCD_REAL;

inline constexpr int kMaxLanes = LQCD_VECTOR_BYTES / int(sizeof(real));

// One lane is a vector too: as plain scalars the unrolled arithmetic costs the compiler three times as long.
template <int Lanes>
struct VectorOf {
  typedef real type __attribute__((vector_size(Lanes * sizeof(real))));
};

template <int... I>
struct Indices {};
template <int N, int... I>
struct CountTo : CountTo<N - 1, N - 1, I...> {};
template <int... I>
struct CountTo<0, I...> {
  using type = Indices<I...>;
};

#define LQCD_INLINE inline __attribute__((always_inline))
#define LQCD_APART inline __attribute__((noinline))  // packing code: compiled once, not once per call
#if defined(__clang__)
#define LQCD_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LQCD_UNROLL _Pragma("GCC unroll 32")
#endif

// A function that holds an aligned variable from its beginning has an aligned stack. Without one clang finds out too late that
// vectors have to be spilled, and spills them to unaligned places: up to 1.5 times slower, as the caller's stack happens to lie.
#define LQCD_ALIGN_STACK                    \
  alignas(64) char keeps_the_stack_aligned; \
  __asm__ volatile("" : "=m"(keeps_the_stack_aligned))

// a * b + c, and c - a * b: fused where the target has the instruction, two roundings everywhere where it has not.
template <class V>
LQCD_INLINE V multiply_add(V a, V b, V c) {
#if (defined(__FMA__) || defined(__aarch64__)) && defined(__clang__)
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}
template <class V>
LQCD_INLINE V multiply_subtract(V a, V b, V c) {
  return multiply_add(-a, b, c);
}

template <class V>
LQCD_INLINE V broadcast(real value) {
  return V{} + value;
}

template <bool Stream, class V>
LQCD_INLINE void store(V* to, V value) {
#if defined(__clang__)
  if constexpr (Stream) {
    __builtin_nontemporal_store(value, to);
    return;
  }
#endif
  *to = value;
}

// Streaming stores are weakly ordered: fence before another thread is told that the data is there.
template <bool Stream>
LQCD_INLINE void finish_stores() {
#if defined(__x86_64__)
  if constexpr (Stream) __builtin_ia32_sfence();
#endif
}

}  // namespace lqcd
