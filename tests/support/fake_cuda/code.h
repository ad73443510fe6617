/* The driver without a GPU: modules, libraries, functions and the linker. Included by cuda.c alone. */

/* code */

static CUresult made(CUmodule *module, int magic, const void *image) {
  if (!image) return INVALID_VALUE;
  *module = calloc(1, sizeof **module);
  (*module)->magic = magic;
  (*module)->is_instrumented = !strncmp(image, "\x7f\x45LF", 4) && ((const char *)image)[15] == 'P';
  return 0;
}
CUDA_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *nbytes, CUmodule module, const char *name) {
  if (!module->is_instrumented || strcmp(name, "pipesim_buffer")) return 500;
  *address = (CUdeviceptr)(uintptr_t)&module->buffer;
  *nbytes = 8;
  return 0;
}
CUDA_API CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *nbytes, CUlibrary library, const char *name) {
  return library->magic == LIBRARY ? cuModuleGetGlobal_v2(address, nbytes, library, name) : INVALID_HANDLE;
}
struct module_params {
  CUmodule *module;
  const void *given; /* the image, or the path of its file */
};
CUDA_API CUresult cuModuleLoad(CUmodule *module, const char *path) {
  struct module_params P = {module, path};
  REPORTED(18, "cuModuleLoad", NULL, access(path, R_OK) ? 301 : made(module, MODULE, path));
}
CUDA_API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  struct module_params P = {module, image};
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
  struct module_params P = {module, image};
  REPORTED(21, "cuModuleLoadFatBinary", NULL, made(module, MODULE, image));
}
CUDA_API CUresult cuModuleUnload(CUmodule module) {
  struct {
    CUmodule module;
  } P = {module};
  REPORTED(22, "cuModuleUnload", NULL, module->magic == MODULE ? 0 : INVALID_HANDLE);
}
struct library_params {
  CUlibrary *library;
  const void *given; /* the image, or the path of its file */
  int *a;
  void **b;
  unsigned c;
  int *d;
  void **e;
  unsigned f;
};
CUDA_API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *a, void **b, unsigned c, int *d,
                                    void **e, unsigned f) {
  struct library_params P = {library, code, a, b, c, d, e, f};
  REPORTED(678, "cuLibraryLoadData", NULL, made(library, LIBRARY, code));
}
CUDA_API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *a, void **b, unsigned c, int *d,
                                        void **e, unsigned f) {
  struct library_params P = {library, path, a, b, c, d, e, f};
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
  struct FakeFunction **made = &kernel->functions[current->number - 1];
  if (!*made) {
    *made = calloc(1, sizeof *kernel);
    **made = *kernel;
    (*made)->magic = FUNCTION;
    (*made)->kernel = kernel;
    (*made)->owner = calloc(1, sizeof *kernel->owner); /* the library's module in this context */
    (*made)->owner->magic = MODULE;
  }
  *function = *made;
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
  return k->magic != KERNEL || device > 1 ? INVALID_HANDLE : attribute(value, which, k->name);
}

CUDA_API CUresult cuKernelSetAttribute(int which, int value, CUkernel k, CUdevice device) {
  return k->magic != KERNEL || device > 1 || which == 4 ? INVALID_HANDLE : 0 * value;
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
