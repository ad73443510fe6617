/* A launch's parameters as the driver was given them, and which of their words are addresses or tensor maps. */
#ifndef PIPESIM_PARAMETERS_H
#define PIPESIM_PARAMETERS_H
#include "functions.h"
#include "maps.h"

enum { MOST_POINTERS = 512 };
typedef struct {
  uint32_t parameter, at;
  uint64_t address;
} Pointed;

/* The bytes of all parameters, one after the other; false where the launch does not have them. */
static bool gather(const Attempt *attempt, const Known *known, char *data) {
  const char *buffer = NULL;
  if (known->parameters < 0) return false;
  if (!attempt->parameters && attempt->extra)
    for (int i = 0; i < 16 && attempt->extra[i]; i += 2)
      if (attempt->extra[i] == (void *)BUFFER_POINTER) {
        buffer = attempt->extra[i + 1];
        break;
      }
  if (known->parameters && !attempt->parameters && !buffer) return false;
  for (int i = 0; i < known->parameters; i++) {
    const char *from = buffer ? buffer + known->layout[2 * i] : attempt->parameters[i];
    memcpy(data, from, known->layout[2 * i + 1]);
    data += known->layout[2 * i + 1];
  }
  for (uint32_t i = 0; i < known->unread_count; i++) data[(int64_t)known->unread[i] - known->nbytes] = 0; /* from its end */
  return true;
}
static uint64_t align_of(uint64_t address) {
  uint64_t align = address & -address;
  return align > 256 ? 256 : align; /* which an allocation has at least */
}
/* The words of one parameter that are addresses of device memory, tensor maps left out. */
static int find_pointers(const char *data, uint32_t nbytes, uint32_t parameter, Pointed *found, int count) {
  for (uint32_t at = 0; at + 8 <= nbytes && count < MOST_POINTERS; at += 8) {
    if (at % 64 == 0 && at + MAP_BYTES <= nbytes && map_members(data + at)) {
      at += MAP_BYTES - 8;
      continue;
    }
    uint64_t address = u64(data + at);
    uint32_t kind = 0;
    if (address < 1 << 16 || ASK(cuPointerGetAttribute, &kind, MEMORY_TYPE, address) || kind != DEVICE_MEMORY) continue;
    found[count++] = (Pointed){parameter, at, address};
  }
  return count;
}
/* What a launch is known by: addresses count as their alignment, tensor maps as their members. */
static Digest distinct_digest(const Attempt *attempt, const Known *known, const char *data, const Pointed *pointers,
                              int count, bool has_data) {
  Digest made = NOTHING_YET;
  digest(&made, &known->tally, sizeof known->tally);
  digest(&made, attempt->shape, sizeof attempt->shape);
  digest(&made, attempt->cluster, sizeof attempt->cluster);
  for (int i = 0; has_data && i < known->parameters; i++) {
    uint32_t nbytes = known->layout[2 * i + 1];
    for (uint32_t at = 0; at < nbytes;) {
      const char *members = at % 64 == 0 && at + MAP_BYTES <= nbytes ? map_members(data + at) : NULL;
      if (members) {
        digest(&made, members, strlen(members));
        at += MAP_BYTES;
        continue;
      }
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
#endif
