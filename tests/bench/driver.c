// Purpose: one artifact, called `repeats` times, and nothing else: what a program that counts instructions runs.
// Owns: deterministic inputs (unit links, a spinor of small integers) and the order of the calls of the ABI
// (artifacts/README.md, "Entry points", version 1). Refuses to know: operators, layouts.
// usage: driver ARTIFACT dirac|solver DOUBLE SITES BATCH REPEATS
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kGauge, kIn, kOut, kWork, kClover, kState, kBuffers };
typedef uint64_t (*Bytes)(int32_t);
typedef int32_t (*PackGauge)(void*, const void*, int32_t, const double*, const double*, void*);
typedef int32_t (*PackSpinor)(void*, const void*, int32_t, void*);
typedef int32_t (*PackClover)(void*, const void*, int32_t, const double*, void*);
typedef int32_t (*Apply)(void*, const void*, const void*, const void*, void*, const double*, void*);
typedef int32_t (*Begin)(void*, const double*, const double*, const int32_t*, const void*, const void*, void*, const double*,
                         double*, void*);
typedef int32_t (*Iterate)(void*, const void*, const void*, void*, const double*, const double*, int32_t, double*, int32_t*,
                           void*);

static void* library;

static void* find(const char* name) {
  void* found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "driver: no entry point %s\n", name);
    exit(3);
  }
  return found;
}

static void check(int32_t status, const char* what) {
  if (status) {
    fprintf(stderr, "driver: %s answered %d\n", what, status);
    exit(4);
  }
}

static void* memory(uint64_t bytes) {
  void* made = NULL;
  if (posix_memalign(&made, 4096, bytes ? bytes : 64)) exit(5);
  memset(made, 0, bytes);
  return made;
}

// count numbers of the artifact's precision, each a value of a short cycle.
static void* numbers(int64_t count, int is_double, double (*value)(int64_t)) {
  void* made = memory((uint64_t)count * (is_double ? 8 : 4));
  for (int64_t i = 0; i < count; ++i) {
    if (is_double)
      ((double*)made)[i] = value(i);
    else
      ((float*)made)[i] = (float)value(i);
  }
  return made;
}

static double link(int64_t i) { return i % 18 == 0 || i % 18 == 8 || i % 18 == 16; }  // the unit matrix
static double spinor(int64_t i) { return (double)(i % 7) - 3.0; }

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  library = dlopen(argv[1], RTLD_NOW);
  if (!library) {
    fprintf(stderr, "driver: %s\n", dlerror());
    return 2;
  }
  const int solver = !strcmp(argv[2], "solver"), is_double = atoi(argv[3]);
  const int64_t sites = atoll(argv[4]), batch = atoll(argv[5]);
  const int32_t repeats = atoi(argv[6]);
  void* buffer[kBuffers];
  for (int32_t i = 0; i < kBuffers; ++i) buffer[i] = memory(((Bytes)find("lqcd_bytes"))(i));
  void* links = numbers(sites * 72, is_double, link);
  const double scale[4] = {-0.5, -0.5, -0.5, -0.5}, phase[8] = {-1, 0, 1, 0, 1, 0, 1, 0};
  const double scalars[8] = {4.1, 1.0, 0, 0, 0, 0, 0, 0};
  check(((PackGauge)find("lqcd_pack_gauge"))(buffer[kGauge], links, 0, scale, phase, NULL), "lqcd_pack_gauge");
  if (((Bytes)find("lqcd_bytes"))(kClover))
    check(((PackClover)find("lqcd_pack_clover"))(buffer[kClover], links, 0, scalars, NULL), "lqcd_pack_clover");
  if (!solver) {
    const Apply apply = (Apply)find("lqcd_apply");
    const void* psi = numbers(sites * batch * 24, is_double, spinor);
    check(((PackSpinor)find("lqcd_pack_spinor"))(buffer[kIn], psi, 0, NULL), "lqcd_pack_spinor");
    for (int32_t n = 0; n < repeats; ++n)
      check(apply(buffer[kOut], buffer[kIn], buffer[kGauge], buffer[kClover], buffer[kWork], scalars, NULL), "lqcd_apply");
    return 0;
  }
  const Begin begin = (Begin)find("lqcd_solve_begin");
  const Iterate iterate = (Iterate)find("lqcd_solve_iterate");
  const uint64_t columns = (uint64_t)batch;
  double *b = numbers(sites * batch * 24, 1, spinor), *factor = memory(columns * 8), *stop = memory(columns * 8);
  double *norms = memory(columns * 8), *history = memory((uint64_t)(repeats + 1) * 2 * columns * 8);
  int32_t *mode = memory(columns * 4), *outcome = memory(columns * 8);
  for (int64_t i = 0; i < batch; ++i) factor[i] = 1e-3, stop[i] = -1.0;
  check(begin(buffer[kState], b, factor, mode, buffer[kGauge], buffer[kClover], buffer[kWork], scalars, norms, NULL),
        "lqcd_solve_begin");
  check(iterate(buffer[kState], buffer[kGauge], buffer[kClover], buffer[kWork], scalars, stop, repeats, history, outcome, NULL),
        "lqcd_solve_iterate");
  for (int64_t i = 0; i < batch; ++i)
    if (outcome[2 * i] != repeats) {
      fprintf(stderr, "driver: column %d stopped after %d iterations\n", (int)i, outcome[2 * i]);
      return 6;
    }
  return 0;
}
