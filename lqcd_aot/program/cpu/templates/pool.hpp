// Purpose: run a loop over blocks on a few threads, with results that do not depend on how many.
// Owns: the thread pool (start, pin, wake, park, stop), the partition, the deterministic reduction.
// Refuses to know: what the loop computes. Needs libc only: pthread_create is a weak symbol, parking is a futex.
//
//   parallel_for(pool, count, [&](int64_t first, int64_t last) { ... });    // disjoint ranges that cover [0, count)
//   reduce<K>(pool, count, block, partials, sums, [&](int64_t first, int64_t last, double (&sum)[K]) { ... });
//
// The range is cut into equal parts, one a thread: the same thread gets the same sites in every loop over them, from packing on, so
// pages lie on its node (first touch). A part whose thread does not come, because it sleeps or its CPU is taken, is done by another;
// the first part is the caller's. A pool serves one caller at a time. After a fork the child has no workers: the loop then runs
// serially there.
//
// A small loop lasts a few microseconds, and a cache line that moves between cores a tenth of one. So a worker finds all about a
// job in one line, and has one of its own, which it says in that it has begun and ended; with two threads nothing else moves.
#pragma once

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi.hpp"

#pragma weak pthread_create
#pragma weak pthread_join

namespace lqcd {

inline constexpr int kMaxThreads = 256;
inline constexpr int kSpins = 2000;  // some tens of microseconds: longer than the gap between two applications

using RangeFunction = void (*)(void* context, int64_t first, int64_t last);

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

inline void futex_wait(uint32_t* word, uint32_t expected) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

inline void futex_wake_all(uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0); }

// Wait until *word differs from `seen`: spin, then park. `parked` counts sleepers so that a waker can skip the system call;
// sequential consistency on both words makes either the waker see the sleeper or the kernel see the new value.
inline void wait_for_change(uint32_t* word, uint32_t seen, uint32_t* parked) {
  for (int i = 0; i < kSpins; ++i) {
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != seen) return;
    pause_briefly();
  }
  __atomic_fetch_add(parked, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == seen) futex_wait(word, seen);
  __atomic_fetch_sub(parked, 1, __ATOMIC_SEQ_CST);
}

}  // namespace lqcd

struct lqcd_pool {
  alignas(64) uint32_t job = 0;  // number of the current job; workers wait for it to change
  int32_t threads = 1, parts = 1;
  bool stop = false, pinned = false;
  lqcd::RangeFunction function = nullptr;
  void* context = nullptr;
  int64_t count = 0;
  const uint32_t* here = nullptr;  // 1 in the process that made the pool, 0 in one forked from it; null where the system cannot say
  pid_t owner = 0;
  alignas(64) uint32_t parked_workers = 0, parked_caller = 0;  // read by all, written by those who go to sleep
  struct alignas(64) Worker {
    lqcd_pool* pool;
    int32_t index;
    uint32_t claimed;   // number of the last job whose part `index` somebody has taken
    uint32_t finished;  // and of the last one of which it is done
    pthread_t thread;
  } workers[lqcd::kMaxThreads];

  bool is_here() const { return here ? *here != 0 : owner == getpid(); }

  // Whoever moves a part's number from the job before to this one does the part. The job then cannot end before that is done, so
  // its function and range may be read; a worker that comes late finds all parts of its job taken.
  bool claim(int32_t part, uint32_t number) {
    uint32_t before = number - 1;
    if (__atomic_load_n(&workers[part].claimed, __ATOMIC_RELAXED) != before) return false;
    return __atomic_compare_exchange_n(&workers[part].claimed, &before, number, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }

  void do_part(int32_t part) const { function(context, count * part / parts, count * (part + 1) / parts); }

  // Does every part but the first that is still free, beginning with number `begin`.
  void take_parts(int32_t begin, uint32_t number) {
    for (int32_t i = 0; i < threads - 1; ++i) {
      const int32_t part = 1 + (begin - 1 + i) % (threads - 1);
      if (!claim(part, number)) continue;
      do_part(part);
      __atomic_store_n(&workers[part].finished, number, __ATOMIC_SEQ_CST);
      if (__atomic_load_n(&parked_caller, __ATOMIC_SEQ_CST)) lqcd::futex_wake_all(&workers[part].finished);
    }
  }

  uint32_t start_job() {
    const uint32_t number = job + 1;
    for (int32_t i = parts; i < threads; ++i) __atomic_store_n(&workers[i].claimed, number, __ATOMIC_SEQ_CST);
    __atomic_store_n(&job, number, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&parked_workers, __ATOMIC_SEQ_CST)) lqcd::futex_wake_all(&job);
    return number;
  }

  void finish_job(uint32_t number) {
    for (int32_t part = 1; part < parts; ++part)
      for (uint32_t seen; (seen = __atomic_load_n(&workers[part].finished, __ATOMIC_ACQUIRE)) != number;)
        lqcd::wait_for_change(&workers[part].finished, seen, &parked_caller);
  }
};

namespace lqcd {

// Keeps the calling thread on the index-th of the CPUs it may use (counted round).
inline void pin_to_cpu(int32_t index) {
  constexpr int words = 128;
  uint64_t allowed[words] = {}, one[words] = {};
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof allowed, allowed);
  int32_t cpus = 0;
  for (int i = 0; i < words; ++i) cpus += __builtin_popcountll(allowed[i]);
  if (bytes <= 0 || cpus == 0) return;
  index %= cpus;
  for (int bit = 0; bit < words * 64; ++bit)
    if (allowed[bit / 64] >> bit % 64 & 1 && index-- == 0) one[bit / 64] = uint64_t(1) << bit % 64;
  syscall(SYS_sched_setaffinity, 0, sizeof one, one);
}

