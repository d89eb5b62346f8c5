/* A double of libnrt.so.1: the functions that the runtime calls, with the prototypes of AWS's published headers (nrt.h,
 * nrt_version.h, nrt_experimental.h), written from the documentation.
 *
 * It checks what a caller must keep: argument values, order of calls, one release per handle, no use after release or close, one
 * execution of a model at a time. Every breach is a line of nrt_double_report(); handles alive at nrt_close() are leaks and lines
 * too. nrt_double_inject() makes the n-th next call of a function answer a status without doing anything else.
 *
 * A "NEFF" for it has the real 1,024-byte header; its payload is text, then arbitrary bytes:
 *     NRT-DOUBLE 1
 *     input <name> <dtype> <bytes>          output <name> <dtype> <bytes>
 *     op identity <in> <out> | op axpy <a> <x> <y> <out> (float32, out = a x + y, a one number) | op callback
 *     end
 * "op callback" hands the execution to nrt_double_set_callback(): (program bytes after "end\n", their count, names, buffers).
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define E __attribute__((visibility("default")))
enum { OK = 0, INVALID = 2, INVALID_HANDLE = 3, RESOURCE = 4, NOT_ENOUGH_NC = 9, UNSUPPORTED = 10, UNINITIALIZED = 13, CLOSED = 14, BAD_INPUT = 1002 };
enum { KINDS = 4, SETS = 0, TENSORS = 1, INFOS = 2, MODELS = 3, MAX = 32 };
static const char* const KIND[KINDS] = {"tensor set", "tensor", "tensor info", "model"};

typedef struct node { struct node* next; int kind; bool alive; } node;   /* head of every handle; freed only by reset */
typedef struct { node head; char* data; size_t size; int vnc; int placement; bool owner; int uses; } tensor;
typedef struct { node head; int count; char name[MAX][256]; tensor* at[MAX]; } tensor_set;
typedef struct { char name[256]; int usage; size_t size; int dtype; uint32_t* shape; uint32_t ndim; } info;
typedef struct { uint64_t count; info entries[]; } info_array;
typedef struct { char word[16]; char argument[4][256]; } operation;
typedef struct { node head; int vnc; int count; info io[MAX]; int ops; operation op[MAX]; char* rest; size_t rest_size; bool busy; } model;
typedef struct { node head; info_array* array; } info_handle;
typedef int32_t (*executor)(const void* program, uint64_t size, int32_t count, const char* const* names, void* const* data, const uint64_t* sizes, const int32_t* usage);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static node* handles;
static char report[1 << 16];
static size_t report_size;
static int state;                       /* 0 new, 1 initialised, 2 closed */
static uint32_t cores = 4, family = 5, lnc = 1;
static uint64_t runtime_version[3] = {2, 34, 10};
static size_t memory_limit = (size_t)1 << 34, memory_used;
static struct { char call[64]; int status, after; } injected;
static struct { char call[64]; uint64_t count; } calls[64];
static executor run_callback;

static void complain(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (report_size < sizeof report - 600) {
    report_size += (size_t)vsnprintf(report + report_size, 512, format, arguments);
    report[report_size++] = '\n';
  }
  va_end(arguments);
}

/* Counts a call, answers the injected status if it is its turn, else whether libnrt is in the state the call needs. */
static int enter(const char* call, bool needs_init) {
  for (int i = 0; i < 64; ++i) {
    if (!calls[i].call[0]) strcpy(calls[i].call, call);
    if (!strcmp(calls[i].call, call)) { ++calls[i].count; break; }
  }
  if (!strcmp(injected.call, call) && injected.after-- == 0) { injected.call[0] = 0; return injected.status; }
  if (needs_init && state == 0) { complain("%s before nrt_init", call); return UNINITIALIZED; }
  if (needs_init && state == 2) { complain("%s after nrt_close", call); return CLOSED; }
  return OK;
}

