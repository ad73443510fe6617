/* Launches that take place with another kernel, which leaves records: pipesim record of a process that is not Python.

   The command that observes the process makes the kernel (pipesim/launches/record/requests.py says of what form request
   and answer are). The driver launches the function that it finds in the arguments which CUPTI shows, and the thread that
   made the launch waits for it. Other launches are of the program's own kernels. */
#ifndef PIPESIM_EXCHANGE_H
#define PIPESIM_EXCHANGE_H
#include "records.h"
#include <math.h>
#include <pthread.h>
#include <signal.h>

enum { PORTABLE_MAPPED = 3, ANSWER_SECONDS = 300, GRACE_SECONDS = 2, COPY_SECONDS = 10, SMS = 16 };
enum { FINISHED, STOPPED, RUNNING, FAILED }; /* LaunchEnd of pipesim/launches/record/buffer_file.py */

typedef struct Ready { /* an instrumented kernel, or the reason why there is none; made once for launches that are alike */
  struct Ready *next;
  Digest key, whole; /* of the launch without addresses and memory, and of its record */
  bool alike;        /* it is for every launch of this key */
  bool running;      /* for another kernel of the same launch of a graph */
  char *name;
  void *kernel, *initial;
  size_t nbytes;
  uint64_t symbol;
  char why_not[400]; /* "" also of a kernel without barriers, of which its own launch says it */
} Ready;
typedef struct Running { /* of a launch of a graph there may be several */
  struct Running *next;
  Ready *ready;
  Text record;
  void *stream, *host;
  int device;
  uint64_t buffer;
  double began;
  bool stopped;
} Running;

static struct {
  bool wanted, waits_only, ends_process;
  uint64_t launches, skip, cta;
  double deadline; /* seconds, or infinite */
} exchange;
static pthread_mutex_t one_launch = PTHREAD_MUTEX_INITIALIZER; /* a kernel has one variable for the address of its buffer */
static Ready *readies;
static Set said_why;
static __thread Running *running; /* this thread then holds one_launch */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all records; taken last */
static int missed; /* calls that were not observed: a record of another thread took too long */

#define NOT_ANSWERED "a launch was not recorded: the driver does not say whether its stream is being captured"

static bool acquire(void) { /* a thread that would wait for long does without */
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 2;
  if (pthread_mutex_timedlock(&lock, &end) == 0) return true;
  __atomic_add_fetch(&missed, 1, __ATOMIC_RELAXED);
  return false;
}
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
/* The number or truth after a name of our own JSON; what is missing or null is OTHERWISE. */
static double option_of(const char *json, const char *name, double otherwise) {
  char quoted[64], *end;
  snprintf(quoted, sizeof quoted, "\"%s\":", name);
  const char *at = strstr(json, quoted);
  if (!at) return otherwise;
  at += strlen(quoted) + strspn(at + strlen(quoted), " ");
  if (!strncmp(at, "true", 4)) return 1;
  double value = strtod(at, &end);
  return end == at ? otherwise : value;
}
static void read_exchange(void) {
  const char *given = getenv("PIPESIM_RECORD");
  if (!given || !*given) return;
  exchange.wanted = true;
  exchange.launches = (uint64_t)option_of(given, "launches", 1);
  exchange.skip = (uint64_t)option_of(given, "skip", 0);
  exchange.cta = (uint64_t)option_of(given, "cta", 0);
  exchange.deadline = option_of(given, "deadline_s", INFINITY);
  exchange.waits_only = option_of(given, "waits_only", 0) != 0;
  exchange.ends_process = option_of(given, "ends_process", 0) != 0;
}

