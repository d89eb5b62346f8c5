// Purpose: what this machine can do at most: fused multiply-adds, bytes from each level of memory, a cache line between two cores.
// Owns: the loops that are timed and the clock around them. Refuses to know: lattices, sizes of caches, threads (the caller starts
// them, each pinned, and they meet at a gate). Nothing here can be left out by a compiler: factors and masks come at run time, every
// accumulator starts from another number, and the sums are handed back.
#include <stdint.h>
#include <time.h>

#define SPEED_EXPORT extern "C" __attribute__((visibility("default")))

namespace speed {

inline constexpr int kBytes = SPEED_VECTOR_BYTES;
inline constexpr int64_t kGiveUp = 5'000'000'000;  // nanoseconds that one thread waits for another
enum Kind : int32_t { kRead = 0, kCopy = 1, kCopyStream = 2 };

typedef uint64_t Word __attribute__((vector_size(kBytes)));

#define SPEED_INLINE inline __attribute__((always_inline))

inline int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("" ::: "memory");
#endif
}

// Spin until done(); false where the other thread never came.
template <class Done>
inline bool wait_until(const Done& done) {
  const int64_t start = now();
  for (uint32_t spins = 1; !done(); ++spins)
    if (spins % 65536 == 0 && now() - start > kGiveUp) return false;
  return true;
}

inline bool meet(uint32_t* gate, uint32_t parties) {
  __atomic_fetch_add(gate, 1, __ATOMIC_SEQ_CST);
  return wait_until([&] {
    relax();
    return __atomic_load_n(gate, __ATOMIC_SEQ_CST) >= parties;
  });
}

template <class Real>
struct Arithmetic {
  typedef Real Vector __attribute__((vector_size(kBytes)));
  static constexpr int kChains = 13;  // with factor, addend and one to spare: the sixteen registers of AVX2

  // 2 flops a lane and instruction. 26 fused multiply-adds a pass.
  static SPEED_INLINE void peak(Vector (&a)[kChains], Vector x, Vector y) {
    for (auto& each : a) each = each * x + y;
    for (auto& each : a) each = each * x + y;
  }

  // The instructions of a hop with half spinors, 576 products (96 plain) to 264 sums, in the ratio 24 (4) : 11. Two shares of 35
  // instructions and 55 flops a lane. A product is never followed by a sum in one chain, else both would become one instruction.
  static SPEED_INLINE void mix(Vector (&a)[kChains], Vector x, Vector y) {
    for (auto& each : a) each = each * x + y;
    for (auto& each : a) each = each * x + y;
    for (int i = 0; i < kChains; ++i) a[i] = i < 8 ? a[i] * x : a[i] + y;
    for (auto& each : a) each = each * x + y;
    for (int i = 0; i < kChains; ++i) a[i] = i < 1 ? a[i] * x + y : a[i] + y;
    for (int i = 8; i < kChains; ++i) a[i] = a[i] + y;
  }

  template <bool Mixed>
  static double run(const double* numbers, int64_t passes) {
    Vector a[kChains];
    for (int i = 0; i < kChains; ++i) a[i] = Vector{} + Real(numbers[2 + i]);
    const Vector x = Vector{} + Real(numbers[0]), y = Vector{} + Real(numbers[1]);
    for (int64_t n = 0; n < passes; ++n) Mixed ? mix(a, x, y) : peak(a, x, y);
    double sum = 0;
    for (const auto& each : a)
      for (int lane = 0; lane < kBytes / int(sizeof(Real)); ++lane) sum += double(each[lane]);
    return sum;
  }

  static double run(bool mixed, const double* numbers, int64_t passes) {
    return mixed ? run<true>(numbers, passes) : run<false>(numbers, passes);
  }
};

inline constexpr int kUnroll = 8;

inline uint64_t read(const Word* from, int64_t words) {
  Word seen[kUnroll] = {};
  for (int64_t i = 0; i + kUnroll <= words; i += kUnroll)
    for (int k = 0; k < kUnroll; ++k) seen[k] ^= from[i + k];
  Word all = {};
  for (const auto& each : seen) all ^= each;
  return all[0];
}

