/* What the observing library needs of the driver and of CUPTI, so that no header of either is needed to build it.

   Structures have the members that are read, in the order and with the types of the header that each one names. Handles
   are pointers to nothing known. The tests' driver (tests/support/fake_cuda) declares them for itself, so that a mistake
   here shows there. */
#ifndef PIPESIM_DRIVER_H
#define PIPESIM_DRIVER_H
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { /* CUpti_CallbackData, cupti_callbacks.h */
  int site; /* 0 before the call, 1 after it */
  const char *name;
  const void *arguments;
  const int *result;
  const char *symbol; /* of a launch */
  void *context;      /* the current one */
} CallbackData;

#define SHAPE uint32_t shape[7] /* grid, block, dynamic shared memory: seven members of CUDA's */
typedef struct {
  void *function;
  SHAPE;
  void *stream;
  void **parameters, **extra;
} Launch; /* generated_cuda_meta.h */
typedef struct {
  uint32_t id;
  char pad[4];
  union {
    uint32_t cluster[3];
    char pad[64];
  } value;
} Attribute; /* cuda.h */
typedef struct {
  SHAPE;
  void *stream;
  const Attribute *attributes;
  uint32_t count;
} LaunchConfig;           /* cuda.h */
typedef struct {
  const LaunchConfig *config;
  void *function;
  void **parameters, **extra;
} LaunchEx; /* generated_cuda_meta.h */
typedef struct {
  void *function;
  SHAPE;
  void **parameters, **extra;
  void *kernel, *context;
} KernelNode; /* CUDA_KERNEL_NODE_PARAMS_v2, cuda.h */
typedef struct {
  void *first, *second, *third;
} Handles; /* the first arguments of many functions */

typedef struct {
  void *map;
  int element;
  uint32_t rank;
  void *address;
  const uint64_t *dims, *strides;
} EncodedTensor; /* what the arguments of each cuTensorMapEncode* begin with */
typedef struct { /* cuTensorMapEncodeTiled_params, generated_cuda_meta.h */
  EncodedTensor tensor;
  const uint32_t *box, *steps;
  int interleave, swizzle;
} EncodeTiled;
typedef struct { /* cuTensorMapEncodeIm2col_params */
  EncodedTensor tensor;
  const int *lower, *upper;
  uint32_t channels, pixels;
  const uint32_t *steps;
  int interleave, swizzle;
} EncodeIm2col;
typedef struct { /* cuTensorMapEncodeIm2colWide_params */
  EncodedTensor tensor;
  int lower, upper;
  uint32_t channels, pixels;
  const uint32_t *steps;
  int interleave, mode, swizzle;
} EncodeIm2colWide;
typedef struct {
  void *state;
  int type;
  const void *data;
  size_t size;
} LinkAdd; /* cuLinkAddData_v2_params */
typedef struct {
  void *state;
  void **image;
  size_t *size;
} LinkComplete;         /* cuLinkComplete_params */

