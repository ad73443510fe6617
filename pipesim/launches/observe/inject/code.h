/* Code that the program gives to the driver: its kind, its size, and the PTX in it. The same rules as in
   pipesim/launches/images/code_image.py and fat_binary.py, which say where they are from. */
#ifndef PIPESIM_CODE_H
#define PIPESIM_CODE_H
#include "text.h"
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, MOST_CODE = 1 << 26, MOST_ENTRIES = 4096, ENTRY_HEADER = 64 };
enum { KIND_PTX = 1, KIND_ELF = 2, KIND_GROUP = 256 };

typedef struct {
  const char *low, *high;
} Bounds; /* of a file that was read; all memory where both are NULL */

/* Bytes of memory; false where it cannot be read, which does not end the process. */
static bool peek(Bounds in, const void *from, void *to, size_t size) {
  const char *start = from;
  if (in.low && (start < in.low || size > (size_t)(in.high - in.low) || start > in.high - size)) return false;
  struct iovec local = {to, size}, remote = {(void *)start, size};
  ssize_t done = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (done < 0 && (errno == EPERM || errno == ENOSYS)) { /* a sandbox */
    memcpy(to, from, size);
    return true;
  }
  return done == (ssize_t)size;
}
static uint32_t u32(const char *at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return value;
}
static uint64_t u64(const char *at) {
  uint64_t value;
  memcpy(&value, at, 8);
  return value;
}
static uint16_t u16(const char *at) {
  uint16_t value;
  memcpy(&value, at, 2);
  return value;
}

typedef struct {
  uint32_t number;
  char variant;
} Architecture; /* 90 and 0, 'a' or 'f' */
typedef struct {
  uint32_t kind;
  Architecture architecture;
  const char *at;
  uint64_t header, payload; /* bytes */
  char *member;             /* of a group: its header in the group's list; to be freed */
  size_t member_bytes;
  bool damaged;             /* its sizes do not fit together */
} Entry;
typedef struct {
  Entry *entries;
  size_t count;
} Entries;

