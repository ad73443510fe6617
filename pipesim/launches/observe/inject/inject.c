/* The library that observes the launches of a process which is not Python: pipesim/launches/inject.py builds it.

   The driver loads it in cuInit (CUDA_INJECTION64_PATH) and calls InitializeInjection, which subscribes to CUPTI. Before
   each distinct launch it writes a record to the spool folder (pipesim/launches/records.py says of what form). It only
   observes: whatever fails here becomes a note, and the program runs as without it. Two launches are alike if they have
   the same kernel, shape and tensor maps, and parameters that differ only in addresses of the same alignment. */
#define _GNU_SOURCE
#include "images.h"
#include "maps.h"
#include "spool.h"
#include <pthread.h>

enum { MOST_PARAMETERS = 4096, MOST_SPACE = 1 << 15, MOST_POINTERS = 512, MOST_CONTENTS = 4096, MOST_SEEN = 1 << 17, MOST_NODES = 1 << 16, MOST_CONTEXTS = 16, GRANULE = 1 << 21, DEEPEST_GRAPH = 8 };

typedef struct Tally { /* how often a kernel was launched */
  struct Tally *next;
  char *kernel;
  uint64_t image, launches, distinct, left_out;
  bool listed; /* as one without PTX */
} Tally;
typedef struct Known { /* what is known of a function; TALLY is NULL if no pattern matches it */
  struct Known *next;
  void *function;
  Tally *tally;
  int parameters; /* -1 if the driver does not say */
  uint32_t *layout; /* offset and bytes of each */
  uint32_t nbytes;
  bool has_code;
  char code[32], why_not[400];
  const char *origin;
} Known;
typedef struct {
  void *function, *stream;
  uint32_t shape[7], cluster[3]; /* the cluster is 0 if the launch does not say */
  void **parameters, **extra;
  bool is_graph;
  const char *symbol;
} Attempt;
typedef struct { uint32_t parameter, at; uint64_t address; } Pointed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside;             /* calls of the driver that are made here are not the program's */
static __thread char *replaced_map;       /* the members of the map whose address is being replaced */
static Known *functions[1024];
static Tally *tallies;
static Set seen, distinct;
static uint64_t recorded;
static int missed; /* calls that were not observed, because a record of another thread took too long */
static pid_t process; /* a child that was forked has no CUDA */
static struct { void *context, *stream; } copying[MOST_CONTEXTS];

static bool acquire(void) { /* a thread that would wait for long does without */
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 2;
  if (pthread_mutex_timedlock(&lock, &end) == 0) return true;
  __atomic_add_fetch(&missed, 1, __ATOMIC_RELAXED);
  return false;
}

/* functions */

static void forget_functions(void) { /* handles may be given again */
  for (int i = 0; i < COUNT(functions); i++) {
    while (functions[i]) {
      Known *known = functions[i];
      functions[i] = known->next;
      free(known->layout);
      free(known);
    }
    while (aliases[i]) {
      Alias *alias = aliases[i];
      aliases[i] = alias->next;
      free(alias);
    }
  }
  empty(&seen);
}
static Tally *tally_of(const char *kernel, uint64_t image) {
  for (Tally *each = tallies; each; each = each->next)
    if (each->image == image && !strcmp(each->kernel, kernel)) return each;
  Tally *made = calloc(1, sizeof *made);
  if (!made || !(made->kernel = strdup(kernel))) { free(made); return NULL; }
  made->image = image;
  made->next = tallies;
  return tallies = made;
}
static Image *image_of_function(void *function) {
  void *owner = NULL;
  Image *image = NULL;
  if (!ASK(cuFuncGetModule, &owner, function)) image = image_of(owner);
  if (!image && (owner = alias_of(function))) image = image_of(owner);
  if (!image && (owner = NULL, !ASK(cuKernelGetLibrary, &owner, function))) image = image_of(owner);
  return image;
}
/* A CUkernel may be launched as a CUfunction, and what the driver answers for one that it takes for the other is not
   documented: the handle is of the kind of which it has parameters. */