/* Numbers of cupti_driver_cbid.h, which only ever grows. */
enum {
  MODULE_LOAD = 18,
  MODULE_LOAD_DATA = 19,
  MODULE_LOAD_DATA_EX = 20,
  MODULE_LOAD_FAT_BINARY = 21,
  MODULE_UNLOAD = 22,
  CTX_DESTROY = 11,
  CTX_DESTROY_V2 = 322,
  LAUNCH = 307,
  LINK_ADD = 363,
  LINK_ADD_V2 = 382,
  LINK_COMPLETE = 365,
  LAUNCH_PTSZ = 442,
  COOPERATIVE = 477,
  COOPERATIVE_PTSZ = 478,
  INSTANTIATE = 513,
  INSTANTIATE_V2 = 578,
  INSTANTIATE_FLAGS = 643,
  INSTANTIATE_PARAMS = 656,
  INSTANTIATE_PARAMS_PTSZ = 657,
  NODE_SET = 538,
  NODE_SET_V2 = 692,
  EXEC_UPDATE = 561,
  EXEC_UPDATE_V2 = 696,
  GRAPH_LAUNCH = 514,
  GRAPH_LAUNCH_PTSZ = 515,
  GRAPH_DESTROY = 516, /* cuGraphExecDestroy */
  LAUNCH_EX = 652,
  LAUNCH_EX_PTSZ = 653,
  LIBRARY_LOAD_DATA = 678,
  LIBRARY_LOAD_FILE = 679,
  LIBRARY_UNLOAD = 680,
  LIBRARY_GET_MODULE = 682,
  KERNEL_GET_FUNCTION = 683,
  ENCODE_TILED = 697,
  ENCODE_IM2COL = 698,
  ENCODE_IM2COL_WIDE = 781,
  REPLACE_ADDRESS = 699
};
static const uint32_t OBSERVED[] = {MODULE_LOAD,
                                    MODULE_LOAD_DATA,
                                    MODULE_LOAD_DATA_EX,
                                    MODULE_LOAD_FAT_BINARY,
                                    MODULE_UNLOAD,
                                    CTX_DESTROY,
                                    CTX_DESTROY_V2,
                                    LAUNCH,
                                    LINK_ADD,
                                    LINK_ADD_V2,
                                    LINK_COMPLETE,
                                    LAUNCH_PTSZ,
                                    COOPERATIVE,
                                    COOPERATIVE_PTSZ,
                                    INSTANTIATE,
                                    INSTANTIATE_V2,
                                    INSTANTIATE_FLAGS,
                                    INSTANTIATE_PARAMS,
                                    INSTANTIATE_PARAMS_PTSZ,
                                    NODE_SET,
                                    NODE_SET_V2,
                                    EXEC_UPDATE,
                                    EXEC_UPDATE_V2,
                                    LAUNCH_EX,
                                    LAUNCH_EX_PTSZ,
                                    LIBRARY_LOAD_DATA,
                                    LIBRARY_LOAD_FILE,
                                    LIBRARY_UNLOAD,
                                    LIBRARY_GET_MODULE,
                                    KERNEL_GET_FUNCTION,
                                    ENCODE_TILED,
                                    ENCODE_IM2COL,
                                    ENCODE_IM2COL_WIDE,
                                    REPLACE_ADDRESS};
/* cuGraphExec*Node*: memcpy, memset, host, child graph, events, semaphores, memory operations, any; and whether one is
   enabled. Their first argument is the executable graph. */
static const uint32_t NODE_CHANGES[] = {562, 563, 564, 586, 595, 596, 624, 625, 650, 672, 714};
static const uint32_t OF_RECORDED_GRAPHS[] = {GRAPH_LAUNCH, GRAPH_LAUNCH_PTSZ, GRAPH_DESTROY};
enum { /* cuda.h */
       PTX_INPUT = 1,                                         /* CU_JIT_INPUT_PTX */
       CLUSTER_DIMENSION = 4,                                 /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
       BUFFER_POINTER = 1,                                    /* CU_LAUNCH_PARAM_BUFFER_POINTER */
       REGISTERS = 4,
       CLUSTER_WIDTH = 11,                     /* CU_FUNC_ATTRIBUTE_* */
       MEMORY_TYPE = 2,
       RANGE_START = 11,
       RANGE_SIZE = 12,
       MAPPED = 13, /* CU_POINTER_ATTRIBUTE_* */
       DEVICE_MEMORY = 2,                                     /* CU_MEMORYTYPE_DEVICE */
       KERNEL_NODE = 0,
       GRAPH_NODE = 4,                       /* CU_GRAPH_NODE_TYPE_* */
       COMPUTE_MAJOR = 75,
       COMPUTE_MINOR = 76,                /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_* */
       NON_BLOCKING = 1,
       PER_THREAD_STREAM = 2,
       RELAXED = 2,  /* CU_STREAM_*, CU_STREAM_CAPTURE_MODE_RELAXED */
       NOT_READY = 600,                                       /* CUDA_ERROR_NOT_READY */
       DRIVER_DOMAIN = 1,
       OTHER_SUBSCRIBER = 39               /* CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_* */
};

