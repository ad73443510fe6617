/* A driver without a GPU, as far as observing launches asks it: libcuda.so.1 of the tests.

   A kernel's parameters follow from its name: "copy__8_4" has one of 8 bytes and one of 4, "tiles__128" a tensor map.
   A launch adds 1 to the first four bytes that its first 8-byte parameter points to, if that is memory of cuMemAlloc; a
   kernel whose name begins with "killed" ends the process by SIGKILL instead. Every function of the real driver that
   CUPTI would report calls the subscriber of the fake libcupti before and after it. Not safe for several threads but in
   launches. */
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
  struct FakeFunction *functions[MOST];
  int count;
};
struct FakeFunction {
  int magic;
  char name[200];
  struct FakeModule *owner;
  struct FakeFunction *function;
};
struct FakeStream {
  int busy;
  struct FakeGraph *capture;
};
struct FakeNode {
  int type;
  CUDA_KERNEL_NODE_PARAMS params;
  unsigned cluster[3];
  struct FakeGraph *child;
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
static struct FakeContext context = {1};
static struct {
  CUdeviceptr start;
  size_t nbytes;
} memory[MOST];
static int allocations;

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
  CUpti_CallbackData data = {site, name, params, result, symbol, &context, 1, &correlation, 7};
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
  *value = attribute == 75 ? number / 10 : attribute == 76 ? number % 10 : 0;
  return 0;
}
CUDA_API CUresult cuCtxCreate_v2(CUcontext *made, unsigned flags, CUdevice device) {
  *made = &context;
  return 0 * ((int)flags + device);
}
CUDA_API CUresult cuCtxGetCurrent(CUcontext *current) {
  *current = &context;
  return 0;
}
CUDA_API CUresult cuCtxGetDevice(CUdevice *device) {
  *device = 0;
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

/* memory */

static int allocation_of(CUdeviceptr address) {
  for (int i = 0; i < allocations; i++)
    if (address - memory[i].start < memory[i].nbytes) return i;
  return -1;
}
CUDA_API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t nbytes) {
  void *data = NULL;
  if (allocations == MOST || posix_memalign(&data, 4096, nbytes + 4096)) return 2;
  memset(data, 0, nbytes);
  *address = memory[allocations].start =
      (CUdeviceptr)(uintptr_t)data + 512; /* as the driver: aligned to 512, not more */
  memory[allocations++].nbytes = nbytes;
  return 0;
}
CUDA_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *nbytes, CUdeviceptr address) {
  int i = allocation_of(address);
  if (i < 0) return INVALID_VALUE;
  *start = memory[i].start;
  *nbytes = memory[i].nbytes;
  return 0;
}
CUDA_API CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address) {
  int i = allocation_of(address);
  if (i < 0) return INVALID_VALUE;
  if (attribute == 2) *(unsigned *)data = 2;
  else if (attribute == 11) *(CUdeviceptr *)data = memory[i].start;
  else if (attribute == 12) *(size_t *)data = memory[i].nbytes;
  else if (attribute == 13) *(int *)data = 1;
  else return INVALID_VALUE;
  return 0;
}
CUDA_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t nbytes) {
  if (allocation_of(to) < 0) return INVALID_VALUE;
  memcpy((void *)(uintptr_t)to, from, nbytes);
  return 0;
}
CUDA_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t nbytes) {
  int i = allocation_of(from);
  if (i < 0 || from + nbytes > memory[i].start + memory[i].nbytes) return INVALID_VALUE;
  memcpy(to, (void *)(uintptr_t)from, nbytes);
  return 0;
}
CUDA_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t nbytes, CUstream stream) {
  return stream && stream->capture ? 900 : cuMemcpyDtoH_v2(to, from, nbytes);
}

/* streams */

