/* The images that the program loaded, by the module or library that the driver made of each, with the PTX of each. */
#ifndef PIPESIM_IMAGES_H
#define PIPESIM_IMAGES_H
#include "code.h"
#include "spool.h"
#include <sys/stat.h>

typedef struct Image {
  struct Image *next;
  void *handle;
  uint64_t key; /* of the PTX, 0 if there is none */
  char *data;   /* a copy of it: the program may free its own; NULL once it is written or dropped */
  size_t size;
  const char *suffix, *origin;
  char name[32]; /* of the file, once it is written */
  char why_not[400];
} Image;
typedef struct Linked { /* PTX that was given to the driver's linker, and the machine code that was made of it */
  struct Linked *next;
  void *state;
  char *text;
  size_t size, image_size;
  uint64_t image_hash;
  int texts;
} Linked;
typedef struct Alias {
  struct Alias *next;
  void *function, *owner;
} Alias; /* a kernel's function, and its library */

static Image *images[1024];
static Alias *aliases[1024];
static Linked *links;
static uint64_t kept; /* bytes of PTX in memory */

static size_t bucket(const void *handle) { return ((uintptr_t)handle * 0x9e3779b97f4a7c15u) >> 54; }

static Image *image_of(const void *handle) {
  Image *image = images[bucket(handle)];
  while (image && image->handle != handle) image = image->next;
  return image;
}
static void forget_image(const void *handle) {
  for (Image **at = &images[bucket(handle)]; *at; at = &(*at)->next) {
    Image *image = *at;
    if (image->handle != handle) continue;
    *at = image->next;
    kept -= image->data ? image->size : 0;
    free(image->data);
    free(image);
    return;
  }
}
static void keep(Image *image, char *data, size_t size, const char *suffix, const char *origin) {
  if (kept + size > spool.left) {
    free(data);
    strcpy(image->why_not, "the limit on bytes was reached before its PTX was written");
    return;
  }
  kept += size;
  image->data = data;
  image->size = size;
  image->suffix = suffix;
  image->origin = origin;
  image->key = fnv(data, size);
}
/* Machine code by itself has PTX only if the driver's linker has made it of one text. */
static void examine_machine_code(Image *image, const char *at, Bounds in) {
  for (Linked *each = links; each; each = each->next) {
    if (each->texts != 1 || !each->image_size) continue;
    char *data = malloc(each->image_size), *text = malloc(each->size);
    bool same = data && text && peek(in, at, data, each->image_size) && fnv(data, each->image_size) == each->image_hash;
    free(data);
    if (same) {
      keep(image, memcpy(text, each->text, each->size), each->size, ".ptx", "the driver's linker");
      return;
    }
    free(text);
  }
  strcpy(image->why_not, "the program loaded machine code alone");
}
static void examine_fat_binary(Image *image, const char *at, Bounds in) {
  char name[256], arch[32], *data = NULL;
  size_t size;
  Text why = {0};
  Entries all = {0};
  const char *force = getenv("CUDA_FORCE_PTX_JIT");
  current_device(name, sizeof name, arch);
  if (!entries_at(at, in, &all)) strcpy(image->why_not, "the fat binary that the program loaded cannot be read");
  else if (strncmp(arch, "sm_", 3))
    strcpy(image->why_not, "the device's architecture was not known when its fat binary was loaded");
  else {
    const Entry *chosen = choose(&all, (uint32_t)atoi(arch + 3), force && !strcmp(force, "1"), &why);
    if (!chosen)
      snprintf(image->why_not, sizeof image->why_not, "%s", why.data ? why.data : "its fat binary has no PTX");
    else if (entry_bytes(chosen, in, &data, &size)) {
      keep(image, data, size, ".entry", "a fat binary");
      data = NULL;
    } else strcpy(image->why_not, "the PTX in the fat binary that the program loaded cannot be read");
  }
  free(data);
  free(why.data);
  free_entries(&all);
}
static void examine(Image *image, const char *at, Bounds in) {
  char start[16];
  if (!peek(in, at, start, 16)) {
    strcpy(image->why_not, "the code that the program loaded cannot be read");
    return;
  }
  if (u32(start) == 0x466243B1u) { /* __fatBinC_Wrapper_t: the container's address is its second word */
    memcpy(&at, start + 8, sizeof at);
    in = (Bounds){NULL, NULL};
    if (!peek(in, at, start, 16)) {
      strcpy(image->why_not, "the fat binary that the program loaded cannot be read");
      return;
    }
  }
  if (u32(start) == 0xBA55ED50u) examine_fat_binary(image, at, in);
  else if (!memcmp(start,
                   "\x7f"
                   "ELF",
                   4))
    examine_machine_code(image, at, in);
  else if (is_ptx(start, sizeof start)) {
    ssize_t size = ptx_bytes(at, in);
    char *data = size > 0 ? malloc((size_t)size) : NULL;
    if (data && peek(in, at, data, (size_t)size)) {
      keep(image, data, (size_t)size, ".ptx", "PTX that the driver compiled");
      return;
    }
    free(data);
    strcpy(image->why_not, "the PTX that the program loaded cannot be read");
  } else strcpy(image->why_not, "the program loaded code of an unknown format");
}
static void examine_file(Image *image, const char *path) {
  struct stat about;
  char *data = NULL;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool usual = file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= MOST_CODE;
  size_t size = usual ? (size_t)about.st_size : 0;
  if (usual && (data = calloc(1, size + 16)) && read(file, data, size) == (ssize_t)size)
    examine(image, data, (Bounds){data, data + size + 16});
  else strcpy(image->why_not, "the file of its module cannot be read, or is too large");
  free(data);
  if (file >= 0) close(file);
}
/* A module or library was made of the image at an address, or of the file with a path there. Whether its handle was
   known already. */