static void learn_parameters(Known *known) {
  static uint32_t layout[2 * MOST_PARAMETERS]; /* under the lock */
  int count = 0;
  bool is_answered = false; /* that there is no parameter of a number: CUDA_ERROR_INVALID_VALUE */
  for (int kind = 0; kind < 2 && !count; kind++) {
    for (int status = 0; count < MOST_PARAMETERS; count++) {
      size_t offset = 0, nbytes = 0;
      status = kind ? ASK(cuKernelGetParamInfo, known->function, (size_t)count, &offset, &nbytes)
                    : ASK(cuFuncGetParamInfo, known->function, (size_t)count, &offset, &nbytes);
      is_answered |= status == 1;
      if (status) break;
      if (offset + nbytes > MOST_SPACE) return;
      layout[2 * count] = (uint32_t)offset;
      layout[2 * count + 1] = (uint32_t)nbytes;
      known->nbytes += (uint32_t)nbytes;
    }
  }
  if ((!count && !is_answered) || known->nbytes > MOST_SPACE) return;
  known->layout = malloc((size_t)count * 8 + 1);
  if (!known->layout) return;
  memcpy(known->layout, layout, (size_t)count * 8);
  known->parameters = count;
}
static Known *known_of(const Attempt *attempt) {
  Known **at = &functions[bucket(attempt->function)];
  for (Known *each = *at; each; each = each->next)
    if (each->function == attempt->function) return each;
  const char *name = attempt->symbol;
  if (!name && ASK(cuFuncGetName, &name, attempt->function) && ASK(cuKernelGetName, &name, attempt->function)) name = NULL;
  if (!name || !*name) { note("the name of a kernel could not be read: it is not in the list"); return NULL; }
  Known *known = calloc(1, sizeof *known);
  if (!known) return NULL;
  known->function = attempt->function;
  known->parameters = -1;
  if (is_wanted(name)) {
    Image *image = image_of_function(attempt->function);
    known->tally = tally_of(name, image ? image->key : 0);
    known->has_code = image && write_image(image);
    if (known->has_code) { strcpy(known->code, image->name); known->origin = image->origin; learn_parameters(known); }
    else strcpy(known->why_not, image ? image->why_not : "its module was loaded before the capture began");
  }
  known->next = *at;
  return *at = known;
}
static int function_attribute(void *function, int attribute) {
  int value = 0, device = 0;
  if (!ASK(cuFuncGetAttribute, &value, attribute, function)) return value;
  ASK(cuCtxGetDevice, &device);
  return ASK(cuKernelGetAttribute, &value, attribute, function, device) ? 0 : value;
}

/* parameters */

