/* The records of this process: one file in the spool folder, and files of code beside it. */
#ifndef PIPESIM_SPOOL_H
#define PIPESIM_SPOOL_H
#include "driver.h"
#include "text.h"
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct {
  char folder[PATH_MAX];
  char patterns[8192]; /* separated by newlines; none is every kernel */
  bool once;
  uint64_t launches; /* distinct ones of this process */
  uint64_t left;     /* bytes */
  uint64_t copies;   /* bytes that may be copied of memory */
  int file;
  struct stat opened; /* of the file: a program may close all files that it did not open, and use the number again */
  bool full, introduced;
  uint64_t noted[64]; /* notes that were written, by hash */
  int notes;
} spool = {.file = -1};

static uint64_t number_of(const char *variable, uint64_t otherwise) {
  const char *text = getenv(variable);
  if (!text || !*text || strlen(text) > 19 || strspn(text, "0123456789") != strlen(text)) return otherwise;
  return strtoull(text, NULL, 10);
}
static bool open_spool(void) {
  const char *folder = getenv("PIPESIM_LAUNCHES_SPOOL"), *patterns = getenv("PIPESIM_LAUNCHES_PATTERNS");
  const char *once = getenv("PIPESIM_LAUNCHES_ONCE");
  if (!folder || !*folder || strlen(folder) > sizeof spool.folder - 64) return false;
  strcpy(spool.folder, folder);
  if (patterns && strlen(patterns) < sizeof spool.patterns) strcpy(spool.patterns, patterns);
  spool.once = once && !strcmp(once, "1");
  spool.launches = number_of("PIPESIM_LAUNCHES_LAUNCHES", 256);
  spool.left = number_of("PIPESIM_LAUNCHES_BYTES", 1u << 26);
  spool.copies = number_of("PIPESIM_LAUNCHES_COPIES", 0);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  char path[PATH_MAX + 80];
  snprintf(path, sizeof path, "%s/%d-%llx%09lx.jsonl", folder, (int)getpid(), (unsigned long long)now.tv_sec,
           now.tv_nsec);
  spool.file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  return spool.file >= 0 && fstat(spool.file, &spool.opened) == 0;
}
static bool is_ours(void) {
  struct stat now;
  return spool.file >= 0 && fstat(spool.file, &now) == 0 && now.st_dev == spool.opened.st_dev &&
         now.st_ino == spool.opened.st_ino;
}
static bool write_all(int file, const char *data, size_t size) {
  while (size) {
    ssize_t done = write(file, data, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    size -= (size_t)done;
  }
  return true;
}
/* Write one line, which ends here, and free it. Whether there was room. After a failure nothing more is written. */
static bool write_line(Text *line) {
  put(line, "\n", 1);
  bool fits = !line->failed && line->size <= spool.left;
  spool.full |= !fits;
  if (fits) {
    spool.left -= line->size;
    if (!is_ours()) spool.file = -1;
    else if (!write_all(spool.file, line->data, line->size)) {
      close(spool.file);
      spool.file = -1;
    }
    fits = spool.file >= 0;
  }
  free(line->data);
  *line = (Text){0};
  return fits;
}
__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
  char message[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  uint64_t hash = fnv(message, strlen(message));
  for (int i = 0; i < spool.notes; i++)
    if (spool.noted[i] == hash) return;
  if (spool.notes == 64) return;
  spool.noted[spool.notes++] = hash;
  Text line = {0};
  say(&line, "{\"kind\": \"note\", \"text\": ");
  quote(&line, message, sizeof message);
  say(&line, "}");
  write_line(&line);
}

static void arch_of(int device, char arch[32]) {
  int major = 0, minor = 0;
  *arch = 0;
  if (ASK(cuDeviceGetAttribute, &major, COMPUTE_MAJOR, device) ||
      ASK(cuDeviceGetAttribute, &minor, COMPUTE_MINOR, device))
    return;
  snprintf(arch, 32, "sm_%d%d", major, minor);
}
/* The current device. A library may be loaded without one: then the architecture that all devices have, and no name. */
static void current_device(char *name, int size, char arch[32]) {
  int device = 0, count = 0;
  char other[32];
  *name = *arch = 0;
  if (!ASK(cuCtxGetDevice, &device)) {
    ASK(cuDeviceGetName, name, size, device);
    arch_of(device, arch);
    return;
  }
  if (ASK(cuDeviceGetCount, &count) || count < 1) return;
  arch_of(0, arch);
  for (device = 1; device < count; device++) {
    arch_of(device, other);
    if (strcmp(arch, other)) *arch = 0;
  }
}
/* Once, which process this is. Its device is known from its first launch on; at the end it is not asked any more. */
static void introduce(bool at_end) {
  if (spool.introduced) return;
  spool.introduced = true;
  char device[256] = "", arch[32] = "", argv[16 * 1024] = "";
  if (!at_end) current_device(device, sizeof device, arch);
  Text line = {0};
  say(&line, "{\"kind\": \"process\", \"version\": 1, \"pid\": %d, \"argv\": [", (int)getpid());
  int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t size = file < 0 ? 0 : read(file, argv, sizeof argv - 1);
  if (file >= 0) close(file);
  int count = 0;
  for (ssize_t at = 0; at < size && count < 16; at += (ssize_t)strlen(argv + at) + 1) {
    if (count++) say(&line, ", ");
    quote(&line, argv + at, 256);
  }
  say(&line, "], \"device\": ");
  quote(&line, device, sizeof device);
  say(&line, ", \"arch\": \"%s\"}", arch);
  write_line(&line);
}
/* Whether the kernel's name matches a pattern. */
static bool is_wanted(const char *kernel) {
  char pattern[sizeof spool.patterns];
  if (!*spool.patterns) return true;
  for (const char *at = spool.patterns; *at;) {
    size_t size = strcspn(at, "\n");
    memcpy(pattern, at, size);
    pattern[size] = 0;
    if (size && fnmatch(pattern, kernel, FNM_NOESCAPE) == 0) return true;
    at += size + (at[size] == '\n');
  }
  return false;
}
/* Write a file of code, if it is not there: "KEY.ptx". Its name is put into NAME; false if there is no room. */
static bool write_code(const char *data, size_t size, const char *suffix, char name[32]) {
  char path[PATH_MAX + 80], temporary[PATH_MAX + 80];
  snprintf(name, 32, "%016llx%s", (unsigned long long)fnv(data, size), suffix);
  snprintf(path, sizeof path, "%s/%s", spool.folder, name);
  snprintf(temporary, sizeof temporary, "%s/%s.%d", spool.folder, name, (int)getpid());
  if (access(path, F_OK) == 0) return true;
  if (size > spool.left) {
    spool.full = true;
    return false;
  }
  int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  spool.left -= size;
  bool done = write_all(file, data, size);
  close(file);
  done = done && rename(temporary, path) == 0; /* so that it is whole under its name */
  if (!done) unlink(temporary);
  return done;
}
#endif