static void* make(int kind, size_t size) {
  node* n = calloc(1, size);
  n->kind = kind; n->alive = true; n->next = handles; handles = n;
  return n;
}

static bool good(const char* call, const void* handle, int kind) {
  for (node* n = handles; n; n = n->next)
    if (n == handle) {
      if (n->kind != kind) { complain("%s: was given a %s for a %s", call, KIND[n->kind], KIND[kind]); return false; }
      if (!n->alive) { complain("%s: use of a released %s", call, KIND[kind]); return false; }
      return true;
    }
  complain("%s: was given what is no handle", call);
  return false;
}

#define BEGIN(call, needs) pthread_mutex_lock(&lock); int status = enter(call, needs); if (status != OK) goto out
#define END out: pthread_mutex_unlock(&lock); return status
#define REQUIRE(condition, code, ...) do { if (!(condition)) { complain(__VA_ARGS__); status = (code); goto out; } } while (0)

E int nrt_init(int framework, const char* fw_version, const char* fal_version) {
  BEGIN("nrt_init", false);
  REQUIRE(framework == 1, INVALID, "nrt_init: framework %d", framework);
  REQUIRE(fw_version && fal_version, INVALID, "nrt_init: a version is NULL");
  REQUIRE(state == 0, INVALID, "nrt_init: called again");
  state = 1;
  END;
}

E void nrt_close(void) {
  pthread_mutex_lock(&lock);
  if (enter("nrt_close", true) == OK) {
    for (node* n = handles; n; n = n->next)
      if (n->alive) complain("leak: a %s is alive at nrt_close", KIND[n->kind]);
    state = 2;
  }
  pthread_mutex_unlock(&lock);
}

E int nrt_get_version(void* version, size_t size) {
  BEGIN("nrt_get_version", false);
  REQUIRE(version && size == 224, INVALID, "nrt_get_version: size %zu", size);
  memset(version, 0, size);
  memcpy(version, runtime_version, sizeof runtime_version);
  strcpy((char*)version + 32, "2.34.10.0");
  END;
}

E int nrt_get_total_vnc_count(uint32_t* count) {
  BEGIN("nrt_get_total_vnc_count", false);
  REQUIRE(count, INVALID, "nrt_get_total_vnc_count: NULL");
  *count = cores;
  END;
}

E int nrt_get_visible_vnc_count(uint32_t* count) {
  BEGIN("nrt_get_visible_vnc_count", false);
  REQUIRE(count, INVALID, "nrt_get_visible_vnc_count: NULL");
  *count = cores;
  END;
}

E int nrt_get_instance_info(uint32_t* instance, size_t size) {
  BEGIN("nrt_get_instance_info", false);
  REQUIRE(instance && size == 32, INVALID, "nrt_get_instance_info: size %zu", size);
  memset(instance, 0, size);
  instance[0] = family;
  END;
}

static bool parse(model* m, const char* text, size_t size) {
  size_t at = 0;
  for (int line = 0;; ++line) {
    char row[1400], word[5][256] = {{0}};
    size_t n = 0;
    while (at + n < size && text[at + n] != '\n' && n < sizeof row - 1) { row[n] = text[at + n]; ++n; }
    if (at + n >= size) return false;
    row[n] = 0;
    at += n + 1;
    int words = sscanf(row, "%255s %255s %255s %255s %255s", word[0], word[1], word[2], word[3], word[4]);
    if (line == 0) { if (strcmp(row, "NRT-DOUBLE 1")) return false; continue; }
    if (!strcmp(word[0], "end")) { m->rest_size = size - at; m->rest = malloc(m->rest_size + 1); memcpy(m->rest, text + at, m->rest_size); return m->count > 0; }
    if (!strcmp(word[0], "op") && m->ops < MAX && words >= 2) {
      operation* o = &m->op[m->ops++];
      snprintf(o->word, sizeof o->word, "%.15s", word[1]);
      for (int i = 0; i < 3; ++i) snprintf(o->argument[i], 256, "%s", word[i + 2]);
      sscanf(row, "op %*s %*s %*s %*s %255s", o->argument[3]);
    } else if (words == 4 && m->count < MAX) {
      info* i = &m->io[m->count++];
      snprintf(i->name, sizeof i->name, "%s", word[1]);
      i->usage = !strcmp(word[0], "output"); i->dtype = atoi(word[2]); i->size = strtoull(word[3], NULL, 10);
    } else return false;
  }
}