// With a mask that is 0 at run time: as a plain copy it would become a call of memcpy, which chooses its own kind of store.
template <bool Stream>
inline void copy(Word* to, const Word* from, int64_t words, Word mask) {
  for (int64_t i = 0; i + kUnroll <= words; i += kUnroll)
    for (int k = 0; k < kUnroll; ++k) {
#if defined(__clang__)
      if constexpr (Stream) {
        __builtin_nontemporal_store(from[i + k] ^ mask, to + i + k);
        continue;
      }
#endif
      to[i + k] = from[i + k] ^ mask;
    }
#if defined(__x86_64__)
  if constexpr (Stream) __builtin_ia32_sfence();
#endif
}

}  // namespace speed

// Every function returns the wall time in nanoseconds from the gate to its end, or -1 where a thread did not come. times: (start,
// end) by the monotonic clock, so that the caller sees the span over all threads.

// double_precision: 0 float32, 1 float64. mixed: the hop's instructions, else fused multiply-adds alone. numbers: factor, addend and
// 13 start values. result: takes the sum.
SPEED_EXPORT int64_t speed_flops(int32_t double_precision, int32_t mixed, const double* numbers, int64_t passes, double* result,
                                 uint32_t* gate, uint32_t parties, int64_t* times) {
  using namespace speed;
  if (!meet(gate, parties)) return -1;
  times[0] = now();
  *result = double_precision ? Arithmetic<double>::run(mixed, numbers, passes) : Arithmetic<float>::run(mixed, numbers, passes);
  times[1] = now();
  return times[1] - times[0];
}

// Flops a lane of one pass of speed_flops.
SPEED_EXPORT int32_t speed_flops_per_pass(int32_t mixed) { return mixed ? 110 : 52; }

// kind: 0 read, 1 copy, 2 copy with streaming stores (-1 where the compiler has none). A copy goes from the first half of the buffer
// to the second. `bytes` of the buffer are touched in a pass. result: takes a word of what was read.
SPEED_EXPORT int64_t speed_bytes(int32_t kind, void* buffer, uint64_t bytes, int64_t passes, uint64_t zero, uint64_t* result,
                                 uint32_t* gate, uint32_t parties, int64_t* times) {
  using namespace speed;
#if !defined(__clang__)
  if (kind == kCopyStream) return -1;
#endif
  auto* words = static_cast<Word*>(buffer);
  const int64_t count = int64_t(bytes) / kBytes, half = count / 2;
  const Word mask = Word{} + zero;
  if (!meet(gate, parties)) return -1;
  times[0] = now();
  for (int64_t n = 0; n < passes; ++n) {
    if (kind == kRead)
      *result ^= read(words, count);
    else if (kind == kCopy)
      copy<false>(words + half, words, half, mask);
    else
      copy<true>(words + half, words, half, mask);
    __asm__ volatile("" ::: "memory");
  }
  times[1] = now();
  return times[1] - times[0];
}

// One cache line handed to and fro `rounds` times between role 0 and role 1, each on a core of its own.
SPEED_EXPORT int64_t speed_round_trips(int32_t role, uint64_t* line, int64_t rounds, uint32_t* gate, uint32_t parties,
                                       int64_t* times) {
  using namespace speed;
  if (!meet(gate, parties)) return -1;
  times[0] = now();
  for (int64_t n = 0; n < rounds; ++n) {
    const uint64_t mine = uint64_t(2 * n + 1 + role), awaited = uint64_t(2 * n + 2 - role);
    if (role == 0) __atomic_store_n(line, mine, __ATOMIC_RELEASE);
    if (!wait_until([&] { return __atomic_load_n(line, __ATOMIC_ACQUIRE) == awaited; })) return -1;
    if (role == 1) __atomic_store_n(line, mine, __ATOMIC_RELEASE);
  }
  times[1] = now();
  return times[1] - times[0];
}
