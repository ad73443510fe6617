/* What the fakes and the test's program know of CUDA: declared from CUDA's documentation, apart from what pipesim's own
   code declares, so that a mistake in one of the two shows. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H
#include <stddef.h>
#include <stdint.h>

typedef int CUresult; /* 0 success, 1 invalid value, 400 invalid handle, 600 not ready */
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct FakeContext *CUcontext;
typedef struct FakeModule *CUmodule;
typedef struct FakeModule *CUlibrary;
typedef struct FakeFunction *CUfunction;
typedef struct FakeFunction *CUkernel;
typedef struct FakeStream *CUstream;
typedef struct FakeGraph *CUgraph;
typedef struct FakeNode *CUgraphNode;
typedef struct FakeLink *CUlinkState;
typedef struct {
  uint64_t opaque[16];
} __attribute__((aligned(64))) CUtensorMap;
typedef struct {
  unsigned id;
  char pad[4];
  union {
    char pad[64];
    struct {
      unsigned x, y, z;
    } clusterDim;
  } value;
} CUlaunchAttribute;
typedef struct {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
} CUlaunchConfig;
typedef struct {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams, **extra;
  CUkernel kern;
  CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
  int callbackSite;
  const char *functionName;
  const void *functionParams;
  void *functionReturnValue;
  const char *symbolName;
  CUcontext context;
  uint32_t contextUid;
  uint64_t *correlationData;
  uint32_t correlationId;
} CUpti_CallbackData;
typedef void (*CUpti_CallbackFunc)(void *userdata, int domain, uint32_t cbid, const void *cbdata);

/* Of the fake driver alone. */
void fakeSubscribe(CUpti_CallbackFunc callback, void *userdata);
void fakeEnable(uint32_t cbid, int enable);
void fakeBusy(CUstream stream, int busy);

CUresult cuInit(unsigned flags);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t nbytes);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuModuleLoad(CUmodule *module, const char *path);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values);
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *a, void **b, unsigned c, int *d, void **e,
                           unsigned f);
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *a, void **b, unsigned c, int *d, void **e,
                               unsigned f);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *state);
CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name, unsigned count,
                          int *options, void **values);
CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size);
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int element, uint32_t rank, void *address, const uint64_t *dims,
                                const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                                int swizzle, int l2, int fill);
CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, int element, uint32_t rank, void *address, const uint64_t *dims,
                                 const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                                 uint32_t pixels, const uint32_t *steps, int interleave, int swizzle, int l2, int fill);
CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *map, int element, uint32_t rank, void *address, const uint64_t *dims,
                                     const uint64_t *strides, int lower, int upper, uint32_t channels, uint32_t pixels,
                                     const uint32_t *steps, int interleave, int mode, int swizzle, int l2, int fill);
CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void **params, void **extra);
CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                             unsigned shared, CUstream stream, void **params, void **extra);
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream stream, void **params);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra);
CUresult cuGraphCreate(CUgraph *graph, unsigned flags);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *params);
CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                  CUgraph child);
CUresult cuGraphInstantiateWithFlags(void **executable, CUgraph graph, unsigned long long flags);
CUresult cuGraphLaunch(void *executable, CUstream stream);
CUresult cuGraphExecUpdate_v2(void *executable, CUgraph graph, void *result);
CUresult cuGraphExecKernelNodeSetParams_v2(void *executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult cuGraphNodeSetEnabled(void *executable, CUgraphNode node, unsigned enabled);
CUresult cuGraphExecDestroy(void *executable);
#endif
