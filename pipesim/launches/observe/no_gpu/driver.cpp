// A CUDA driver without a GPU: libcuda.so.1 for programs that load it by name.
//
// Modules must be PTX text; each is written to PIPESIM_PTX/N.ptx. Kernels do not run, and each launch is noted
// (noted.hpp), its parameters' sizes read from the PTX.
#include <sys/mman.h>

#include "noted.hpp"

#include <regex>

namespace {

struct Kernel {
    std::string name, file;
    std::vector<size_t> sizes, offsets;
};
struct Module {
    std::string text, file;
};
int modules = 0;

// The bytes of ".param .align 64 .b8 x[128]" and of ".param .u64 x".
Kernel kernel_of(const Module &module, const char *name) {
    Kernel found{name, module.file, {}, {}};
    const std::string mark = std::string(".entry ") + name + "(";
    size_t at = module.text.find(mark);
    if (at == std::string::npos) return found;
    std::string list = module.text.substr(at, module.text.find(')', at) - at);
    std::regex param(R"(\.param\s+(?:\.align\s+(\d+)\s+)?\.[a-z]+(\d+)[^,\[]*(?:\[(\d+)\])?)");
    size_t offset = 0;
    for (std::sregex_iterator each(list.begin(), list.end(), param), end; each != end; ++each) {
        size_t unit = std::stoul((*each)[2]) / 8, size = (*each)[3].matched ? unit * std::stoul((*each)[3]) : unit;
        size_t align = (*each)[1].matched ? std::stoul((*each)[1]) : unit;
        offset = (offset + align - 1) / align * align;
        found.sizes.push_back(size);
        found.offsets.push_back(offset);
        offset += size;
    }
    return found;
}

Size cluster_of(const CUlaunchConfig *config) {
    for (unsigned i = 0; i < config->numAttrs; ++i)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            auto size = config->attrs[i].value.clusterDim;
            return {size.x, size.y, size.z};
        }
    return {1, 1, 1};
}

}  // namespace

#define OK return CUDA_SUCCESS
#define DOES_NOTHING(name, ...) CUresult name(__VA_ARGS__) { OK; }
extern "C" {

CUresult cuModuleLoadDataEx(CUmodule *to, const void *image, unsigned, CUjit_option *, void **) {
    const char *folder = getenv("PIPESIM_PTX") ? getenv("PIPESIM_PTX") : getenv("PIPESIM_LAUNCHES_SPOOL");
    const std::string before = getenv("PIPESIM_PTX") ? "" : std::to_string(getpid()) + "-";  // of one process of several
    auto *made = new Module{static_cast<const char *>(image), before + std::to_string(modules++) + ".ptx"};
    if (folder) {
        FILE *out = fopen((std::string(folder) + "/" + made->file).c_str(), "w");
        fwrite(made->text.data(), 1, made->text.size(), out);
        fclose(out);
    }
    *to = reinterpret_cast<CUmodule>(made);
    OK;
}
CUresult cuModuleLoadData(CUmodule *to, const void *image) { return cuModuleLoadDataEx(to, image, 0, nullptr, nullptr); }
CUresult cuModuleGetFunction(CUfunction *to, CUmodule module, const char *name) {
    *to = reinterpret_cast<CUfunction>(new Kernel(kernel_of(*reinterpret_cast<Module *>(module), name)));
    OK;
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
    auto *kernel = reinterpret_cast<Kernel *>(function);
    if (index >= kernel->sizes.size()) return CUDA_ERROR_INVALID_VALUE;
    if (offset) *offset = kernel->offsets[index];
    if (size) *size = kernel->sizes[index];
    OK;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **args, void **) {
    auto *kernel = reinterpret_cast<Kernel *>(function);
    note(kernel->name, kernel->file, {config->gridDimX, config->gridDimY, config->gridDimZ},
         {config->blockDimX, config->blockDimY, config->blockDimZ}, cluster_of(config), config->sharedMemBytes,
         kernel->sizes, args);
    OK;
}
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream, void **args, void **) {
    auto *kernel = reinterpret_cast<Kernel *>(function);
    note(kernel->name, kernel->file, {gx, gy, gz}, {bx, by, bz}, {1, 1, 1}, shared, kernel->sizes, args);
    OK;
}