static void put_recorded(const Text *record, const char *file, const char *why_not) { /* under one_launch */
  Text line = {0};
  Digest key = NOTHING_YET;
  digest(&key, record->data, strcspn(record->data, ",")); /* the kernel's name is first */
  digest(&key, why_not, strlen(why_not));
  if (!*file && was_in(&said_why, key)) return;
  say(&line, "{\"kind\": \"recorded\", \"launch\": ");
  put(&line, record->data, record->size);
  say(&line, ", \"file\": \"%s\", \"reason\": ", file);
  quote(&line, why_not, 400);
  say(&line, "}");
  bool held = acquire();
  write_line(&line);
  if (held) pthread_mutex_unlock(&lock);
}
static char *file_of(const char *stem, const char *suffix, size_t *size) {
  char path[PATH_MAX + 80];
  struct stat about;
  snprintf(path, sizeof path, "%s/%s%s", spool.folder, stem, suffix);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  char *data = NULL;
  if (file >= 0 && !fstat(file, &about) && about.st_size <= MOST_CODE && (data = calloc(1, (size_t)about.st_size + 1))) {
    *size = (size_t)about.st_size;
    if (read(file, data, *size) != (ssize_t)*size) {
      free(data);
      data = NULL;
    }
  }
  if (file >= 0) close(file);
  unlink(path);
  return data;
}
/* Ask for the kernel of a launch. The answer's text, to be freed; NULL if none came. */
static char *asked(const char *stem, const Text *record) {
  char path[PATH_MAX + 80], hidden[PATH_MAX + 90];
  Text request = {0};
  size_t size;
  snprintf(path, sizeof path, "%s/%s.request", spool.folder, stem);
  snprintf(hidden, sizeof hidden, "%s.part", path);
  say(&request, "{\"launch\": ");
  put(&request, record->data, record->size);
  say(&request, "}");
  int file = request.failed ? -1 : open(hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool done = file >= 0 && write_all(file, request.data, request.size);
  if (file >= 0) close(file);
  free(request.data);
  if (!done || rename(hidden, path)) return NULL;
  snprintf(path, sizeof path, "%s/%s.answer", spool.folder, stem);
  for (double end = now() + ANSWER_SECONDS; access(path, F_OK) && now() < end;)
    nanosleep(&(struct timespec){0, 5000000}, NULL);
  return file_of(stem, ".answer", &size);
}
static void take_attributes(void *kernel, void *like) { /* what a program sets on a function before its launches */
  static const int set[] = {8, 9, 14, 15}; /* shared memory, carveout, cluster sizes and their scheduling */
  int device = 0;
  ASK(cuCtxGetDevice, &device);
  for (int i = 0; i < COUNT(set); i++) {
    int value = function_attribute(like, set[i]);
    if (value && value != -1) ASK(cuKernelSetAttribute, set[i], value, kernel, device);
  }
}
static void load_ready(Ready *ready, const char *stem, const char *symbol, void *like) {
  void *library = NULL;
  size_t size = 0, nbytes = 0;
  char *cubin = file_of(stem, ".cubin", &size);
  ready->initial = file_of(stem, ".initial", &ready->nbytes);
  bool loaded = cubin && ready->initial && !ASK(cuLibraryLoadData, &library, cubin, NULL, NULL, 0, NULL, NULL, 0) &&
                !ASK(cuLibraryGetKernel, &ready->kernel, library, ready->name) &&
                !ASK(cuLibraryGetGlobal, &ready->symbol, &nbytes, library, symbol) && nbytes == 8;
  free(cubin);
  if (loaded) take_attributes(ready->kernel, like);
  else {
    ready->kernel = NULL;
    strcpy(ready->why_not, "the driver does not load the instrumented kernel");
  }
}
static bool is_same(Digest one, Digest other) { return one.a == other.a && one.b == other.b; }
static Ready *ready_for(const char *name, void *function, Digest key, const Text *record) {
  static int number;
  Digest whole = NOTHING_YET;
  void *context = NULL; /* each has a variable of its own */
  ASK(cuCtxGetCurrent, &context);
  digest(&key, &context, sizeof context);
  digest(&key, &function, sizeof function);
  digest(&whole, record->data, record->size);
  for (Ready *each = readies; each; each = each->next)
    if (!each->running && is_same(each->key, key) && (each->alike || is_same(each->whole, whole))) return each;
  Ready *made = calloc(1, sizeof *made);
  char stem[64];
  snprintf(stem, sizeof stem, "%d-c-%d", (int)getpid(), number++);
  char *answer = made && (made->name = strdup(name)) ? asked(stem, record) : NULL;
  if (!made) return NULL;
  made->key = key;
  made->whole = whole;
  made->next = readies;
  readies = made;
  char *said = answer ? strchr(answer, '\n') : NULL;
  if (!said) strcpy(made->why_not, "its records were not put in: the command that records did not answer");
  else if (*said++ = 0, (made->alike = !strcmp(answer, "alike")) || !strcmp(answer, "made"))
    load_ready(made, stem, said, function);
  else if (strcmp(answer, "plain")) snprintf(made->why_not, sizeof made->why_not, "%s", said);
  free(answer);
  return made;
}
static bool prepare_buffer(Running *launch) {
  bool on_host = isfinite(exchange.deadline);
  size_t nbytes = launch->ready->nbytes;
  uint64_t *to = &launch->buffer;
  if (on_host && !ASK(cuMemHostAlloc, &launch->host, nbytes, PORTABLE_MAPPED)) {
    memcpy(launch->host, launch->ready->initial, nbytes);
    if (ASK(cuMemHostGetDevicePointer_v2, to, launch->host, 0)) *to = 0;
  } else if (on_host || ASK(cuMemAlloc_v2, to, nbytes) ||
             ASK(cuMemcpyHtoDAsync_v2, *to, launch->ready->initial, nbytes, launch->stream))
    return false;
  return *to && !ASK(cuMemcpyHtoDAsync_v2, launch->ready->symbol, to, 8, launch->stream);
}
static void free_buffer(Running *launch) {
  if (launch->host) ASK(cuMemFreeHost, launch->host);
  else if (launch->buffer) ASK(cuMemFree_v2, launch->buffer);
}
/* The kernel for a launch that is to be recorded, NULL for the program's own. RECORD is taken over. With a kernel the
   thread holds one_launch until the launch has ended. */
static void *begin_exchange(const char *name, void *function, void *stream, Digest key, Text record, bool *plain) {
  int relaxed = RELAXED;
  bool is_held = running != NULL;
  if (!is_held) pthread_mutex_lock(&one_launch);
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  Ready *ready = record.failed ? NULL : ready_for(name, function, key, &record);
  Running *made = ready && ready->kernel ? calloc(1, sizeof *made) : NULL;
  const char *why_not = ready ? ready->why_not : "";
  if (made) *made = (Running){.ready = ready, .record = record, .stream = stream, .began = now()};
  if (made) ASK(cuCtxGetDevice, &made->device);
  bool begun = made && prepare_buffer(made);
  if (made && !begun) {
    free_buffer(made);
    free(made);
    why_not = "there is no memory for its buffer, or it cannot be filled";
  }
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  *plain = ready && !ready->kernel && !*why_not;
  if (begun) {
    Running **end = &running;
    for (; *end; end = &(*end)->next) (*end)->began = made->began; /* they begin together */
    *end = made;
    ready->running = true;
    return ready->kernel;
  }
  if (*why_not) put_recorded(&record, "", why_not);
  free(record.data);
  if (!is_held) pthread_mutex_unlock(&one_launch);
  return NULL;
}
/* Of a graph the kernels that left a record: those after one that hangs then run as they are. */
static void stop_what_has_begun(void) {
  bool any = false;
  for (Running *each = running; each; each = each->next)
    any |= each->stopped = memcmp(each->host, each->ready->initial, each->ready->nbytes) != 0;
  for (Running *each = running; each; each = each->next) {
    each->stopped |= !any;
    if (each->stopped) *(volatile uint32_t *)each->host = 1;
  }
}
static int wait_for(Running *launch, int *status) { /* how it ended */
  bool stopped = false;
  while ((*status = ASK(cuStreamQuery, launch->stream)) == NOT_READY) {
    double took = now() - launch->began;
    if (!stopped && took >= exchange.deadline) {
      stop_what_has_begun();
      stopped = true;
    } else if (took >= exchange.deadline + GRACE_SECONDS) return RUNNING;
    nanosleep(&(struct timespec){0, 200000}, NULL);
  }
  return *status ? FAILED : FINISHED;
}
/* The buffer as the kernel left it; NULL if it cannot be read. */
static char *contents_of(Running *launch) {
  size_t nbytes = launch->ready->nbytes;
  char *data = malloc(nbytes);
  if (data && launch->host) return memcpy(data, launch->host, nbytes);
  void *stream = copying_stream();
  bool copied = data && stream && !ASK(cuMemcpyDtoHAsync_v2, data, launch->buffer, nbytes, stream);
  for (double end = now() + COPY_SECONDS; copied && ASK(cuStreamQuery, stream) == NOT_READY && now() < end;)
    nanosleep(&(struct timespec){0, 500000}, NULL);
  return copied && !ASK(cuStreamQuery, stream) ? data : NULL; /* else a copy may still write there */
}
static bool write_buffer(Running *launch, int end, double took, const char *data, char name[32]) {
  int device = launch->device, sms = 0, major = 0, minor = 0, version = 0;
  char of_device[72] = "";
  ASK(cuDeviceGetName, of_device, sizeof of_device - 1, device);
  ASK(cuDeviceGetAttribute, &sms, SMS, device);
  ASK(cuDeviceGetAttribute, &major, COMPUTE_MAJOR, device);
  ASK(cuDeviceGetAttribute, &minor, COMPUTE_MINOR, device);
  ASK(cuDriverGetVersion, &version);
  struct { /* 128 bytes, as pipesim_record.h has them */
    char magic[8];
    uint32_t format, end, sms, major, minor, driver;
    uint64_t nbytes, nanoseconds;
    char device[72];
    uint32_t flags, cta;
  } head = {.format = 1, .end = (uint32_t)end, .sms = (uint32_t)sms, .major = (uint32_t)major, .minor = (uint32_t)minor};
  memcpy(head.magic, "PIPESIMR", 8);
  memcpy(head.device, of_device, sizeof head.device);
  head.driver = (uint32_t)version;
  head.nbytes = launch->ready->nbytes;
  head.nanoseconds = (uint64_t)(took * 1e9);
  head.flags = (isfinite(exchange.deadline) ? 1u : 0u) | (exchange.waits_only ? 2u : 0u);
  head.cta = (uint32_t)exchange.cta;
  Text file = {0};
  put(&file, &head, sizeof head);
  put(&file, data, launch->ready->nbytes);
  bool held = acquire(), written = !file.failed && write_code(file.data, file.size, ".records", name);
  if (held) pthread_mutex_unlock(&lock);
  free(file.data);
  return written;
}
static void end_of(Running *launch, bool launched, int end, int status, double took, bool keeps_buffer) {
  char name[32] = "", why_not[160] = "";
  char *data = launched ? contents_of(launch) : NULL;
  if (!keeps_buffer && (end == FINISHED || end == STOPPED)) free_buffer(launch);
  if (launched && !data)
    snprintf(why_not, sizeof why_not, "its records were lost: the driver's error %d; give a deadline", status);
  else if (data && end == FINISHED && !memcmp(data, launch->ready->initial, launch->ready->nbytes))
    strcpy(why_not, "the driver launched the program's own kernel: it left no record");
  else if (data && !write_buffer(launch, end, took, data, name)) {
    *name = 0;
    strcpy(why_not, "the limit on bytes was reached");
  }
  if (launched) put_recorded(&launch->record, name, why_not);
  if (launched && end == RUNNING) {
    const char *then = exchange.ends_process ? "this process is ended" : "it is still running";
    fprintf(stderr, "pipesim: %s does not end: its records so far are kept, and %s\n", launch->ready->name, then);
    fflush(NULL);
  }
  free(data);
}
/* KEEPS_BUFFERS: the kernels may run again. */
static void end_exchange(bool launched, bool keeps_buffers) {
  int status = 0, relaxed = RELAXED;
  if (!running) return;
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  int end = launched ? wait_for(running, &status) : FINISHED;
  double took = now() - running->began;
  for (Running *each = running; each; each = each->next)
    end_of(each, launched, end == FINISHED && each->stopped ? STOPPED : end, status, took, keeps_buffers);
  if (launched && end == RUNNING && exchange.ends_process)
    kill(getpid(), SIGKILL); /* nothing else ends a process whose kernel does not */
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  while (running) {
    Running *each = running;
    running = each->next;
    each->ready->running = keeps_buffers;
    free(each->record.data);
    free(each);
  }
  pthread_mutex_unlock(&one_launch);
}
#endif
