/* One launch: whether it is like one before, and its record. */
#ifndef PIPESIM_RECORDS_H
#define PIPESIM_RECORDS_H
#include "parameters.h"

enum { MOST_CONTENTS = 4096, MOST_SEEN = 1 << 17, MOST_CONTEXTS = 16, GRANULE = 1 << 21 };

static Set distinct;
static uint64_t recorded;
static struct {
  void *context, *stream;
} copying[MOST_CONTEXTS];

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
/* Whether a stream has finished its work, or does so within two seconds. */
static bool settled(void *stream) {
  int status = ASK(cuStreamQuery, stream);
  for (int tries = 0; status == NOT_READY && tries < 4000; tries++) {
    nanosleep(&(struct timespec){0, 500000}, NULL);
    status = ASK(cuStreamQuery, stream);
  }
  return !status;
}
static void put_contents(Text *line, uint64_t address) {
  uint64_t start = 0;
  size_t size = 0;
  void *stream = copying_stream();
  if (!stream || ASK(cuPointerGetAttribute, &start, RANGE_START, address) ||
      ASK(cuPointerGetAttribute, &size, RANGE_SIZE, address))
    return;
  if (address < start || address - start >= size) return;
  size -= address - start;
  size = size < MOST_CONTENTS ? size : MOST_CONTENTS;
  /* Of a range of addresses that is mapped in parts, each of 2 MiB at least, the next part may not be mapped. */
  int is_mapped = 0;
  if (ASK(cuPointerGetAttribute, &is_mapped, MAPPED, address + size - 1) || !is_mapped) {
    size_t rest = GRANULE - address % GRANULE;
    size = size < rest ? size : rest;
  }
  char *data = malloc(size);
  if (!data) return;
  if (ASK(cuMemcpyDtoHAsync_v2, data, address, size, stream) || !settled(stream)) return; /* a copy may still write */
  say(line, ", \"contents\": ");
  hexadecimal(line, data, size);
  free(data);
}
/* One allocation: its address, its bytes and the file of its copy, "" if there is no room. Its first address, or 0. */
static uint64_t put_allocation(Text *line, uint64_t address, const char *separator) {
  uint64_t start = 0;
  size_t size = 0;
  int is_mapped = 0;
  char name[32] = "";
  void *stream = copying_stream();
  if (!stream || ASK(cuPointerGetAttribute, &start, RANGE_START, address) ||
      ASK(cuPointerGetAttribute, &size, RANGE_SIZE, address) || !size ||
      ASK(cuPointerGetAttribute, &is_mapped, MAPPED, start + size - 1) || !is_mapped)
    return 0;
  char *data = size <= spool.copies ? malloc(size) : NULL;
  uint64_t left = spool.left;
  if (data && !ASK(cuMemcpyDtoHAsync_v2, data, start, size, stream) && settled(stream)) {
    spool.left += size;
    if (!write_code(data, size, ".memory", name)) *name = 0;
    spool.copies -= left + size - spool.left;
    spool.left = left;
    free(data);
  } /* else a copy may still write there */
  say(line, "%s[%llu, %llu, \"%s\"]", separator, (unsigned long long)start, (unsigned long long)size, name);
  return start;
}
static void put_memory(Text *line, const Known *known, const char *data, const Pointed *pointers, int count) {
  uint64_t starts[MOST_POINTERS], address;
  int found = 0, parameter = 0;
  uint32_t at = 0;
  for (int next = 0; found < MOST_POINTERS;) {
    if (next < count) address = pointers[next++].address;
    else { /* then those of tensor maps, which have theirs first */
      while (parameter < known->parameters && at + MAP_BYTES > known->layout[2 * parameter + 1]) {
        data += known->layout[2 * parameter++ + 1];
        at = 0;
      }
      if (parameter == known->parameters) break;
      bool is_map = map_members(data + at) != NULL;
      address = is_map ? u64(data + at) : 0;
      at += is_map ? MAP_BYTES : 64;
    }
    bool is_known = !address;
    for (int i = 0; i < found && !is_known; i++) {
      size_t size = 0;
      is_known = address >= starts[i] && !ASK(cuPointerGetAttribute, &size, RANGE_SIZE, starts[i]) &&
                 address - starts[i] < size;
    }
    uint64_t start = is_known ? 0 : put_allocation(line, address, found ? ", " : "");
    if (start) starts[found++] = start;
  }
}