static bool add_entry(Entries *found, Entry entry) {
  if (found->count >= MOST_ENTRIES) return false;
  Entry *entries = realloc(found->entries, (found->count + 1) * sizeof *entries);
  if (!entries) return false;
  found->entries = entries;
  entries[found->count++] = entry;
  return true;
}
static void free_entries(Entries *found) {
  for (size_t i = 0; i < found->count; i++) free(found->entries[i].member);
  free(found->entries);
}
static Entry entry_of(const char *header, const char *at) {
  uint64_t flags = u64(header + 40);
  char variant = flags & 0x100000 ? 'a' : flags & 0x200000 ? 'f' : 0;
  bool is_compressed = flags & 0xa000,
       damaged = u64(header + 8) > 1ull << 32 || (is_compressed && u32(header + 16) > u64(header + 8));
  return (Entry){u16(header), {u32(header + 28), variant}, at, u32(header + 4), u64(header + 8), NULL, 0, damaged};
}
/* The length of a member's header with its name and its options, each with a NUL at its end; 0 if it does not fit. */
static size_t member_bytes(const char *listed, size_t first, size_t size) {
  if (first + ENTRY_HEADER > size) return 0;
  uint64_t options = u32(listed + first + 20), name = u32(listed + first + 32), end = ENTRY_HEADER;
  if (name) end = name + u32(listed + first + 36) + 1;
  if (options) {
    if (first + options + 8 > size) return 0;
    uint64_t text = (uint64_t)u32(listed + first + options) + u32(listed + first + options + 4) + 1;
    end = text > end ? text : end;
  }
  end = ((end > ENTRY_HEADER ? end : ENTRY_HEADER) + 7) & ~7ull;
  return first + end > size ? 0 : (size_t)end;
}
static bool add_members(Entries *found, Entry group, Bounds in) {
  char where[4], start[8];
  if (!peek(in, group.at + 20, where, 4) || u32(where) < ENTRY_HEADER || u32(where) + 8ull > group.header) return false;
  const char *list = group.at + u32(where);
  if (!peek(in, list, start, 8)) return false;
  size_t count = u32(start), size = u32(start + 4), first = 8;
  if (size < 8 || size > group.header - u32(where) || size > 1 << 16 || count > size / ENTRY_HEADER) return false;
  char *listed = malloc(size);
  bool fits = listed && peek(in, list, listed, size);
  while (fits && count--) {
    size_t length = member_bytes(listed, first, size);
    Entry member = group;
    if ((fits = length != 0)) {
      Entry own = entry_of(listed + first, NULL);
      member.kind = own.kind;
      member.architecture = own.architecture;
      member.member = malloc(length);
      member.member_bytes = length;
      fits = !own.damaged && member.member && memcpy(member.member, listed + first, length) && add_entry(found, member);
      if (!fits) free(member.member);
    }
    first += length;
  }
  free(listed);
  return fits;
}
/* The entries of the container at an address, of which only headers are read; false where one is damaged. */
static bool entries_at(const char *at, Bounds in, Entries *found) {
  char header[ENTRY_HEADER];
  if (!peek(in, at, header, 16)) return false;
  uint64_t left = u64(header + 8);
  if (left > 1ull << 32) return false;
  at += u16(header + 6) > 16 ? u16(header + 6) : 16;
  while (left) {
    if (left < ENTRY_HEADER || !peek(in, at, header, sizeof header)) return false;
    Entry entry = entry_of(header, at);
    if (entry.damaged || entry.header < ENTRY_HEADER || entry.payload > left || entry.header + entry.payload > left)
      return false;
    if (!(entry.kind == KIND_GROUP ? add_members(found, entry, in) : add_entry(found, entry))) return false;
    at += entry.header + entry.payload;
    left -= entry.header + entry.payload;
  }
  return true;
}
/* The content of KEY.entry: header and payload; of a group's member, the group with this one alone. */
static bool entry_bytes(const Entry *entry, Bounds in, char **data, size_t *size) {
  size_t listed = entry->member ? 8 + entry->member_bytes : 0;
  size_t header = entry->member ? ENTRY_HEADER + listed : entry->header;
  if (entry->payload > MOST_CODE || header > MOST_CODE || !(*data = malloc(header + entry->payload))) return false;
  *size = header + entry->payload;
  if (!entry->member) return peek(in, entry->at, *data, *size);
  uint32_t words[3] = {1, (uint32_t)listed, ENTRY_HEADER}, bytes = (uint32_t)header;
  if (!peek(in, entry->at, *data, ENTRY_HEADER)) return false;
  memcpy(*data + 4, &bytes, 4);
  memcpy(*data + 20, &words[2], 4);
  memcpy(*data + ENTRY_HEADER, words, 8);
  memcpy(*data + ENTRY_HEADER + 8, entry->member, entry->member_bytes);
  return peek(in, entry->at + entry->header, *data + header, entry->payload);
}

static bool runs(Architecture code, uint32_t device) {
  return code.variant == 'a' ? code.number == device : code.number / 10 == device / 10 && code.number <= device;
}
static bool compiles(Architecture ptx, uint32_t device) {
  return ptx.variant ? runs(ptx, device) : ptx.number <= device;
}

/* "compute_80, compute_120": the architectures of one kind, each once, in order; with ONLY, those that fit the device
   and have this number. */