E int nrt_load(const void* neff, size_t size, int32_t vnc, int32_t vnc_count, model** out) {
  model* m = NULL;
  BEGIN("nrt_load", true);
  REQUIRE(neff && out && size >= 1024, INVALID, "nrt_load: NULL or %zu bytes", size);
  REQUIRE(vnc_count == -1, INVALID, "nrt_load: vnc_count %d, the header says always -1", vnc_count);
  REQUIRE(vnc >= -1 && vnc < (int32_t)cores, NOT_ENOUGH_NC, "nrt_load: vnc %d of %u", vnc, cores);
  uint64_t head[5]; uint32_t neff_lnc;
  memcpy(head, neff, sizeof head);
  memcpy(&neff_lnc, (const char*)neff + 0x228, 4);
  if (head[1] != 1024 || head[2] != size - 1024 || (neff_lnc && neff_lnc != lnc)) { status = INVALID; goto out; }
  if (head[3] > 2) { status = UNSUPPORTED; goto out; }
  m = make(MODELS, sizeof *m);
  m->vnc = vnc;
  if (!parse(m, (const char*)neff + 1024, size - 1024)) { m->head.alive = false; status = INVALID; goto out; }
  *out = m;
  END;
}

E int nrt_unload(model* m) {
  BEGIN("nrt_unload", true);
  if (!good("nrt_unload", m, MODELS)) { status = INVALID_HANDLE; goto out; }
  REQUIRE(!m->busy, INVALID, "nrt_unload: of a model that executes");
  m->head.alive = false;
  free(m->rest); m->rest = NULL;
  END;
}

E int nrt_get_model_tensor_info(model* m, info_array** out) {
  BEGIN("nrt_get_model_tensor_info", true);
  if (!good("nrt_get_model_tensor_info", m, MODELS)) { status = INVALID_HANDLE; goto out; }
  /* The handle that the caller gets must be the array itself, so a node stands beside it. */
  info_array* array = calloc(1, sizeof *array + sizeof(info) * (size_t)m->count);
  array->count = (uint64_t)m->count;
  memcpy(array->entries, m->io, sizeof(info) * (size_t)m->count);
  info_handle* h = make(INFOS, sizeof *h);
  h->array = array;
  *out = array;
  END;
}

E int nrt_free_model_tensor_info(info_array* array) {
  BEGIN("nrt_free_model_tensor_info", true);
  node* n = handles;
  while (n && !(n->kind == INFOS && n->alive && ((info_handle*)n)->array == array)) n = n->next;
  REQUIRE(n, INVALID_HANDLE, "nrt_free_model_tensor_info: of what was not given out");
  n->alive = false;
  free(array);
  END;
}

E int nrt_allocate_tensor_set(tensor_set** out) {
  BEGIN("nrt_allocate_tensor_set", true);
  REQUIRE(out, INVALID, "nrt_allocate_tensor_set: NULL");
  *out = make(SETS, sizeof **out);
  END;
}

E void nrt_destroy_tensor_set(tensor_set** set) {
  pthread_mutex_lock(&lock);
  if (enter("nrt_destroy_tensor_set", true) == OK && set && good("nrt_destroy_tensor_set", *set, SETS)) {
    for (int i = 0; i < (*set)->count; ++i) --(*set)->at[i]->uses;
    (*set)->head.alive = false;
    *set = NULL;
  }
  pthread_mutex_unlock(&lock);
}

