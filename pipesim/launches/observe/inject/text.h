/* Texts that grow, hashes, and sets of hashes. A failed allocation marks a text, and stops nothing. */
#ifndef PIPESIM_TEXT_H
#define PIPESIM_TEXT_H
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  char *data;
  size_t size, room;
  bool failed;
} Text;

static bool reserve(Text *text, size_t more) {
  if (text->size + more <= text->room) return !text->failed;
  size_t room = (text->size + more) * 2;
  char *data = text->failed ? NULL : realloc(text->data, room);
  if (!data) {
    text->failed = true;
    return false;
  }
  text->data = data;
  text->room = room;
  return true;
}
static void put(Text *text, const void *data, size_t size) {
  if (!reserve(text, size + 1)) return;
  memcpy(text->data + text->size, data, size);
  text->data[text->size += size] = 0;
}
__attribute__((format(printf, 2, 3))) static void say(Text *text, const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (size > 0) put(text, line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);
}
/* A JSON string. What is not printable ASCII becomes a question mark: the name of a file may be anything. */
static void quote(Text *text, const char *value, size_t most) {
  put(text, "\"", 1);
  for (size_t i = 0; i < most && value[i]; i++) {
    char c = value[i] >= 32 && value[i] < 127 ? value[i] : '?';
    if (c == '"' || c == '\\') put(text, "\\", 1);
    put(text, &c, 1);
  }
  put(text, "\"", 1);
}
static void hexadecimal(Text *text, const void *data, size_t size) {
  static const char digits[] = "0123456789abcdef";
  const unsigned char *bytes = data;
  put(text, "\"", 1);
  if (reserve(text, 2 * size + 1)) {
    for (size_t i = 0; i < size; i++) {
      text->data[text->size++] = digits[bytes[i] >> 4];
      text->data[text->size++] = digits[bytes[i] & 15];
    }
  }
  put(text, "\"", 1);
}

/* FNV-1a of 64 bits, http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t fnv(const void *data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
  return hash;
}

/* What a launch is known by: two hashes of different kinds of the same bytes. */
typedef struct {
  uint64_t a, b;
} Digest;
static const Digest NOTHING_YET = {0xcbf29ce484222325u, 0x243f6a8885a308d3u};
static void digest(Digest *of, const void *data, size_t size) {
  for (size_t i = 0; i < size; i++) {
    unsigned char byte = ((const unsigned char *)data)[i];
    of->a = (of->a ^ byte) * 0x100000001b3u;
    of->b = ((of->b << 7 | of->b >> 57) + byte) * 0x9e3779b97f4a7c15u;
  }
}

typedef struct {
  Digest *slots;
  size_t count, room;
} Set; /* a slot of two zeros is free */

static void empty(Set *set) {
  free(set->slots);
  *set = (Set){NULL, 0, 0};
}
static bool in_slots(Digest *slots, size_t room, Digest value) { /* adds it if it is not there */
  for (size_t i = value.a & (room - 1);; i = (i + 1) & (room - 1)) {
    if (slots[i].a == value.a && slots[i].b == value.b) return true;
    if (!slots[i].a && !slots[i].b) {
      slots[i] = value;
      return false;
    }
  }
}
/* Whether it was there; it is now, unless memory is short. */
static bool was_in(Set *set, Digest value) {
  if (2 * (set->count + 1) > set->room) {
    size_t room = set->room ? 2 * set->room : 256;
    Digest *slots = calloc(room, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < set->room; i++)
      if (set->slots[i].a || set->slots[i].b) in_slots(slots, room, set->slots[i]);
    free(set->slots);
    set->slots = slots;
    set->room = room;
  }
  bool found = in_slots(set->slots, set->room, value);
  set->count += !found;
  return found;
}
#endif