/* The bytes of all parameters, one after the other; false where the launch does not have them. */
static bool gather(const Attempt *attempt, const Known *known, char *data) {
  const char *buffer = NULL;
  if (known->parameters < 0) return false;
  if (!attempt->parameters && attempt->extra)
    for (int i = 0; i < 16 && attempt->extra[i]; i += 2)
      if (attempt->extra[i] == (void *)BUFFER_POINTER) { buffer = attempt->extra[i + 1]; break; }
  if (known->parameters && !attempt->parameters && !buffer) return false;
  for (int i = 0; i < known->parameters; i++) {
    const char *from = buffer ? buffer + known->layout[2 * i] : attempt->parameters[i];
    memcpy(data, from, known->layout[2 * i + 1]);
    data += known->layout[2 * i + 1];
  }
  return true;
}
static uint64_t align_of(uint64_t address) {
  uint64_t align = address & -address;
  return align > 4096 ? 4096 : align;
}
/* The words of one parameter that are addresses of device memory, tensor maps left out. */
static int find_pointers(const char *data, uint32_t nbytes, uint32_t parameter, Pointed *found, int count) {
  for (uint32_t at = 0; at + 8 <= nbytes && count < MOST_POINTERS; at += 8) {
    if (at % 64 == 0 && at + MAP_BYTES <= nbytes && map_members(data + at)) { at += MAP_BYTES - 8; continue; }
    uint64_t address = u64(data + at);
    uint32_t kind = 0;
    if (address < 1 << 16 || ASK(cuPointerGetAttribute, &kind, MEMORY_TYPE, address) || kind != DEVICE_MEMORY) continue;
    found[count++] = (Pointed){parameter, at, address};
  }
  return count;
}
/* What a launch is known by: addresses count as their alignment, tensor maps as their members. */
static Digest distinct_digest(const Attempt *attempt, const Known *known, const char *data, const Pointed *pointers, int count, bool has_data) {
  Digest made = NOTHING_YET;
  digest(&made, &known->tally, sizeof known->tally);
  digest(&made, attempt->shape, sizeof attempt->shape);
  digest(&made, attempt->cluster, sizeof attempt->cluster);
  for (int i = 0; has_data && i < known->parameters; i++) {
    uint32_t nbytes = known->layout[2 * i + 1];
    for (uint32_t at = 0; at < nbytes;) {
      const char *members = at % 64 == 0 && at + MAP_BYTES <= nbytes ? map_members(data + at) : NULL;
      if (members) { digest(&made, members, strlen(members)); at += MAP_BYTES; continue; }
      uint64_t word = 0;
      uint32_t size = nbytes - at < 8 ? nbytes - at : 8;
      memcpy(&word, data + at, size);
      if (count && pointers->parameter == (uint32_t)i && pointers->at == at) {
        word = align_of(word);
        pointers++;
        count--;
      }
      digest(&made, &word, sizeof word);
      at += size;
    }
    data += nbytes;
  }
  return made;
}

/* contents of memory */

/* A stream of our own in the current context, so that a copy waits for nothing that the program gave to the device. */
static void *copying_stream(void) {
  void *context = NULL;
  if (ASK(cuCtxGetCurrent, &context) || !context) return NULL;
  for (int i = 0; i < MOST_CONTEXTS; i++) {
    if (copying[i].context == context) return copying[i].stream;
    if (copying[i].context) continue;
    if (ASK(cuStreamCreate, &copying[i].stream, NON_BLOCKING)) copying[i].stream = NULL;
    copying[i].context = context;
    return copying[i].stream;
  }
  return NULL;
}
static void put_contents(Text *line, uint64_t address) {
  uint64_t start = 0;
  size_t size = 0;
  void *stream = copying_stream();
  if (!stream || ASK(cuPointerGetAttribute, &start, RANGE_START, address) || ASK(cuPointerGetAttribute, &size, RANGE_SIZE, address)) return;
  if (address < start || address - start >= size) return;
  size -= address - start;
  size = size < MOST_CONTENTS ? size : MOST_CONTENTS;
  int is_mapped = 0; /* of a range of addresses that is mapped in parts, each of 2 MiB at least, the next one may not be */
  if (ASK(cuPointerGetAttribute, &is_mapped, MAPPED, address + size - 1) || !is_mapped) {
    size_t rest = GRANULE - address % GRANULE;
    size = size < rest ? size : rest;
  }
  char *data = malloc(size);
  if (!data) return;
  bool copied = !ASK(cuMemcpyDtoHAsync_v2, data, address, size, stream);
  int status = copied ? ASK(cuStreamQuery, stream) : 1;
  for (int tries = 0; status == NOT_READY && tries < 4000; tries++) {
    nanosleep(&(struct timespec){0, 500000}, NULL);
    status = ASK(cuStreamQuery, stream);
  }
  if (!status) { say(line, ", \"contents\": "); hexadecimal(line, data, size); }
  if (status != NOT_READY) free(data); /* else a copy may still write there */
}

