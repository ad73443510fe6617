// A CUDA runtime without a GPU: kernels do not run, and each launch is noted (noted.hpp).
//
// Linked into a program in place of libcudart. PIPESIM_SIZES names a file of lines "kernel bytes bytes ...", the sizes
// of each kernel's parameters, from its PTX.
#include <cuda_runtime.h>

#include <fstream>
#include <sstream>

#include "noted.hpp"

namespace {

std::map<const void *, std::string> &kernels() {  // filled before any constructor here has run
    static auto *found = new std::map<const void *, std::string>;
    return *found;
}
std::vector<cudaLaunchConfig_t> calls;

std::vector<size_t> sizes_of(const std::string &kernel) {
    std::ifstream file(getenv("PIPESIM_SIZES") ? getenv("PIPESIM_SIZES") : "");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string name;
        words >> name;
        if (name != kernel) continue;
        std::vector<size_t> found;
        for (size_t size; words >> size;) found.push_back(size);
        return found;
    }
    return {};
}

void noted(const std::string &name, dim3 grid, dim3 block, dim3 cluster, size_t shared, void **args) {
    std::vector<size_t> sizes = sizes_of(name);
    if (sizes.empty()) return;
    note(name, "", {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, {cluster.x, cluster.y, cluster.z}, shared, sizes,
         args);
}

dim3 cluster_of(const cudaLaunchConfig_t &config) {
    for (unsigned i = 0; i < config.numAttrs; ++i)
        if (config.attrs[i].id == cudaLaunchAttributeClusterDimension) {
            auto size = config.attrs[i].val.clusterDim;
            return dim3(size.x, size.y, size.z);
        }
    return dim3(1, 1, 1);
}

}  // namespace

extern "C" {

void **__cudaRegisterFatBinary(void *) { static void *handle; return &handle; }
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}
char __cudaInitModule(void **) { return 1; }
void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, uint3 *, uint3 *, dim3 *, dim3 *,
                            int *) {
    kernels()[host] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared;
    calls.push_back(config);
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *) {
    *grid = calls.back().gridDim, *block = calls.back().blockDim, *shared = calls.back().dynamicSmemBytes;
    calls.pop_back();
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void *>(host));
    return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t) {
    noted(kernels()[host], grid, block, dim3(1, 1, 1), shared, args);
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s) {
    return cudaLaunchKernel(kernel, grid, block, args, shared, s);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *host, void **args) {
    noted(kernels()[host], config->gridDim, config->blockDim, cluster_of(*config), config->dynamicSmemBytes, args);
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **to, size_t size) {
    return *to = allocated(size), cudaSuccess;
}
cudaError_t cudaFree(void *at) {
    return released(at), cudaSuccess;
}
cudaError_t cudaMallocHost(void **to, size_t size) { return *to = malloc(size), cudaSuccess; }
cudaError_t cudaFreeHost(void *at) { return free(at), cudaSuccess; }
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind) {
    if (to && from) memcpy(to, from, size);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpy(to, from, size, kind);
}
cudaError_t cudaMemset(void *to, int value, size_t size) { return memset(to, value, size), cudaSuccess; }
cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t) { return cudaMemset(to, value, size); }

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    switch (attribute) {
        case cudaDevAttrMultiProcessorCount: *value = number("PIPESIM_SMS", 132); break;
        case cudaDevAttrComputeCapabilityMajor: *value = number("PIPESIM_CC", 90) / 10; break;
        case cudaDevAttrComputeCapabilityMinor: *value = number("PIPESIM_CC", 90) % 10; break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 232448; break;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 233472; break;
        case cudaDevAttrWarpSize: *value = 32; break;
        case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
        default: *value = 1;
    }
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *to, int) {
    memset(to, 0, sizeof *to);
    strcpy(to->name, "none");
    to->major = number("PIPESIM_CC", 90) / 10, to->minor = number("PIPESIM_CC", 90) % 10;
    to->multiProcessorCount = number("PIPESIM_SMS", 132);
    to->sharedMemPerBlock = 49152, to->sharedMemPerBlockOptin = 232448, to->sharedMemPerMultiprocessor = 233472;
    to->totalGlobalMem = 1ull << 36, to->warpSize = 32, to->maxThreadsPerBlock = 1024, to->l2CacheSize = 50 << 20;
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *to, const void *) {
    memset(to, 0, sizeof *to);
    to->maxThreadsPerBlock = 1024;
    return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **to, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *result) {
    std::map<std::string, void *> known = {{"cuTensorMapEncodeTiled", (void *)cuTensorMapEncodeTiled},
                                           {"cuTensorMapEncodeIm2col", (void *)cuTensorMapEncodeIm2col},
                                           {"cuTensorMapReplaceAddress", (void *)cuTensorMapReplaceAddress},
                                           {"cuGetErrorString", (void *)cuGetErrorString}};
    *to = known[name];
    if (result) *result = *to ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPoint(const char *name, void **to, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult *result) {
    return cudaGetDriverEntryPointByVersion(name, to, 13000, flags, result);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *, int, size_t) { return *n = 1, cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *, int, size_t, unsigned) {
    return *n = 1, cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveClusters(int *n, const void *, const cudaLaunchConfig_t *config) {
    dim3 size = cluster_of(*config);
    *n = number("PIPESIM_SMS", 132) / (size.x * size.y * size.z);
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) { return *event = nullptr, cudaSuccess; }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) { return *ms = 1, cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t *stream) { return *stream = nullptr, cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) { return *stream = nullptr, cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *count) { return *count = 1, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status) {
    return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t) { return "none"; }
const char *cudaGetErrorName(cudaError_t) { return "none"; }
#define DOES_NOTHING(name, ...) cudaError_t name(__VA_ARGS__) { return cudaSuccess; }
DOES_NOTHING(cudaSetDevice, int)
DOES_NOTHING(cudaGetLastError)
DOES_NOTHING(cudaPeekAtLastError)
DOES_NOTHING(cudaDeviceSynchronize)
DOES_NOTHING(cudaStreamSynchronize, cudaStream_t)
DOES_NOTHING(cudaStreamDestroy, cudaStream_t)
DOES_NOTHING(cudaStreamWaitEvent, cudaStream_t, cudaEvent_t, unsigned)
DOES_NOTHING(cudaEventDestroy, cudaEvent_t)
DOES_NOTHING(cudaEventRecord, cudaEvent_t, cudaStream_t)
DOES_NOTHING(cudaEventSynchronize, cudaEvent_t)
DOES_NOTHING(cudaFuncSetAttribute, const void *, cudaFuncAttribute, int)
DOES_NOTHING(cudaDeviceSetLimit, cudaLimit, size_t)
DOES_NOTHING(cudaProfilerStart)
DOES_NOTHING(cudaProfilerStop)
}