static int is_made(CUstream stream) { return (uintptr_t)stream > 2; } /* not a stream that every thread has */
CUDA_API CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  *stream = calloc(1, sizeof **stream);
  return 0 * (int)flags;
}
CUDA_API CUresult cuStreamQuery(CUstream stream) {
  return is_made(stream) && stream->capture ? 900 : is_made(stream) && stream->busy ? NOT_READY : 0;
}
CUDA_API CUresult cuStreamSynchronize(CUstream stream) { return is_made(stream) && stream->capture ? 900 : 0; }
CUDA_API CUresult cuStreamIsCapturing(CUstream stream, int *status) {
  *status = is_made(stream) && stream->capture;
  return 0;
}
CUDA_API CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  stream->capture = calloc(1, sizeof *stream->capture);
  return 0 * mode;
}
CUDA_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  *graph = stream->capture;
  stream->capture = NULL;
  return 0;
}

/* code */

static CUresult made(CUmodule *module, int magic, const void *image) {
  if (!image) return INVALID_VALUE;
  *module = calloc(1, sizeof **module);
  (*module)->magic = magic;
  return 0;
}
CUDA_API CUresult cuModuleLoad(CUmodule *module, const char *path) {
  struct {
    CUmodule *module;
    const char *path;
  } P = {module, path};
  REPORTED(18, "cuModuleLoad", NULL, access(path, R_OK) ? 301 : made(module, MODULE, path));
}
CUDA_API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  struct {
    CUmodule *module;
    const void *image;
  } P = {module, image};
  REPORTED(19, "cuModuleLoadData", NULL, made(module, MODULE, image));
}
CUDA_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values) {
  struct {
    CUmodule *module;
    const void *image;
    unsigned count;
    int *options;
    void **values;
  } P = {module, image, count, options, values};
  REPORTED(20, "cuModuleLoadDataEx", NULL, made(module, MODULE, image));
}
CUDA_API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
  struct {
    CUmodule *module;
    const void *image;
  } P = {module, image};
  REPORTED(21, "cuModuleLoadFatBinary", NULL, made(module, MODULE, image));
}
CUDA_API CUresult cuModuleUnload(CUmodule module) {
  struct {
    CUmodule module;
  } P = {module};
  REPORTED(22, "cuModuleUnload", NULL, module->magic == MODULE ? 0 : INVALID_HANDLE);
}
CUDA_API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *a, void **b, unsigned c, int *d,
                                    void **e, unsigned f) {
  struct {
    CUlibrary *library;
    const void *code;
    int *a;
    void **b;
    unsigned c;
    int *d;
    void **e;
    unsigned f;
  } P = {library, code, a, b, c, d, e, f};
  REPORTED(678, "cuLibraryLoadData", NULL, made(library, LIBRARY, code));
}
CUDA_API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *a, void **b, unsigned c, int *d,
                                        void **e, unsigned f) {
  struct {
    CUlibrary *library;
    const char *path;
    int *a;
    void **b;
    unsigned c;
    int *d;
    void **e;
    unsigned f;
  } P = {library, path, a, b, c, d, e, f};
  REPORTED(679, "cuLibraryLoadFromFile", NULL, access(path, R_OK) ? 301 : made(library, LIBRARY, path));
}
CUDA_API CUresult cuLibraryUnload(CUlibrary library) {
  struct {
    CUlibrary library;
  } P = {library};
  REPORTED(680, "cuLibraryUnload", NULL, library->magic == LIBRARY ? 0 : INVALID_HANDLE);
}
static struct FakeFunction *function_of(struct FakeModule *owner, int magic, const char *name) {
  for (int i = 0; i < owner->count; i++)
    if (!strcmp(owner->functions[i]->name, name)) return owner->functions[i];
  struct FakeFunction *found = calloc(1, sizeof *found);
  found->magic = magic;
  found->owner = owner;
  snprintf(found->name, sizeof found->name, "%s", name);
  return owner->count < MOST ? owner->functions[owner->count++] = found : found;
}
CUDA_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  if (module->magic != MODULE) return INVALID_HANDLE;
  *function = function_of(module, FUNCTION, name);
  return 0;
}
CUDA_API CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  if (library->magic != LIBRARY) return INVALID_HANDLE;
  *kernel = function_of(library, KERNEL, name);
  return 0;
}
static CUresult loaded(CUfunction *function, CUkernel kernel) {
  if (kernel->magic != KERNEL) return INVALID_HANDLE;
  if (!kernel->function) {
    kernel->function = calloc(1, sizeof *kernel);
    *kernel->function = *kernel;
    kernel->function->magic = FUNCTION;
    kernel->function->owner = calloc(1, sizeof *kernel->owner); /* the library's module in this context */
    kernel->function->owner->magic = MODULE;
  }
  *function = kernel->function;
  return 0;
}
CUDA_API CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  struct {
    CUfunction *function;
    CUkernel kernel;
  } P = {function, kernel};
  REPORTED(683, "cuKernelGetFunction", NULL, loaded(function, kernel));
}
CUDA_API CUresult cuFuncGetModule(CUmodule *module, CUfunction f) {
  return f->magic != FUNCTION ? INVALID_HANDLE : (*module = f->owner, 0);
}
CUDA_API CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel k) {
  return k->magic != KERNEL ? INVALID_HANDLE : (*library = k->owner, 0);
}
CUDA_API CUresult cuFuncGetName(const char **name, CUfunction f) {
  return f->magic != FUNCTION ? INVALID_HANDLE : (*name = f->name, 0);
}
CUDA_API CUresult cuKernelGetName(const char **name, CUkernel k) {
  return k->magic != KERNEL ? INVALID_HANDLE : (*name = k->name, 0);
}
static CUresult attribute(int *value, int which, const char *name) {
  int cluster = strncmp(name, "cluster", 7) ? 0 : 2; /* required by the kernel itself */
  *value = which == 4 ? 40 : which == 11 ? cluster : which == 12 || which == 13 ? !!cluster : 0;
  return 0;
}
CUDA_API CUresult cuFuncGetAttribute(int *value, int which, CUfunction f) {
  return f->magic != FUNCTION ? INVALID_HANDLE : attribute(value, which, f->name);
}
CUDA_API CUresult cuKernelGetAttribute(int *value, int which, CUkernel k, CUdevice device) {
  return k->magic != KERNEL || device ? INVALID_HANDLE : attribute(value, which, k->name);
}