/* records */

static void put_parameters(Text *line, const Known *known, const char *data, const Pointed *pointers, int count, bool contents) {
  for (int i = 0; i < known->parameters; i++) {
    uint32_t nbytes = known->layout[2 * i + 1];
    const char *separator = "";
    say(line, "%s{\"bytes\": ", i ? ", " : "");
    hexadecimal(line, data, nbytes);
    say(line, ", \"pointers\": [");
    for (; count && pointers->parameter == (uint32_t)i; pointers++, count--, separator = ", ") {
      say(line, "%s{\"at\": %u, \"align\": %u", separator, pointers->at, (unsigned)align_of(pointers->address));
      if (contents) put_contents(line, pointers->address);
      say(line, "}");
    }
    say(line, "], \"maps\": [");
    separator = "";
    for (uint32_t at = 0; at + MAP_BYTES <= nbytes; at += 64) {
      const char *members = map_members(data + at);
      if (!members) continue;
      say(line, "%s{\"at\": %u, ", separator, at);
      put(line, members, strlen(members));
      say(line, "}");
      separator = ", ";
      at += MAP_BYTES - 64;
    }
    say(line, "]}");
    data += nbytes;
  }
}
static bool record(const Attempt *attempt, const Known *known, const char *data, const Pointed *pointers, int count, bool has_data) {
  const uint32_t *shape = attempt->shape;
  uint32_t cluster[3] = {attempt->cluster[0], attempt->cluster[1], attempt->cluster[2]};
  int status = 0, relaxed = RELAXED;
  bool exchanged = known->has_code && !ASK(cuThreadExchangeStreamCaptureMode, &relaxed); /* a capture elsewhere forbids nothing then */
  bool is_capturing = !attempt->is_graph && (ASK(cuStreamIsCapturing, attempt->stream, &status) || status);
  bool contents = known->has_code && !attempt->is_graph && !is_capturing && !ASK(cuStreamQuery, attempt->stream);
  introduce(false);
  if (known->has_code && count && !contents)
    note(attempt->is_graph || is_capturing ? "arrays that kernels of a graph read were not copied: their contents are those of a later time"
                                           : "arrays that a kernel reads were not copied: work before its launch was not done");
  for (int i = 0; i < 3 && known->has_code && !attempt->cluster[0]; i++) cluster[i] = (uint32_t)function_attribute(known->function, CLUSTER_WIDTH + i);
  for (int i = 0; i < 3; i++) cluster[i] = cluster[i] ? cluster[i] : 1;
  Text line = {0};
  say(&line, "{\"kind\": \"launch\", \"kernel\": ");
  quote(&line, known->tally->kernel, 1 << 14);
  say(&line, ", \"image\": \"");
  if (known->tally->image) say(&line, "%016llx", (unsigned long long)known->tally->image);
  say(&line, "\", \"code\": \"%s\", \"origin\": \"%s\"", known->code, known->has_code ? known->origin : "");
  if (!known->has_code) { say(&line, ", \"why_not\": "); quote(&line, known->why_not, sizeof known->why_not); }
  say(&line, ", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u]", shape[0], shape[1], shape[2], shape[3], shape[4], shape[5]);
  say(&line, ", \"cluster\": [%u, %u, %u], \"dynamic_shared\": %u", cluster[0], cluster[1], cluster[2], shape[6]);
  say(&line, ", \"registers\": %d", known->has_code ? function_attribute(known->function, REGISTERS) : 0);
  say(&line, ", \"via\": \"%s\", \"parameters\": [", attempt->is_graph || is_capturing ? "graph" : "launch");
  if (has_data) put_parameters(&line, known, data, pointers, count, contents);
  say(&line, "], \"parameters_known\": %s}", has_data ? "true" : "false");
  if (exchanged) ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  return write_line(&line);
}
static void launched(const Attempt *attempt) { /* under the lock */
  static char data[MOST_SPACE];
  static Pointed pointers[MOST_POINTERS];
  Known *known = attempt->function ? known_of(attempt) : NULL;
  if (!known || !known->tally) return;
  Tally *tally = known->tally;
  tally->launches++;
  if (!known->has_code) {
    if (!tally->listed) { tally->listed = true; record(attempt, known, NULL, NULL, 0, false); }
    return;
  }
  bool has_data = gather(attempt, known, data);
  Digest raw = NOTHING_YET;
  digest(&raw, &attempt->function, sizeof attempt->function);
  digest(&raw, attempt->shape, sizeof attempt->shape);
  digest(&raw, attempt->cluster, sizeof attempt->cluster);
  if (has_data) digest(&raw, data, known->nbytes);
  if (seen.count >= MOST_SEEN) empty(&seen);
  if (was_in(&seen, raw)) return;
  int count = 0;
  const char *at = data;
  for (int i = 0; has_data && i < known->parameters; at += known->layout[2 * i + 1], i++)
    count = find_pointers(at, known->layout[2 * i + 1], (uint32_t)i, pointers, count);
  if (distinct.count >= MOST_SEEN) { tally->left_out++; return; }
  if (was_in(&distinct, distinct_digest(attempt, known, data, pointers, count, has_data))) return;
  tally->distinct++;
  if (recorded >= spool.launches || (spool.once && tally->distinct > 1) || !record(attempt, known, data, pointers, count, has_data)) tally->left_out++;
  else recorded++;
}