/* records */

static void put_parameters(Text *line, const Known *known, const char *data, const Pointed *pointers, int count,
                           bool contents) {
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
/* The members of a launch's record, as JSON. */
static Text described(const Attempt *attempt, const Known *known, const char *data, const Pointed *pointers, int count,
                      bool has_data) {
  const uint32_t *shape = attempt->shape;
  uint32_t cluster[3] = {attempt->cluster[0], attempt->cluster[1], attempt->cluster[2]};
  int status = 0, relaxed = RELAXED;
  bool exchanged = known->has_code &&
                   !ASK(cuThreadExchangeStreamCaptureMode, &relaxed); /* a capture elsewhere forbids nothing then */
  bool is_capturing = !attempt->is_graph && (ASK(cuStreamIsCapturing, attempt->stream, &status) || status);
  bool contents = known->has_code && !attempt->is_graph && !is_capturing && !ASK(cuStreamQuery, attempt->stream);
  if (known->has_code && count && !contents)
    note(attempt->is_graph || is_capturing
             ? "arrays that kernels of a graph read were not copied: their contents are those of a later time"
             : "arrays that a kernel reads were not copied: work before its launch was not done");
  for (int i = 0; i < 3 && known->has_code && !attempt->cluster[0]; i++)
    cluster[i] = (uint32_t)function_attribute(known->function, CLUSTER_WIDTH + i);
  for (int i = 0; i < 3; i++) cluster[i] = cluster[i] ? cluster[i] : 1;
  Text line = {0};
  say(&line, "\"kernel\": ");
  quote(&line, known->tally->kernel, 1 << 14);
  say(&line, ", \"image\": \"");
  if (known->tally->image) say(&line, "%016llx", (unsigned long long)known->tally->image);
  say(&line, "\", \"code\": \"%s\", \"origin\": \"%s\"", known->code, known->has_code ? known->origin : "");
  if (!known->has_code) {
    say(&line, ", \"why_not\": ");
    quote(&line, known->why_not, sizeof known->why_not);
  }
  say(&line, ", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u]", shape[0], shape[1], shape[2], shape[3], shape[4],
      shape[5]);
  say(&line, ", \"cluster\": [%u, %u, %u], \"dynamic_shared\": %u", cluster[0], cluster[1], cluster[2], shape[6]);
  say(&line, ", \"registers\": %d", known->has_code ? function_attribute(known->function, REGISTERS) : 0);
  say(&line, ", \"via\": \"%s\"", attempt->is_graph || is_capturing ? "graph" : "launch");
  if (attempt->place) say(&line, ", \"in_graph\": \"%s\"", attempt->place);
  say(&line, ", \"parameters\": [");
  if (has_data) put_parameters(&line, known, data, pointers, count, contents);
  say(&line, "], \"memory\": [");
  if (has_data && spool.copies && !attempt->is_graph && !is_capturing && settled(attempt->stream))
    put_memory(&line, known, data, pointers, count);
  say(&line, "], \"parameters_known\": %s", has_data ? "true" : "false");
  if (exchanged) ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  return line;
}
static bool record(const Attempt *attempt, const Known *known, const char *data, const Pointed *pointers, int count,
                   bool has_data) {
  Text line = {0};
  introduce(false);
  Text members = described(attempt, known, data, pointers, count, has_data);
  say(&line, "{\"kind\": \"launch\", ");
  put(&line, members.data ? members.data : "", members.size);
  say(&line, "}");
  line.failed |= members.failed;
  free(members.data);
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
    if (!tally->listed) {
      tally->listed = true;
      record(attempt, known, NULL, NULL, 0, false);
    }
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
  if (distinct.count >= MOST_SEEN) {
    tally->left_out++;
    return;
  }
  if (was_in(&distinct, distinct_digest(attempt, known, data, pointers, count, has_data))) return;
  tally->distinct++;
  if (recorded >= spool.launches || (spool.once && tally->distinct > 1) ||
      !record(attempt, known, data, pointers, count, has_data))
    tally->left_out++;
  else recorded++;
}
#endif
