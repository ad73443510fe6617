// Launches the one kernel of a cubin, with pointers to tiles and results, and 64 tiles: see cute_hangs.py.
#include <cuda.h>
#include <cstdio>
#include <cstdlib>

static void must(CUresult result, const char *what) {
    const char *text = "";
    if (result != CUDA_SUCCESS) cuGetErrorString(result, &text), printf("%s: %s\n", what, text), fflush(stdout), exit(1);
}

int main(int, char **argv) {
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr x, y;
    int tiles = 64;
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, 0), "context");
    must(cuCtxSetCurrent(context), "context");
    must(cuModuleLoad(&module, argv[1]), "cuModuleLoad");
    must(cuModuleEnumerateFunctions(&kernel, 1, module), "functions");
    must(cuMemAlloc(&x, 1 << 16), "memory");
    must(cuMemAlloc(&y, 1 << 16), "memory");
    must(cuMemsetD8(x, 0, 1 << 16), "memory");
    void *parameters[] = {&x, &y, &tiles};
    must(cuLaunchKernel(kernel, 1, 1, 1, 160, 1, 1, 4096, nullptr, parameters, nullptr), "launch");
    puts("launched");
    fflush(stdout);
    must(cuCtxSynchronize(), "hang");
}
