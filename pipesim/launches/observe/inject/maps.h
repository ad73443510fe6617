/* The tensor maps that the program encoded, by their 128 bytes, with their members as JSON in a launch file's words. */
#ifndef PIPESIM_MAPS_H
#define PIPESIM_MAPS_H
#include "driver.h"
#include "text.h"

enum { MAP_BYTES = 128, MOST_MAPS = 1 << 14 };
static const char *const ELEMENTS[] = {/* CUtensorMapDataType, in the words of docs/launch-file.md */
                                       "u8",       "u16",       "u32",        "s32",       "u64",     "s64",
                                       "f16",      "f32",       "f64",        "bf16",      "f32_ftz", "tf32",
                                       "tf32_ftz", "u4_align8", "u4_align16", "u6_align16"};
static const char *const INTERLEAVES[] = {"none", "16B", "32B"};
static const char *const SWIZZLES[] = {"none",         "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B",
                                       "128B_atom_64B"};
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static struct {
  char bytes[MAP_BYTES];
  char *members;
  int next;
} maps[MOST_MAPS]; /* the oldest is replaced */
static int map_buckets[4096], maps_made; /* index + 1; 0 is none */

static int *map_bucket(const char *bytes) { return &map_buckets[fnv(bytes, MAP_BYTES) & 4095]; }

/* The members of a map, NULL if it was not seen when it was encoded. */
static const char *map_members(const char *bytes) {
  for (int i = *map_bucket(bytes); i; i = maps[i - 1].next)
    if (!memcmp(maps[i - 1].bytes, bytes, MAP_BYTES)) return maps[i - 1].members;
  return NULL;
}
/* MEMBERS are taken over. */
static void add_map(const char *bytes, char *members) {
  if (!members) return;
  for (int i = *map_bucket(bytes); i; i = maps[i - 1].next) {
    if (memcmp(maps[i - 1].bytes, bytes, MAP_BYTES)) continue;
    free(maps[i - 1].members);
    maps[i - 1].members = members;
    return;
  }
  int slot = maps_made++ % MOST_MAPS;
  if (maps[slot].members) {
    int *at = map_bucket(maps[slot].bytes);
    while (*at && *at != slot + 1) at = &maps[*at - 1].next;
    if (*at) *at = maps[slot].next;
    free(maps[slot].members);
  }
  memcpy(maps[slot].bytes, bytes, MAP_BYTES);
  maps[slot].members = members;
  maps[slot].next = *map_bucket(bytes);
  *map_bucket(bytes) = slot + 1;
}

static void list_of_u64(Text *text, const char *name, const uint64_t *values, uint32_t count) {
  say(text, ", \"%s\": [", name);
  for (uint32_t i = 0; values && i < count; i++) say(text, "%s%llu", i ? ", " : "", (unsigned long long)values[i]);
  say(text, "]");
}
static void list_of_u32(Text *text, const char *name, const uint32_t *values, uint32_t count) {
  say(text, ", \"%s\": [", name);
  for (uint32_t i = 0; values && i < count; i++) say(text, "%s%u", i ? ", " : "", values[i]);
  say(text, "]");
}
/* PIXELS is 0 for a tiled map, BOX has the channels alone for the others. */
static void encoded(const EncodedTensor *tensor, const uint32_t *box, const uint32_t *steps, int interleave,
                    int swizzle, uint32_t pixels) {
  int element = tensor->element;
  uint32_t rank = tensor->rank;
  bool known = element >= 0 && element < COUNT(ELEMENTS); /* of a type of later drivers the box says nothing */
  if (rank < 1 || rank > 5 || interleave < 0 || interleave >= COUNT(INTERLEAVES) || swizzle < 0 ||
      swizzle >= COUNT(SWIZZLES))
    return;
  Text text = {0};
  say(&text, "\"element\": \"%s\"", known ? ELEMENTS[element] : "");
  list_of_u64(&text, "dims", tensor->dims, rank);
  list_of_u32(&text, "box", box, !known ? 0 : pixels ? 1 : rank);
  list_of_u64(&text, "strides", tensor->strides, rank - 1);
  list_of_u32(&text, "element_strides", steps, rank);
  say(&text, ", \"swizzle\": \"%s\", \"interleave\": \"%s\", \"pixels\": %u", SWIZZLES[swizzle],
      INTERLEAVES[interleave], known ? pixels : 0);
  if (text.failed) free(text.data);
  else add_map(tensor->map, text.data);
}
static void map_encoded(uint32_t number, const void *arguments) {
  const EncodeTiled *tiled = arguments;
  const EncodeIm2col *columns = arguments;
  const EncodeIm2colWide *wide = arguments;
  if (map_members(tiled->tensor.map)) return; /* a program encodes the same one before each launch */
  if (number == ENCODE_TILED)
    encoded(&tiled->tensor, tiled->box, tiled->steps, tiled->interleave, tiled->swizzle, 0);
  else if (number == ENCODE_IM2COL)
    encoded(&columns->tensor, &columns->channels, columns->steps, columns->interleave, columns->swizzle,
            columns->pixels);
  else
    encoded(&wide->tensor, &wide->channels, wide->steps, wide->interleave, wide->swizzle, wide->pixels);
}
#endif