/* calls of the driver */

static void launch_called(uint32_t number, const CallbackData *call) {
  Attempt attempt = {.symbol = call->symbol};
  if (number == LAUNCH_EX || number == LAUNCH_EX_PTSZ) {
    const LaunchEx *given = call->arguments;
    const LaunchConfig *config = given->config;
    attempt.function = given->function;
    attempt.stream = config->stream;
    attempt.parameters = given->parameters;
    attempt.extra = given->extra;
    memcpy(attempt.shape, config->shape, sizeof attempt.shape);
    for (uint32_t i = 0; config->attributes && i < config->count; i++)
      if (config->attributes[i].id == CLUSTER_DIMENSION) memcpy(attempt.cluster, config->attributes[i].value.cluster, sizeof attempt.cluster);
  } else {
    const Launch *given = call->arguments;
    attempt.function = given->function;
    attempt.stream = given->stream;
    attempt.parameters = given->parameters;
    attempt.extra = number == LAUNCH || number == LAUNCH_PTSZ ? given->extra : NULL; /* a cooperative launch has none */
    memcpy(attempt.shape, given->shape, sizeof attempt.shape);
  }
  bool per_thread = number == LAUNCH_PTSZ || number == COOPERATIVE_PTSZ || number == LAUNCH_EX_PTSZ;
  if (per_thread && !attempt.stream) attempt.stream = (void *)PER_THREAD_STREAM;
  launched(&attempt);
}
static void node_launched(const KernelNode *node, const uint32_t cluster[3]) {
  Attempt attempt = {.function = node->function ? node->function : node->kernel, .parameters = node->parameters, .extra = node->extra, .is_graph = true};
  memcpy(attempt.shape, node->shape, sizeof attempt.shape);
  if (cluster) memcpy(attempt.cluster, cluster, sizeof attempt.cluster);
  launched(&attempt);
}
static void graph_instantiated(void *graph, int depth) {
  size_t count = 0;
  bool read = depth < DEEPEST_GRAPH && !ASK(cuGraphGetNodes, graph, NULL, &count) && count <= MOST_NODES;
  void **nodes = read ? calloc(count + 1, sizeof *nodes) : NULL;
  read = nodes && (!count || !ASK(cuGraphGetNodes, graph, nodes, &count));
  for (size_t i = 0; read && i < count; i++) {
    int type = -1;
    void *child = NULL;
    KernelNode node = {0};
    uint32_t cluster[16] = {0};
    if (ASK(cuGraphNodeGetType, nodes[i], &type)) continue;
    if (type == GRAPH_NODE && !ASK(cuGraphChildGraphNodeGetGraph, nodes[i], &child)) graph_instantiated(child, depth + 1);
    if (type != KERNEL_NODE) continue;
    if ((read = !ASK(cuGraphKernelNodeGetParams_v2, nodes[i], &node))) {
      bool has = !ASK(cuGraphKernelNodeGetAttribute, nodes[i], CLUSTER_DIMENSION, cluster) && cluster[0];
      node_launched(&node, has ? cluster : NULL);
    }
  }
  if (!read) note("the kernels of a CUDA graph could not be read: those that were not launched by a stream");
  free(nodes);
}
static void before(uint32_t number, const CallbackData *call) {
  const Handles *given = call->arguments;
  switch (number) {
  case LAUNCH: case LAUNCH_PTSZ: case COOPERATIVE: case COOPERATIVE_PTSZ: case LAUNCH_EX: case LAUNCH_EX_PTSZ:
    launch_called(number, call);
    break;
  case INSTANTIATE: case INSTANTIATE_V2: case INSTANTIATE_FLAGS: case INSTANTIATE_PARAMS: case INSTANTIATE_PARAMS_PTSZ:
  case EXEC_UPDATE: case EXEC_UPDATE_V2:
    if (given->second) graph_instantiated(given->second, 0);
    break;
  case NODE_SET_V2:
    if (given->third) node_launched(given->third, NULL);
    break;
  case NODE_SET: { /* of an older form, which ends before the kernel */
    KernelNode node = {0};
    if (given->third) memcpy(&node, given->third, offsetof(KernelNode, kernel));
    node_launched(&node, NULL);
    break;
  }
  case MODULE_UNLOAD: case LIBRARY_UNLOAD:
    forget_image(given->first);
    forget_functions();
    break;
  case CTX_DESTROY: case CTX_DESTROY_V2:
    forget_functions();
    break;
  case REPLACE_ADDRESS:
    free(replaced_map);
    replaced_map = map_members(given->first) ? strdup(map_members(given->first)) : NULL;
    break;
  case LINK_ADD: case LINK_ADD_V2: {
    const LinkAdd *added = call->arguments;
    if (added->type == PTX_INPUT && added->data) link_input(added->state, added->data, added->size);
    break;
  }
  default:;
  }
}
static void after(uint32_t number, const CallbackData *call) { /* of a call that succeeded */
  const Handles *given = call->arguments;
  switch (number) {
  case MODULE_LOAD: case LIBRARY_LOAD_FILE: case MODULE_LOAD_DATA: case MODULE_LOAD_DATA_EX: case MODULE_LOAD_FAT_BINARY: case LIBRARY_LOAD_DATA:
    if (given->first && image_loaded(*(void **)given->first, given->second, number == MODULE_LOAD || number == LIBRARY_LOAD_FILE)) forget_functions();
    break;
  case KERNEL_GET_FUNCTION: { /* (function, kernel): the function belongs to the kernel's library */
    void *library = NULL;
    if (given->first && !ASK(cuKernelGetLibrary, &library, given->second)) add_alias(*(void **)given->first, library);
    break;
  }
  case ENCODE_TILED: case ENCODE_IM2COL: case ENCODE_IM2COL_WIDE:
    map_encoded(number, call->arguments);
    break;
  case REPLACE_ADDRESS:
    if (replaced_map) add_map(given->first, replaced_map);
    replaced_map = NULL;
    break;
  case LINK_COMPLETE: {
    const LinkComplete *made = call->arguments;
    if (made->image && made->size) link_completed(made->state, *made->image, *made->size);
    break;
  }
  default:;
  }
}
static void called(void *unused, int domain, uint32_t number, const void *data) {
  const CallbackData *call = data;
  (void)unused;
  if (domain != DRIVER_DOMAIN || inside || spool.file < 0 || getpid() != process) return;
  if (call->site && call->result && *call->result) return;
  inside = true;
  int kept_errno = errno;
  if (acquire()) {
    if (call->site) after(number, call);
    else before(number, call);
    pthread_mutex_unlock(&lock);
  }
  errno = kept_errno;
  inside = false;
}