inline void* worker_main(void* argument) {
  auto* me = static_cast<lqcd_pool::Worker*>(argument);
  lqcd_pool* pool = me->pool;
  if (pool->pinned) pin_to_cpu(me->index);
  for (uint32_t seen = 0;;) {
    wait_for_change(&pool->job, seen, &pool->parked_workers);
    seen = __atomic_load_n(&pool->job, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool->stop, __ATOMIC_SEQ_CST)) return nullptr;
    pool->take_parts(me->index, seen);
  }
}

// Calls body(first, last) on disjoint ranges that cover [0, count). The body may not depend on how the range is cut.
// least: items that are worth a thread of their own; with fewer, waking it costs more than it does.
template <class Body>
inline void parallel_for(lqcd_pool* pool, int64_t count, Body&& body, int64_t least = 1) {
  const int64_t parts = !pool ? 1 : count / least < pool->threads ? count / least : pool->threads;
  if (parts < 2 || !pool->is_here()) {
    if (count > 0) body(int64_t(0), count);
    return;
  }
  pool->function = [](void* context, int64_t first, int64_t last) { (*static_cast<Body*>(context))(first, last); };
  pool->context = const_cast<void*>(static_cast<const void*>(&body));
  pool->count = count;
  pool->parts = int32_t(parts);
  const uint32_t number = pool->start_job();
  pool->do_part(0);
  pool->take_parts(1, number);
  pool->finish_job(number);
}

inline int64_t block_count(int64_t count, int64_t block) { return (count + block - 1) / block; }

// Part of a reduction: the sums over blocks [from, to), each in order by the body, in float64.
// partials: K * block_count(count, block) doubles.
template <int K, class Body>
inline void sum_in_blocks(lqcd_pool* pool, int64_t from, int64_t to, int64_t count, int64_t block, double* partials,
                          const Body& body, int64_t least = 1) {
  parallel_for(pool, to - from, [&](int64_t first, int64_t last) {
    for (int64_t b = from + first; b < from + last; ++b) {
      double sum[K] = {};
      const int64_t end = (b + 1) * block;
      body(b * block, end < count ? end : count, sum);
      for (int k = 0; k < K; ++k) partials[b * K + k] = sum[k];
    }
  }, least);
}

// sums[k] = the block sums added in a binary tree: it depends on their number only.
template <int K>
inline void add_blocks_up(int64_t blocks, double* partials, double (&sums)[K]) {
  for (int64_t step = 1; step < blocks; step *= 2)
    for (int64_t b = 0; b + step < blocks; b += 2 * step)
      for (int k = 0; k < K; ++k) partials[b * K + k] += partials[(b + step) * K + k];
  for (int k = 0; k < K; ++k) sums[k] = blocks ? partials[k] : 0.0;
}

// sums[k] = sum over [0, count). No bit depends on the number of threads.
template <int K, class Body>
inline void reduce(lqcd_pool* pool, int64_t count, int64_t block, double* partials, double (&sums)[K], const Body& body) {
  const int64_t blocks = block_count(count, block);
  sum_in_blocks<K>(pool, 0, blocks, count, block, partials, body);
  add_blocks_up<K>(blocks, partials, sums);
}

}  // namespace lqcd

namespace lqcd {

// A word that is 1 here and 0 in every process forked from this one; null where the system has none (before Linux 4.14).
inline const uint32_t* word_of_this_process() {
  constexpr size_t page = 4096;
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (madvise(memory, page, 18 /* MADV_WIPEONFORK */)) {
    munmap(memory, page);
    return nullptr;
  }
  auto* word = static_cast<uint32_t*>(memory);
  *word = 1;
  return word;
}

}  // namespace lqcd

// A pool of 1..256 threads, the caller included; null (serial) for one thread, or where threads cannot be started. A negative
// number: so many threads, the further ones each kept on a CPU of its own; the caller, a thread of the host program, is not moved.
lqcd_pool* lqcd_pool_new(int32_t threads) {
  const bool pinned = threads < 0;
  if (pinned) threads = -threads;
  if (threads < 0 || threads > lqcd::kMaxThreads) threads = lqcd::kMaxThreads;
  if (threads < 2 || !pthread_create || !pthread_join) return nullptr;
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, sizeof(lqcd_pool))) return nullptr;
  auto* pool = static_cast<lqcd_pool*>(memory);
  *pool = lqcd_pool{};
  pool->owner = getpid();
  pool->here = lqcd::word_of_this_process();
  pool->pinned = pinned;
  sigset_t all, before;  // signals stay with the host program's threads
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  int32_t running = 1;
  for (; running < threads; ++running) {
    auto& worker = pool->workers[running];
    worker.pool = pool;
    worker.index = running;
    if (pthread_create(&worker.thread, nullptr, lqcd::worker_main, &worker)) break;
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  pool->threads = running;
  return pool;
}

void lqcd_pool_free(lqcd_pool* pool) {
  if (!pool) return;
  if (pool->is_here()) {
    __atomic_store_n(&pool->stop, true, __ATOMIC_SEQ_CST);
    pool->start_job();
    for (int32_t i = 1; i < pool->threads; ++i) pthread_join(pool->workers[i].thread, nullptr);
  }
  if (pool->here) munmap(const_cast<uint32_t*>(pool->here), 4096);
  free(pool);
}