CUresult cuMemAlloc_v2(CUdeviceptr *to, size_t size) { return *to = reinterpret_cast<CUdeviceptr>(allocated(size)), CUDA_SUCCESS; }
CUresult cuMemAllocAsync(CUdeviceptr *to, size_t size, CUstream) { return cuMemAlloc_v2(to, size); }
CUresult cuMemFree_v2(CUdeviceptr at) { return released(reinterpret_cast<void *>(at)), CUDA_SUCCESS; }
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream) { return cuMemFree_v2(at); }
CUresult cuMemAllocHost_v2(void **to, size_t size) { return *to = malloc(size + 1), CUDA_SUCCESS; }
CUresult cuMemHostAlloc(void **to, size_t size, unsigned) { return cuMemAllocHost_v2(to, size); }
CUresult cuMemFreeHost(void *at) { return free(at), CUDA_SUCCESS; }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *to, void *at, unsigned) {
    return *to = reinterpret_cast<CUdeviceptr>(at), CUDA_SUCCESS;
}
CUresult copied(CUdeviceptr to, const void *from, size_t size) {
    return memcpy(reinterpret_cast<void *>(to), from, size), CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) { return copied(to, from, size); }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream) { return copied(to, from, size); }
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) { return memcpy(to, reinterpret_cast<void *>(from), size), CUDA_SUCCESS; }
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream) { return cuMemcpyDtoH_v2(to, from, size); }
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) { return copied(to, reinterpret_cast<void *>(from), size); }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream) { return cuMemcpyDtoD_v2(to, from, size); }
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) { return cuMemsetD32Async(to, value, count, nullptr); }
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) { return cuMemsetD16Async(to, value, count, nullptr); }
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) { return cuMemsetD8Async(to, value, count, nullptr); }
CUresult cuMemGetAllocationGranularity(size_t *to, const CUmemAllocationProp *, CUmemAllocationGranularity_flags) {
    return *to = 2 << 20, CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr *to, size_t size, size_t, CUdeviceptr, unsigned long long) {
    void *at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory()[static_cast<char *>(at)] = size;
    return *to = reinterpret_cast<CUdeviceptr>(at), CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle *to, size_t, const CUmemAllocationProp *, unsigned long long) {
    return *to = 1, CUDA_SUCCESS;
}
CUresult cuMemGetInfo_v2(size_t *free, size_t *total) { return *free = *total = 1ull << 37, CUDA_SUCCESS; }
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr at) { return *base = at, *size = 0, CUDA_SUCCESS; }

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = number("PIPESIM_SMS", 132); break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = number("PIPESIM_CC", 90) / 10; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = number("PIPESIM_CC", 90) % 10; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 232448; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 233472; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: *value = 65536; break;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *value = 65536; break;
        default: *value = 1;
    }
    OK;
}
CUresult cuDeviceGetName(char *to, int size, CUdevice) {
    const bool hopper = number("PIPESIM_CC", 90) == 90;
    return strncpy(to, hopper ? "NVIDIA H100 80GB HBM3" : "NVIDIA B200", size), CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) { return *count = 1, CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int) { return *device = 0, CUDA_SUCCESS; }
CUresult cuDeviceGetUuid_v2(CUuuid *to, CUdevice) { return memset(to, 1, sizeof *to), CUDA_SUCCESS; }
CUresult cuDeviceTotalMem_v2(size_t *to, CUdevice) { return *to = 1ull << 37, CUDA_SUCCESS; }
CUresult cuDeviceCanAccessPeer(int *can, CUdevice, CUdevice) { return *can = 0, CUDA_SUCCESS; }
CUresult cuDeviceGetMemPool(CUmemoryPool *to, CUdevice) { return *to = nullptr, CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *version) { return *version = 13000, CUDA_SUCCESS; }
static CUcontext context() { return reinterpret_cast<CUcontext>(&modules); }
CUresult cuCtxCreate_v2(CUcontext *to, unsigned, CUdevice) { return *to = context(), CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *to, CUdevice) { return *to = context(), CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *to) { return *to = context(), CUDA_SUCCESS; }
CUresult cuCtxPopCurrent_v2(CUcontext *to) { if (to) *to = context(); OK; }
CUresult cuCtxGetStreamPriorityRange(int *low, int *high) { return *low = *high = 0, CUDA_SUCCESS; }
static CUstream stream() { return reinterpret_cast<CUstream>(&modules); }
CUresult cuStreamCreate(CUstream *to, unsigned) { return *to = stream(), CUDA_SUCCESS; }
CUresult cuStreamCreateWithPriority(CUstream *to, unsigned, int) { return *to = stream(), CUDA_SUCCESS; }
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus *to) { return *to = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS; }
CUresult cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus *to, cuuint64_t *, CUgraph *, const CUgraphNode **, size_t *) {
    return *to = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}
CUresult cuLaunchHostFunc(CUstream, CUhostFn function, void *data) { return function(data), CUDA_SUCCESS; }
CUresult cuEventCreate(CUevent *to, unsigned) { return *to = reinterpret_cast<CUevent>(&modules), CUDA_SUCCESS; }
CUresult cuEventElapsedTime(float *ms, CUevent, CUevent) { return *ms = 1, CUDA_SUCCESS; }
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute, CUfunction) { return *value = 1, CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction, int, size_t) { return *n = 1, CUDA_SUCCESS; }
CUresult cuModuleGetGlobal_v2(CUdeviceptr *to, size_t *size, CUmodule, const char *) {
    if (to) *to = reinterpret_cast<CUdeviceptr>(allocated(4096));
    if (size) *size = 4096;
    OK;
}
CUresult cuPointerGetAttributes(unsigned, CUpointer_attribute *, void **, CUdeviceptr) { OK; }
DOES_NOTHING(cuInit, unsigned)
DOES_NOTHING(cuCtxDestroy_v2, CUcontext)
DOES_NOTHING(cuCtxSetCurrent, CUcontext)
DOES_NOTHING(cuCtxPushCurrent_v2, CUcontext)
DOES_NOTHING(cuCtxSynchronize)
DOES_NOTHING(cuCtxEnablePeerAccess, CUcontext, unsigned)
DOES_NOTHING(cuDevicePrimaryCtxRelease_v2, CUdevice)
DOES_NOTHING(cuMemPoolTrimTo, CUmemoryPool, size_t)
DOES_NOTHING(cuMemHostRegister_v2, void *, size_t, unsigned)
DOES_NOTHING(cuMemHostUnregister, void *)
DOES_NOTHING(cuModuleUnload, CUmodule)
DOES_NOTHING(cuFuncSetAttribute, CUfunction, CUfunction_attribute, int)
DOES_NOTHING(cuStreamDestroy_v2, CUstream)
DOES_NOTHING(cuStreamSynchronize, CUstream)
DOES_NOTHING(cuStreamWaitEvent, CUstream, CUevent, unsigned)
DOES_NOTHING(cuEventDestroy_v2, CUevent)
DOES_NOTHING(cuEventRecord, CUevent, CUstream)
DOES_NOTHING(cuEventQuery, CUevent)
DOES_NOTHING(cuEventSynchronize, CUevent)
DOES_NOTHING(cuPointerSetAttribute, const void *, CUpointer_attribute, CUdeviceptr)
}