E int nrt_add_tensor_to_tensor_set(tensor_set* set, const char* name, tensor* t) {
  BEGIN("nrt_add_tensor_to_tensor_set", true);
  if (!good("nrt_add_tensor_to_tensor_set", set, SETS) || !good("nrt_add_tensor_to_tensor_set", t, TENSORS)) { status = INVALID_HANDLE; goto out; }
  REQUIRE(name && *name && strlen(name) < 256, INVALID, "nrt_add_tensor_to_tensor_set: bad name");
  REQUIRE(set->count < MAX, RESOURCE, "nrt_add_tensor_to_tensor_set: set is full");
  strcpy(set->name[set->count], name);
  set->at[set->count++] = t;
  ++t->uses;
  END;
}

E int nrt_tensor_allocate(int placement, int vnc, size_t size, const char* name, tensor** out) {
  BEGIN("nrt_tensor_allocate", true);
  REQUIRE(placement >= 0 && placement <= 2, INVALID, "nrt_tensor_allocate: placement %d", placement);
  REQUIRE(placement == 1 ? vnc == -1 : vnc >= 0 && vnc < (int)cores, INVALID, "nrt_tensor_allocate: vnc %d", vnc);
  REQUIRE(size > 0 && out, INVALID, "nrt_tensor_allocate: size %zu", size);
  (void)name;
  if (memory_used + size > memory_limit) { status = RESOURCE; goto out; }
  tensor* t = make(TENSORS, sizeof *t);
  t->data = malloc(size); t->size = size; t->vnc = vnc; t->placement = placement; t->owner = true;
  memset(t->data, 0xA5, size);          /* device memory is not zeroed */
  memory_used += size;
  *out = t;
  END;
}

E int nrt_tensor_allocate_slice(const tensor* of, size_t offset, size_t size, const char* name, tensor** out) {
  BEGIN("nrt_tensor_allocate_slice", true);
  if (!good("nrt_tensor_allocate_slice", of, TENSORS)) { status = INVALID_HANDLE; goto out; }
  REQUIRE(size > 0 && offset + size <= of->size && out, INVALID, "nrt_tensor_allocate_slice: out of bounds");
  (void)name;
  tensor* t = make(TENSORS, sizeof *t);
  t->data = of->data + offset; t->size = size; t->vnc = of->vnc; t->placement = of->placement;
  *out = t;
  END;
}

E void nrt_tensor_free(tensor** t) {
  pthread_mutex_lock(&lock);
  if (enter("nrt_tensor_free", true) == OK && t && good("nrt_tensor_free", *t, TENSORS)) {
    if ((*t)->uses) complain("nrt_tensor_free: of a tensor that is in a tensor set");
    if ((*t)->owner) { memory_used -= (*t)->size; free((*t)->data); }
    (*t)->head.alive = false;
    *t = NULL;
  }
  pthread_mutex_unlock(&lock);
}

E int nrt_tensor_write(tensor* t, const void* data, size_t offset, size_t size) {
  BEGIN("nrt_tensor_write", true);
  if (!good("nrt_tensor_write", t, TENSORS)) { status = INVALID_HANDLE; goto out; }
  REQUIRE(data && offset + size <= t->size, INVALID, "nrt_tensor_write: out of bounds");
  memcpy(t->data + offset, data, size);
  END;
}

E int nrt_tensor_read(const tensor* t, void* data, size_t offset, size_t size) {
  BEGIN("nrt_tensor_read", true);
  if (!good("nrt_tensor_read", t, TENSORS)) { status = INVALID_HANDLE; goto out; }
  REQUIRE(data && offset + size <= t->size, INVALID, "nrt_tensor_read: out of bounds");
  memcpy(data, t->data + offset, size);
  END;
}

static tensor* find(const tensor_set* set, const char* name) {
  for (int i = set->count - 1; i >= 0; --i) if (!strcmp(set->name[i], name)) return set->at[i];
  return NULL;
}