#define DRIVER_FUNCTIONS(X)                                                             \
  X(cuFuncGetParamInfo, (void *function, size_t index, size_t *offset, size_t *nbytes)) \
  X(cuKernelGetParamInfo, (void *kernel, size_t index, size_t *offset, size_t *nbytes)) \
  X(cuFuncGetModule, (void **module, void *function))                                   \
  X(cuKernelGetLibrary, (void **library, void *kernel))                                 \
  X(cuFuncGetName, (const char **name, void *function))                                 \
  X(cuKernelGetName, (const char **name, void *kernel))                                 \
  X(cuFuncGetAttribute, (int *value, int attribute, void *function))                    \
  X(cuKernelGetAttribute, (int *value, int attribute, void *kernel, int device))        \
  X(cuPointerGetAttribute, (void *value, int attribute, uint64_t address))              \
  X(cuGraphGetNodes, (void *graph, void **nodes, size_t *count))                        \
  X(cuGraphGetEdges, (void *graph, void **from, void **to, size_t *count))              \
  X(cuGraphNodeGetType, (void *node, int *type))                                        \
  X(cuGraphChildGraphNodeGetGraph, (void *node, void **graph))                          \
  X(cuGraphKernelNodeGetParams_v2, (void *node, KernelNode *parameters))                \
  X(cuGraphKernelNodeGetAttribute, (void *node, int attribute, void *value))            \
  X(cuGraphKernelNodeSetParams_v2, (void *node, const KernelNode *parameters))          \
  X(cuGraphKernelNodeCopyAttributes, (void *to, void *from))                            \
  X(cuGraphNodeFindInClone, (void **found, void *node, void *clone))                    \
  X(cuGraphClone, (void **clone, void *graph))                                          \
  X(cuGraphDestroy, (void *graph))                                                      \
  X(cuGraphExecUpdate_v2, (void *executable, void *graph, void *result))                \
  X(cuKernelGetFunction, (void **function, void *kernel))                               \
  X(cuStreamIsCapturing, (void *stream, int *status))                                   \
  X(cuStreamQuery, (void *stream))                                                      \
  X(cuStreamCreate, (void **stream, unsigned flags))                                    \
  X(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t nbytes, void *stream))       \
  X(cuThreadExchangeStreamCaptureMode, (int *mode))                                     \
  X(cuLibraryLoadData, (void **library, const void *code, int *a, void **b, unsigned c, int *d, void **e, unsigned f)) \
  X(cuLibraryGetKernel, (void **kernel, void *library, const char *name))               \
  X(cuLibraryGetGlobal, (uint64_t *address, size_t *nbytes, void *library, const char *name)) \
  X(cuKernelSetAttribute, (int attribute, int value, void *kernel, int device))         \
  X(cuMemAlloc_v2, (uint64_t *address, size_t nbytes))                                  \
  X(cuMemFree_v2, (uint64_t address))                                                   \
  X(cuMemHostAlloc, (void **place, size_t nbytes, unsigned flags))                      \
  X(cuMemHostGetDevicePointer_v2, (uint64_t *address, void *place, unsigned flags))     \
  X(cuMemFreeHost, (void *place))                                                       \
  X(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t nbytes, void *stream)) \
  X(cuDriverGetVersion, (int *version))                                                 \
  X(cuCtxGetCurrent, (void **context))                                                  \
  X(cuCtxPushCurrent_v2, (void *context))                                               \
  X(cuCtxPopCurrent_v2, (void **context))                                               \
  X(cuCtxGetDevice, (int *device))                                                      \
  X(cuDeviceGetCount, (int *count))                                                     \
  X(cuDeviceGetName, (char *name, int size, int device))                                \
  X(cuDeviceGetAttribute, (int *value, int attribute, int device))

#define DECLARED(name, arguments) int(*name) arguments;
static struct {
  DRIVER_FUNCTIONS(DECLARED)
} cuda;

/* The status of a driver's function, 0 for success; -1 where the driver is too old to have it. */
#define ASK(name, ...) (cuda.name ? cuda.name(__VA_ARGS__) : -1)

static int load_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return 0;
#define FOUND(name, arguments) cuda.name = (int(*) arguments)dlsym(library, #name);
  DRIVER_FUNCTIONS(FOUND)
  return 1;
}
#endif