/* A handle of the other kind is refused with the status that a parameter of too large a number has. */
static int parameter(const char *name, size_t index, size_t *offset, size_t *nbytes) {
  const char *at = strstr(name, "__");
  size_t end = 0;
  for (at = at ? at + 2 : ""; *at; at += strspn(at, "_")) {
    size_t size = strtoul(at, (char **)&at, 10), align = size % 64 == 0 ? 64 : size % 8 == 0 ? 8 : size & -size;
    if (!size) return 0;
    *offset = (end + align - 1) / align * align;
    *nbytes = size;
    end = *offset + size;
    if (!index--) return 1;
  }
  return 0;
}
CUDA_API CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *nbytes) {
  return f->magic != FUNCTION ? INVALID_VALUE : !parameter(f->name, index, offset, nbytes);
}
CUDA_API CUresult cuKernelGetParamInfo(CUkernel k, size_t index, size_t *offset, size_t *nbytes) {
  return k->magic != KERNEL ? INVALID_VALUE : !parameter(k->name, index, offset, nbytes);
}

/* linker: the machine code that it makes is an ELF header alone */

CUDA_API CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *state) {
  *state = calloc(1, sizeof **state);
  return 0 * (count + !options + !values);
}
CUDA_API CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name,
                                   unsigned count, int *options, void **values) {
  struct {
    CUlinkState state;
    int type;
    void *data;
    size_t size;
    const char *name;
    unsigned count;
    int *options;
    void **values;
  } P = {state, type, data, size, name, count, options, values};
  REPORTED(382, "cuLinkAddData_v2", NULL, (state->inputs++, 0));
}
static CUresult linked(void **cubin, size_t *size) {
  unsigned char *header = calloc(1, *size = 64);
  memcpy(header,
         "\x7f"
         "ELF\2\1\1\x41",
         8);
  memcpy(header + 24, &header, sizeof header); /* so that no two are equal */
  *cubin = header;
  return 0;
}
CUDA_API CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size) {
  struct {
    CUlinkState state;
    void **cubin;
    size_t *size;
  } P = {state, cubin, size};
  REPORTED(365, "cuLinkComplete", NULL, linked(cubin, size));
}

#include "launches.h"