static bool image_loaded(void *handle, const void *from, bool is_path) {
  if (!handle || !from) return false;
  bool again = image_of(handle) != NULL;
  forget_image(handle);
  Image *image = calloc(1, sizeof *image);
  if (!image) return again;
  image->handle = handle;
  if (is_path) examine_file(image, from);
  else examine(image, from, (Bounds){NULL, NULL});
  image->next = images[bucket(handle)];
  images[bucket(handle)] = image;
  return again;
}
/* Write its PTX once; false and a reason if there is none. */
static bool write_image(Image *image) {
  if (*image->name) return true;
  if (!image->data) return false;
  bool written = write_code(image->data, image->size, image->suffix, image->name);
  if (!written) {
    *image->name = 0;
    strcpy(image->why_not,
           spool.full ? "the limit on bytes was reached before its PTX was written" : "its PTX could not be written");
  }
  free(image->data);
  image->data = NULL;
  kept -= image->size;
  return written;
}

static void link_input(void *state, const char *text, size_t size) {
  Linked *link = links;
  while (link && (link->state != state || link->image_size)) link = link->next;
  if (!link) {
    if (!(link = calloc(1, sizeof *link))) return;
    link->state = state;
    link->next = links;
    links = link;
  }
  while (size && !text[size - 1]) size--;
  if (++link->texts > 1 || size > MOST_CODE || !(link->text = malloc(size ? size : 1))) return;
  memcpy(link->text, text, size);
  link->size = size;
}
static void link_completed(void *state, const void *image, size_t size) {
  for (Linked *link = links; link; link = link->next) {
    if (link->state != state || link->image_size) continue;
    if (!link->text) link->texts = 0;
    link->image_size = size;
    link->image_hash = fnv(image, size);
    return;
  }
}

/* A function that the driver made of a library's kernel: its own module is another one than the library. */
static void add_alias(void *function, void *owner) {
  Alias *alias = aliases[bucket(function)];
  while (alias && alias->function != function) alias = alias->next;
  if (!alias) {
    if (!(alias = calloc(1, sizeof *alias))) return;
    alias->function = function;
    alias->next = aliases[bucket(function)];
    aliases[bucket(function)] = alias;
  }
  alias->owner = owner;
}
static void *alias_of(const void *function) {
  Alias *alias = aliases[bucket(function)];
  while (alias && alias->function != function) alias = alias->next;
  return alias ? alias->owner : NULL;
}
#endif