static void name_architectures(Text *text, const Entries *all, uint32_t kind, uint32_t only, uint32_t device) {
  uint64_t last = 0;
  for (bool more = true, first = true; more; first = false) {
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < all->count; i++) {
      Architecture each = all->entries[i].architecture;
      uint64_t order = (uint64_t)each.number << 8 | (unsigned char)each.variant;
      bool fits = !only || (each.number == only && (kind == KIND_ELF ? runs(each, device) : compiles(each, device)));
      if (all->entries[i].kind == kind && fits && order < next && order > last) next = order;
    }
    if (!(more = next != UINT64_MAX)) break;
    say(text, "%s%s_%u%.1s", first ? "" : ", ", kind == KIND_ELF ? "sm" : "compute", (unsigned)(next >> 8),
        (char[]){(char)next, 0});
    last = next;
  }
}
/* The entries of a kind that fit the device with the highest number: how many, the last of them, its architecture. */
static size_t best(const Entries *all, uint32_t kind, uint32_t device, const Entry **found) {
  size_t count = 0;
  *found = NULL;
  for (size_t i = 0; i < all->count; i++) {
    const Entry *each = &all->entries[i];
    if (each->kind != kind || !(kind == KIND_ELF ? runs : compiles)(each->architecture, device)) continue;
    if (!*found || each->architecture.number > (*found)->architecture.number) {
      *found = each;
      count = 1;
    } else if (each->architecture.number == (*found)->architecture.number) count++;
  }
  return count;
}
static size_t of_kind(const Entries *all, uint32_t kind) {
  size_t count = 0;
  for (size_t i = 0; i < all->count; i++) count += all->entries[i].kind == kind;
  return count;
}
/* Whether there is machine code for exactly this architecture among that of a number which runs on the device. */
static bool has_code_of(const Entries *all, Architecture ptx, uint32_t number, uint32_t device) {
  for (size_t i = 0; i < all->count; i++) {
    Architecture code = all->entries[i].architecture;
    if (all->entries[i].kind != KIND_ELF || code.number != number || !runs(code, device)) continue;
    if (code.number == ptx.number && code.variant == ptx.variant) return true;
  }
  return false;
}
/* The PTX of what runs on a device, or NULL and the reason. */
static const Entry *choose(const Entries *all, uint32_t device, bool force_ptx, Text *why) {
  const Entry *code, *ptx, *same = NULL;
  size_t codes = force_ptx ? 0 : best(all, KIND_ELF, device, &code), texts = 0;
  if (codes) {
    uint32_t number = code->architecture.number;
    for (size_t i = 0; i < all->count; i++) {
      const Entry *each = &all->entries[i];
      if (each->kind == KIND_PTX && has_code_of(all, each->architecture, number, device)) {
        same = each;
        texts++;
      }
    }
    if (texts == 1 && codes == 1) return same;
    if (texts && codes > 1) say(why, "its fat binary has several machine codes for sm_%u: ", device);
    else say(why, "its fat binary has machine code for ");
    name_architectures(why, all, KIND_ELF, number, device);
    if (texts && codes > 1) return NULL;
    say(why, " and ");
    if (texts) say(why, "%zu PTX texts for it", texts);
    else if (!of_kind(all, KIND_PTX)) say(why, "no PTX");
    else {
      say(why, "PTX only for ");
      name_architectures(why, all, KIND_PTX, 0, device);
    }
    return NULL;
  }
  texts = best(all, KIND_PTX, device, &ptx);
  if (texts == 1) return ptx;
  if (texts) {
    say(why, "its fat binary has several PTX texts for sm_%u: ", device);
    name_architectures(why, all, KIND_PTX, ptx->architecture.number, device);
    return NULL;
  }
  bool has_code = !force_ptx && of_kind(all, KIND_ELF), has_ptx = of_kind(all, KIND_PTX);
  say(why, "its fat binary has nothing for sm_%u: ", device);
  if (has_code) {
    say(why, "machine code for ");
    name_architectures(why, all, KIND_ELF, 0, device);
  }
  if (has_ptx) {
    say(why, has_code ? " and PTX for " : "PTX for ");
    name_architectures(why, all, KIND_PTX, 0, device);
  }
  if (!has_code && !has_ptx) say(why, "it is empty");
  return NULL;
}

/* The length of the PTX at an address without its NUL, in steps that do not leave a page; -1 without an end. */
static ssize_t ptx_bytes(const char *at, Bounds in) {
  char page[PAGE];
  for (size_t size = 0; size < MOST_CODE;) {
    size_t step = PAGE - (uintptr_t)(at + size) % PAGE;
    if (in.low && step > (size_t)(in.high - at - size)) step = (size_t)(in.high - at - size);
    if (!step || !peek(in, at + size, page, step)) return -1;
    const char *end = memchr(page, 0, step);
    if (end) return (ssize_t)(size + (size_t)(end - page));
    size += step;
  }
  return -1;
}
static bool is_ptx(const char *start, size_t size) {
  size_t at = 0;
  for (size_t i = 0; i < size; i++)
    if ((unsigned char)start[i] < 32 && (start[i] < 9 || start[i] > 13)) return false;
  while (at < size && (start[at] == ' ' || (start[at] >= 9 && start[at] <= 13))) at++;
  return at == size || start[at] == '.' ||
         (start[at] == '/' && (at + 1 == size || start[at + 1] == '/' || start[at + 1] == '*'));
}
#endif
