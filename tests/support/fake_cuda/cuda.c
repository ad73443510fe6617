/* A driver without a GPU, as far as observing launches asks it: libcuda.so.1 of the tests.

   A kernel's parameters follow from its name: "copy__8_4" has one of 8 bytes and one of 4, "tiles__128" a tensor map.
   A launch adds 1 to the first four bytes that its first 8-byte parameter points to, if that is memory of cuMemAlloc; a
   kernel whose name begins with "killed" ends the process by SIGKILL instead. In an instrumented module (machine code
   with a P in the last byte of its identification) it also copies the file of FAKE_CUDA_RECORDS, if one is named, to the
   buffer whose address is in "pipesim_buffer"; a kernel "hangs..." keeps its stream busy until the first word of the
   buffer is set, "stuck..." always, and "traps..." leaves the stream with an error. Every function of the real driver that
   CUPTI would report calls the subscriber of the fake libcupti before and after it; a launch then is of the function that
   the subscriber has left in its arguments, as that of driver 580 is. Not safe for several threads but in launches. */
#define _GNU_SOURCE
#include "cuda.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CUDA_API __attribute__((visibility("default")))
enum { MODULE = 0x4d4f4455, LIBRARY = 0x4c494252, FUNCTION = 0x46554e43, KERNEL = 0x4b45524e };
enum { INVALID_VALUE = 1, INVALID_HANDLE = 400, NOT_READY = 600, MOST = 256 };

struct FakeContext {
  int number;
};
struct FakeModule {
  int magic;
  int is_instrumented;
  uint64_t buffer; /* the variable "pipesim_buffer" of an instrumented module */
  struct FakeFunction *functions[MOST];
  int count;
};
struct FakeFunction {
  int magic;
  char name[200];
  struct FakeModule *owner;
  struct FakeFunction *functions[2], *kernel; /* a kernel's function in each context, and the kernel of that */
};
struct FakeStream {
  int busy, error;
  const uint32_t *until; /* not busy any more once this is not 0 */
  struct FakeGraph *capture;
};
struct FakeNode {
  int type;
  CUDA_KERNEL_NODE_PARAMS params;
  unsigned cluster[3];
  struct FakeGraph *child;
  struct FakeNode *origin, *after; /* of which it is a copy; its only dependency */
};
struct FakeGraph {
  struct FakeNode *nodes[MOST];
  size_t count;
};
struct FakeLink {
  int inputs;
};

static CUpti_CallbackFunc callback;
static void *userdata;
static char enabled[2048];
static struct FakeContext contexts[2] = {{1}, {2}}, *current = contexts, *below; /* one of each device */

CUDA_API void fakeSubscribe(CUpti_CallbackFunc given, void *data) {
  callback = given;
  userdata = data;
}
CUDA_API void fakeEnable(uint32_t cbid, int enable) {
  if (cbid < sizeof enabled) enabled[cbid] = (char)enable;
}
CUDA_API void fakeBusy(CUstream stream, int busy) { stream->busy = busy; }

static void report(int site, uint32_t cbid, const char *name, const void *params, CUresult *result,
                   const char *symbol) {
  if (!callback || !enabled[cbid]) return;
  uint64_t correlation = 0;
  CUpti_CallbackData data = {site, name, params, result, symbol, current, 1, &correlation, 7};
  callback(userdata, 1, cbid, &data);
}

/* A call that CUPTI reports: P has its parameters, BODY gives the result. */
#define REPORTED(CBID, NAME, SYMBOL, BODY)      \
  do {                                          \
    report(0, CBID, NAME, &P, NULL, SYMBOL);    \
    CUresult result = (BODY);                   \
    report(1, CBID, NAME, &P, &result, SYMBOL); \
    return result;                              \
  } while (0)

CUDA_API CUresult cuInit(unsigned flags) {
  static int done;
  const char *path = getenv("CUDA_INJECTION64_PATH");
  if (done++ || !path || !*path) return 0 * (int)flags;
  void *library = dlopen(path, RTLD_NOW);
  int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  if (initialize) initialize();
  return 0;
}
CUDA_API CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  snprintf(name, (size_t)size, "Fake H200 %d", device);
  return 0;
}
CUDA_API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  const char *arch = getenv("FAKE_CUDA_ARCH"); /* "90" unless it is set; "90,80" for two devices */
  for (int i = 0; arch && i < device; i++) arch = strchr(arch, ',') ? strchr(arch, ',') + 1 : arch;
  int number = arch ? atoi(arch) : 90;
  *value = attribute == 75 ? number / 10 : attribute == 76 ? number % 10 : attribute == 16 ? 132 : 0;
  return 0;
}
CUDA_API CUresult cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}
CUDA_API CUresult cuCtxCreate_v2(CUcontext *made, unsigned flags, CUdevice device) {
  *made = current = &contexts[device];
  return 0 * (int)flags;
}
CUDA_API CUresult cuCtxGetCurrent(CUcontext *found) {
  *found = current;
  return 0;
}
CUDA_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  below = current;
  current = context;
  return 0;
}
CUDA_API CUresult cuCtxPopCurrent_v2(CUcontext *popped) {
  *popped = current;
  current = below;
  return 0;
}
CUDA_API CUresult cuCtxGetDevice(CUdevice *device) {
  *device = current->number - 1;
  return getenv("FAKE_CUDA_NO_CONTEXT") ? 201 : 0;
}
CUDA_API CUresult cuDeviceGetCount(int *count) {
  *count = 1;
  for (const char *arch = getenv("FAKE_CUDA_ARCH"); arch && (arch = strchr(arch, ',')); arch++) ++*count;
  return 0;
}
CUDA_API CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  *mode = 0;
  return 0;
}

#include "memory.h"

#include "code.h"

#include "launches.h"