/* the library itself */

static void finish(void) {
  if (spool.file < 0 || getpid() != process || !acquire()) return;
  bool full = spool.full;
  spool.left += 1u << 20; /* for the lines here, which the limit is not meant for */
  introduce(true);
  for (Tally *each = tallies; each; each = each->next) {
    Text line = {0};
    say(&line, "{\"kind\": \"count\", \"kernel\": ");
    quote(&line, each->kernel, 1 << 14);
    say(&line, ", \"image\": \"");
    if (each->image) say(&line, "%016llx", (unsigned long long)each->image);
    say(&line, "\", \"launches\": %llu, \"distinct\": %llu, \"left_out\": %llu}", (unsigned long long)each->launches, (unsigned long long)each->distinct, (unsigned long long)each->left_out);
    write_line(&line);
  }
  if (missed) note("%d calls of the driver were not observed: a record of another thread took too long", missed);
  if (full) note("the limit on bytes was reached: further launches are counted only");
  if (is_ours()) close(spool.file);
  spool.file = -1;
  pthread_mutex_unlock(&lock);
}
static void *open_cupti(void) { /* one that is loaded already, then those of PIPESIM_LAUNCHES_CUPTI, separated by newlines */
  static const char *const loaded[] = {"libcupti.so.13", "libcupti.so.12"};
  const char *paths = getenv("PIPESIM_LAUNCHES_CUPTI");
  char path[PATH_MAX];
  for (int i = 0; i < COUNT(loaded); i++) {
    void *library = dlopen(loaded[i], RTLD_NOW | RTLD_NOLOAD);
    if (library) return library;
  }
  for (const char *at = paths ? paths : ""; *at;) {
    size_t size = strcspn(at, "\n");
    snprintf(path, sizeof path, "%.*s", (int)(size < sizeof path ? size : 0), at);
    void *library = *path ? dlopen(path, RTLD_NOW) : NULL;
    if (library) return library;
    at += size + (at[size] == '\n');
  }
  return NULL;
}
static void subscribe(void) {
  void *library = open_cupti(), *subscriber = NULL;
  int (*ask)(void **, void (*)(void *, int, uint32_t, const void *), void *) = NULL;
  int (*enable)(uint32_t, void *, int, uint32_t) = NULL;
  if (library) {
    *(void **)&ask = dlsym(library, "cuptiSubscribe");
    *(void **)&enable = dlsym(library, "cuptiEnableCallback");
  }
  if (!ask || !enable) { note("a process was not observed: CUPTI is not installed"); return; }
  int status = ask(&subscriber, called, NULL);
  if (status == OTHER_SUBSCRIBER) { note("a process was not observed: another profiler observes it"); return; }
  if (status) { note("a process was not observed: CUPTI's error %d", status); return; }
  for (int i = 0; i < COUNT(OBSERVED); i++) enable(1, subscriber, DRIVER_DOMAIN, OBSERVED[i]); /* an older CUPTI lacks some */
}

/* The driver calls this in cuInit. PIPESIM_LAUNCHES_OBSERVED has the id of a process that observes itself (Python). */
__attribute__((visibility("default"))) int InitializeInjection(void) {
  const char *observed = getenv("PIPESIM_LAUNCHES_OBSERVED");
  if (process || (observed && atol(observed) == (long)getpid())) return 1;
  process = getpid();
  if (!open_spool() || !load_driver()) return 1;
  inside = true;
  subscribe();
  inside = false;
  atexit(finish);
  return 1;
}