static int compute(const tensor_set* in, const tensor_set* out, const operation* o) {
  if (!strcmp(o->word, "identity")) {
    const tensor *a = find(in, o->argument[0]), *b = find(out, o->argument[1]);
    if (!a || !b) { complain("program: identity of tensors that it does not have"); return INVALID; }
    memmove(b->data, a->data, b->size);
  } else {
    const tensor *a = find(in, o->argument[0]), *x = find(in, o->argument[1]), *y = find(in, o->argument[2]), *to = find(out, o->argument[3]);
    if (!a || !x || !y || !to) { complain("program: axpy of tensors that it does not have"); return INVALID; }
    float* z = (float*)to->data;
    for (size_t i = 0; i < x->size / 4; ++i) z[i] = *(float*)a->data * ((float*)x->data)[i] + ((float*)y->data)[i];
  }
  return OK;
}

E int nrt_execute(model* m, const tensor_set* in, tensor_set* out) {
  BEGIN("nrt_execute", true);
  if (!good("nrt_execute", m, MODELS) || !good("nrt_execute", in, SETS) || !good("nrt_execute", out, SETS)) { status = INVALID_HANDLE; goto out; }
  REQUIRE(!m->busy, INVALID, "nrt_execute: two executions of a model at a time");
  const char* names[MAX]; void* data[MAX]; uint64_t sizes[MAX]; int32_t usage[MAX];
  for (int i = 0; i < m->count; ++i) {
    const tensor* t = find(m->io[i].usage ? out : in, m->io[i].name);
    REQUIRE(t, BAD_INPUT, "nrt_execute: tensor %s is absent", m->io[i].name);
    REQUIRE(t->head.alive, INVALID_HANDLE, "nrt_execute: tensor %s was released", m->io[i].name);
    REQUIRE(t->size == m->io[i].size, BAD_INPUT, "nrt_execute: tensor %s has %zu bytes", m->io[i].name, t->size);
    REQUIRE(t->placement != 0 || m->vnc < 0 || t->vnc == m->vnc, INVALID, "nrt_execute: tensor %s is on another core", m->io[i].name);
    names[i] = m->io[i].name; data[i] = t->data; sizes[i] = t->size; usage[i] = m->io[i].usage;
  }
  m->busy = true;
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < m->ops; ++i) {
    if (strcmp(m->op[i].word, "callback")) status = compute(in, out, &m->op[i]);
    else status = run_callback ? run_callback(m->rest, m->rest_size, m->count, names, data, sizes, usage) : INVALID;
  }
  pthread_mutex_lock(&lock);
  m->busy = false;
  END;
}

/* ---- of the double itself ---- */

E const char* nrt_double_report(void) { return report; }
E void nrt_double_inject(const char* call, int status, int after) { snprintf(injected.call, 64, "%s", call); injected.status = status; injected.after = after; }
E int nrt_double_pending(void) { return injected.call[0] != 0; }
E uint64_t nrt_double_calls(const char* call) {
  for (int i = 0; i < 64; ++i) if (!strcmp(calls[i].call, call)) return calls[i].count;
  return 0;
}
E int nrt_double_alive(int kind) { int n = 0; for (node* h = handles; h; h = h->next) n += h->alive && (kind < 0 || h->kind == kind); return n; }
E void nrt_double_set_callback(executor f) { run_callback = f; }
E void nrt_double_machine(uint32_t number_of_cores, uint32_t instance_family, uint32_t logical, uint64_t major, uint64_t minor, size_t memory) {
  cores = number_of_cores; family = instance_family; lnc = logical; runtime_version[0] = major; runtime_version[1] = minor; memory_limit = memory;
}
/* As in a new process. */
E void nrt_double_reset(void) {
  pthread_mutex_lock(&lock);
  for (node *n = handles, *next; n; n = next) { next = n->next; free(n); }
  handles = NULL; report_size = 0; report[0] = 0; state = 0; memory_used = 0; injected.call[0] = 0;
  memset(calls, 0, sizeof calls);
  pthread_mutex_unlock(&lock);
}
