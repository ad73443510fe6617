/* The library that observes the launches of a process which is not Python: pipesim/launches/inject.py builds it.

   The driver loads it in cuInit (CUDA_INJECTION64_PATH) and calls InitializeInjection, which subscribes to CUPTI.
   Before each distinct launch it writes a record to the spool folder (pipesim/launches/records says of what form). It
   only observes: whatever fails here becomes a note, and the program runs as without it. Two launches are alike if they
   have the same kernel, shape and tensor maps, and parameters that differ only in addresses of the same alignment. */
#define _GNU_SOURCE
#include "graphs.h"
#include <pthread.h>

static __thread bool inside;        /* calls of the driver that are made here are not the program's */
static __thread char *replaced_map; /* the members of the map whose address is being replaced */
static pid_t process;               /* a child that was forked has no CUDA */

/* calls of the driver */

static bool is_extended(uint32_t number) { return number == LAUNCH_EX || number == LAUNCH_EX_PTSZ; }
static bool is_launch(uint32_t number) {
  return is_extended(number) || number == LAUNCH || number == LAUNCH_PTSZ || number == COOPERATIVE ||
         number == COOPERATIVE_PTSZ;
}
static bool is_of_a_map(uint32_t number) {
  return number == ENCODE_TILED || number == ENCODE_IM2COL || number == ENCODE_IM2COL_WIDE || number == REPLACE_ADDRESS;
}
static bool makes_handles_free(uint32_t number) {
  return number == MODULE_UNLOAD || number == LIBRARY_UNLOAD || number == CTX_DESTROY || number == CTX_DESTROY_V2;
}
static Attempt attempt_of(uint32_t number, const CallbackData *call) {
  Attempt attempt = {.symbol = call->symbol};
  if (is_extended(number)) {
    const LaunchEx *given = call->arguments;
    const LaunchConfig *config = given->config;
    attempt.function = given->function;
    attempt.stream = config->stream;
    attempt.parameters = given->parameters;
    attempt.extra = given->extra;
    memcpy(attempt.shape, config->shape, sizeof attempt.shape);
    for (uint32_t i = 0; config->attributes && i < config->count; i++)
      if (config->attributes[i].id == CLUSTER_DIMENSION)
        memcpy(attempt.cluster, config->attributes[i].value.cluster, sizeof attempt.cluster);
  } else {
    const Launch *given = call->arguments;
    attempt.function = given->function;
    attempt.stream = given->stream;
    attempt.parameters = given->parameters;
    attempt.extra = number == LAUNCH || number == LAUNCH_PTSZ ? given->extra : NULL; /* a cooperative launch has none */
    memcpy(attempt.shape, given->shape, sizeof attempt.shape);
  }
  attempt.context = call->context;
  bool per_thread = number == LAUNCH_PTSZ || number == COOPERATIVE_PTSZ || number == LAUNCH_EX_PTSZ;
  if (per_thread && !attempt.stream) attempt.stream = (void *)PER_THREAD_STREAM;
  return attempt;
}
static bool is_over(const Known *known) { /* nothing more is recorded of this kernel */
  return !known->tally || !known->has_code || known->tally->plain ||
         known->tally->asked >= exchange.skip + exchange.launches;
}
/* Whether a launch is to be recorded: then RECORD has its record, and NAME its kernel's, both to be freed. */
static bool is_recorded(const Attempt *attempt, Text *record, char **name, Digest *key) { /* under the lock */
  static char data[MOST_SPACE];
  static Pointed pointers[MOST_POINTERS];
  Known *known = attempt->function ? known_of(attempt) : NULL;
  int status = 0;
  if (!known || is_over(known)) return false;
  bool is_answered = attempt->is_graph || !ASK(cuStreamIsCapturing, attempt->stream, &status);
  if (!is_answered) note(NOT_ANSWERED);
  if (!is_answered || status) return false; /* in a graph: later */
  uint64_t asked_now = ++known->tally->asked;
  if (asked_now <= exchange.skip) return false;
  bool has_data = gather(attempt, known, data);
  int count = 0;
  const char *at = data;
  for (int i = 0; has_data && i < known->parameters; at += known->layout[2 * i + 1], i++)
    count = find_pointers(at, known->layout[2 * i + 1], (uint32_t)i, pointers, count);
  Text members = described(attempt, known, data, pointers, count, has_data);
  say(record, "{");
  put(record, members.data ? members.data : "", members.size);
  say(record, "}");
  free(members.data);
  *key = distinct_digest(attempt, known, data, pointers, count, has_data);
  return !record->failed && (*name = strdup(known->tally->kernel));
}
/* The kernel to launch in place of the program's, NULL for that; not under the lock: it may take long. */
static void *exchanged_kernel(const Attempt *attempt) {
  Text record = {0};
  char *name = NULL;
  Digest key;
  bool plain = false;
  if (!acquire()) return NULL;
  bool wanted = is_recorded(attempt, &record, &name, &key);
  pthread_mutex_unlock(&lock);
  if (!wanted) return NULL;
  void *kernel = begin_exchange(name, attempt->function, attempt->stream, key, record, &plain);
  free(name);
  if (!plain || !acquire()) return kernel;
  Known *known = known_of(attempt);
  if (known && known->tally) known->tally->plain = true;
  pthread_mutex_unlock(&lock);
  return kernel;
}
static void choose_here(Choice *choice) {
  choice->kernel = choice->asks ? NULL : exchanged_kernel(&choice->attempt);
  if (!acquire()) return;
  const Known *known = known_of(&choice->attempt);
  choice->is_done = !known || is_over(known);
  pthread_mutex_unlock(&lock);
}
static void end_here(const GraphEnd *end) { end_exchange(end->launched, end->keeps_buffers); }
static void say_here(const char *text) {
  if (!acquire()) return;
  note("%s", text);
  pthread_mutex_unlock(&lock);
}
static void exchanged_launch(uint32_t number, const CallbackData *call) {
  Attempt attempt = attempt_of(number, call);
  void *kernel = exchanged_kernel(&attempt);
  if (kernel) *(is_extended(number) ? &((LaunchEx *)call->arguments)->function : (void **)call->arguments) = kernel;
}
static bool node_launched(const KernelNode *node, const uint32_t cluster[3]) {
  Attempt attempt = {.function = node->function ? node->function : node->kernel,
                     .parameters = node->parameters,
                     .extra = node->extra,
                     .is_graph = true};
  memcpy(attempt.shape, node->shape, sizeof attempt.shape);
  if (cluster) memcpy(attempt.cluster, cluster, sizeof attempt.cluster);
  launched(&attempt);
  return true;
}
static void before(uint32_t number, const CallbackData *call) {
  const Handles *given = call->arguments;
  if (is_launch(number)) {
    Attempt attempt = attempt_of(number, call);
    launched(&attempt);
    return;
  }
  switch (number) {
  case INSTANTIATE:
  case INSTANTIATE_V2:
  case INSTANTIATE_FLAGS:
  case INSTANTIATE_PARAMS:
  case INSTANTIATE_PARAMS_PTSZ:
  case EXEC_UPDATE:
  case EXEC_UPDATE_V2:
    if (given->second && !visit_kernels(given->second, 0, node_launched))
      note("the kernels of a CUDA graph could not be read: those that were not launched by a stream");
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
  case MODULE_UNLOAD:
  case LIBRARY_UNLOAD:
    forget_image(given->first);
    forget_functions();
    break;
  case CTX_DESTROY:
  case CTX_DESTROY_V2:
    forget_functions();
    break;
  case REPLACE_ADDRESS:
    free(replaced_map);
    replaced_map = map_members(given->first) ? strdup(map_members(given->first)) : NULL;
    break;
  case LINK_ADD:
  case LINK_ADD_V2: {
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
  case MODULE_LOAD:
  case LIBRARY_LOAD_FILE:
  case MODULE_LOAD_DATA:
  case MODULE_LOAD_DATA_EX:
  case MODULE_LOAD_FAT_BINARY:
  case LIBRARY_LOAD_DATA:
    if (given->first &&
        image_loaded(*(void **)given->first, given->second, number == MODULE_LOAD || number == LIBRARY_LOAD_FILE))
      forget_functions();
    break;
  case KERNEL_GET_FUNCTION: { /* (function, kernel): the function belongs to the kernel's library */
    void *library = NULL;
    if (given->first && !ASK(cuKernelGetLibrary, &library, given->second)) add_alias(*(void **)given->first, library);
    break;
  }
  case ENCODE_TILED:
  case ENCODE_IM2COL:
  case ENCODE_IM2COL_WIDE:
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
  bool failed = call->site && call->result && *call->result;
  if (call->site && is_launch(number) ? !running : failed && !exchanged) return;
  inside = true;
  int kept_errno = errno;
  if (!is_launch(number)) graph_called(number, call, failed);
  if (call->site && is_launch(number)) end_exchange(!failed, false);
  else if (!failed && !is_of_recorded_graphs(number) && acquire()) {
    if (call->site) after(number, call);
    else before(number, call);
    pthread_mutex_unlock(&lock);
  }
  if (exchange.wanted && !call->site && is_launch(number)) exchanged_launch(number, call);
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
    say(&line, "\", \"launches\": %llu, \"distinct\": %llu, \"left_out\": %llu}", (unsigned long long)each->launches,
        (unsigned long long)each->distinct, (unsigned long long)each->left_out);
    write_line(&line);
  }
  if (missed) note("%d calls of the driver were not observed: a record of another thread took too long", missed);
  if (full) note("the limit on bytes was reached: further launches are counted only");
  if (is_ours()) close(spool.file);
  spool.file = -1;
  pthread_mutex_unlock(&lock);
}
/* Ask one library of CUPTI: 0 if it calls us from now on, its error, or -1 if it is not CUPTI. */
static int subscribed(void *library) {
  int (*ask)(void **, void (*)(void *, int, uint32_t, const void *), void *) = NULL;
  int (*enable)(uint32_t, void *, int, uint32_t) = NULL;
  void *subscriber = NULL;
  if (!library) return -1;
  *(void **)&ask = dlsym(library, "cuptiSubscribe");
  *(void **)&enable = dlsym(library, "cuptiEnableCallback");
  if (!ask || !enable) return -1;
  int status = ask(&subscriber, called, NULL);
  for (int i = 0; !status && i < COUNT(OBSERVED); i++)
    enable(1, subscriber, DRIVER_DOMAIN, OBSERVED[i]); /* an older CUPTI lacks some */
  for (int i = 0; !status && recorder.choose && i < COUNT(OF_RECORDED_GRAPHS); i++)
    enable(1, subscriber, DRIVER_DOMAIN, OF_RECORDED_GRAPHS[i]);
  for (int i = 0; !status && recorder.choose && i < COUNT(NODE_CHANGES); i++)
    enable(1, subscriber, DRIVER_DOMAIN, NODE_CHANGES[i]);
  return status;
}
/* By the CUPTI that is loaded already, else by the first of PIPESIM_LAUNCHES_CUPTI that fits the driver. */
static void subscribe(void) {
  static const char *const loaded[] = {"libcupti.so.13", "libcupti.so.12"};
  const char *paths = getenv("PIPESIM_LAUNCHES_CUPTI");
  char path[PATH_MAX];
  int status = -1;
  for (int i = 0; i < COUNT(loaded) && status && status != OTHER_SUBSCRIBER; i++) {
    int found = subscribed(dlopen(loaded[i], RTLD_NOW | RTLD_NOLOAD));
    status = found == -1 ? status : found;
  }
  for (const char *at = paths ? paths : ""; *at && status && status != OTHER_SUBSCRIBER;) {
    size_t size = strcspn(at, "\n");
    snprintf(path, sizeof path, "%.*s", (int)(size < sizeof path ? size : 0), at);
    int found = *path ? subscribed(dlopen(path, RTLD_NOW)) : -1;
    status = found == -1 ? status : found;
    at += size + (at[size] == '\n');
  }
  if (status == -1) note("a process was not observed: CUPTI is not installed");
  else if (status == OTHER_SUBSCRIBER) note("a process was not observed: another profiler observes it");
  else if (status) note("a process was not observed: CUPTI's error %d", status);
}

/* CUPTI calls this in a process that observes itself. */
__attribute__((visibility("default"))) void pipesim_called(void *unused, int domain, uint32_t number, const void *data) {
  const CallbackData *call = data;
  Attempt attempt = {0};
  Digest keys[3] = {{0}};
  int kept_errno = errno;
  (void)unused;
  if (domain != DRIVER_DOMAIN || inside || (is_launch(number) && call->site && !asked_at_its_end)) return;
  inside = true; /* what Python asks the driver is not the program's */
  bool failed = call->site && call->result && *call->result, counted = is_of_recorded_graphs(number);
  if (!is_launch(number)) graph_called(number, call, failed);
  if (is_launch(number) && call->site) asked_at_its_end = false;
  else if (is_launch(number)) {
    attempt = attempt_of(number, call);
    if (acquire()) {
      int counter = counter_for(&attempt, keys);
      counted = counter != NO_COUNTER;
      if (counted) counters[counter]++;
      pthread_mutex_unlock(&lock);
    }
  } else if (is_of_a_map(number) && !failed && acquire()) {
    if (call->site) after(number, call);
    else before(number, call);
    pthread_mutex_unlock(&lock);
  } else if (!call->site && makes_handles_free(number)) forget_alike();
  if (!counted && !is_of_a_map(number)) {
    leaves_out = false;
    int answer = python(number, data);
    if (is_launch(number) && !call->site) {
      if (leaves_out && acquire()) {
        counter_for(&attempt, keys);
        pthread_mutex_unlock(&lock);
      }
      learn_answer(answer, keys);
    }
  }
  inside = false;
  errno = kept_errno;
}
static void choose_there(Choice *choice) { python(GRAPH_CHOICE, choice); }
static void end_there(const GraphEnd *end) { python(GRAPH_END, end); }
static void say_there(const char *text) { python(GRAPH_NOTE, text); }
/* Ask of each kernel of a graph whether it is recorded, from now on or not any more. The numbers of the calls that
   CUPTI is to report for that; the last one is 0. */
__attribute__((visibility("default"))) const uint32_t *pipesim_graphs(int are_recorded) {
  static uint32_t numbers[COUNT(OF_RECORDED_GRAPHS) + COUNT(NODE_CHANGES) + 5];
  static const uint32_t more[] = {EXEC_UPDATE, EXEC_UPDATE_V2, NODE_SET, NODE_SET_V2};
  memcpy(numbers, OF_RECORDED_GRAPHS, sizeof OF_RECORDED_GRAPHS);
  memcpy(numbers + COUNT(OF_RECORDED_GRAPHS), NODE_CHANGES, sizeof NODE_CHANGES);
  memcpy(numbers + COUNT(OF_RECORDED_GRAPHS) + COUNT(NODE_CHANGES), more, sizeof more);
  if (acquire()) {
    forget_graphs(NULL); /* what was changed since an earlier recording is not known */
    said_unknown = false;
    pthread_mutex_unlock(&lock);
  }
  recorder.choose = are_recorded ? choose_there : NULL;
  recorder.end = end_there;
  recorder.say = say_there;
  return numbers;
}
/* Launches of FUNCTION may differ in these bytes of its parameters. */
__attribute__((visibility("default"))) void pipesim_leave_out(void *function, const uint32_t *places, uint32_t count) {
  if (!acquire()) return;
  Known *known = functions[bucket(function)];
  while (known && known->function != function) known = known->next;
  uint32_t *unread = known && !known->unread ? malloc(count * sizeof *unread) : NULL;
  for (uint32_t i = 0; unread && i < count; i++) unread[i] = places[i] < known->nbytes ? places[i] : 0;
  if (unread) {
    known->unread = unread;
    known->unread_count = count;
    leaves_out = true;
  }
  pthread_mutex_unlock(&lock);
}
/* The members of a tensor map as JSON; NULL if it was not seen when it was encoded. */
__attribute__((visibility("default"))) const char *pipesim_map(const char *bytes) {
  static __thread char found[1024];
  if (!acquire()) return NULL;
  const char *members = map_members(bytes);
  bool fits = members && snprintf(found, sizeof found, "{%s}", members) < (int)sizeof found;
  pthread_mutex_unlock(&lock);
  return fits ? found : NULL;
}
/* Have launches counted from now on: ASK is called about those of a new kind. The counters; NULL without a driver. */
__attribute__((visibility("default"))) uint64_t *pipesim_count(int (*ask)(uint32_t number, const void *data)) {
  if (!alike && !(alike = calloc(2 * MOST_ALIKE, sizeof *alike))) return NULL;
  if (!load_driver()) return NULL;
  forget_alike();
  memset(counters, 0, sizeof counters);
  python = ask;
  return counters;
}

/* The driver calls this in cuInit. PIPESIM_LAUNCHES_OBSERVED has the id of a process that observes itself (Python). */
__attribute__((visibility("default"))) int InitializeInjection(void) {
  const char *observed = getenv("PIPESIM_LAUNCHES_OBSERVED");
  if (process || (observed && atol(observed) == (long)getpid())) return 1;
  process = getpid();
  if (!open_spool() || !load_driver()) return 1;
  read_exchange();
  if (exchange.wanted) {
    recorder.choose = choose_here;
    recorder.end = end_here;
    recorder.say = say_here;
  }
  inside = true;
  subscribe();
  inside = false;
  atexit(finish);
  return 1;
}
