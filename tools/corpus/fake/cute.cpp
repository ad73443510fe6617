// What host code of the CuTe DSL calls, without a GPU, for LD_PRELOAD. Kernels do not run, and each launch is noted
// (noted.hpp), the sizes of its parameters read from PIPESIM_SIZES, as for cudart.cpp.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#pragma GCC visibility push(hidden)  // other libraries of the process keep their CUDA runtime
#include "cudart.cpp"
#pragma GCC visibility pop

namespace {

std::string name_of(const void *kernel) { return static_cast<const char *>(kernel); }

}  // namespace

#define SEEN __attribute__((visibility("default")))  // although it has arguments of hidden types
extern "C" {

int _cudaGetDeviceCount(int *n) { return *n = 1, 0; }
int _cudaGetDevice(int *device) { return *device = 0, 0; }
int _cudaSetDevice(int) { return 0; }
int _cuDeviceGet(int *device, int) { return *device = 0, 0; }
SEEN int _cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    return cudaDeviceGetAttribute(value, attribute, device);
}
int _cudaLibraryLoadData(void **library, const void *, void *, void *, unsigned, void *, void *, unsigned) {
    static char loaded;
    return *library = &loaded, 0;
}
int _cudaLibraryUnload(void *) { return 0; }
int _cudaLibraryGetKernel(void **kernel, void *, const char *name) { return *kernel = strdup(name), 0; }
int _cuKernelGetAttribute(int *value, int, void *, int) { return *value = 1, 0; }
int _cudaFuncSetAttribute(const void *, int, int) { return 0; }
int _cudaKernelSetAttributeForDevice(void *, int, int, int) { return 0; }
SEEN int _cuTensorMapEncodeTiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *at, const cuuint64_t *dims,
                            const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,
                            CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                            CUtensorMapFloatOOBfill fill) {
    return cuTensorMapEncodeTiled(to, type, rank, at, dims, strides, box, steps, interleave, swizzle, promotion, fill);
}
SEEN int _cudaLaunchKernelEx(const cudaLaunchConfig_t *config, const void *kernel, void **args) {
    noted(name_of(kernel), config->gridDim, config->blockDim, cluster_of(*config), config->dynamicSmemBytes, args);
    return 0;
}
}
