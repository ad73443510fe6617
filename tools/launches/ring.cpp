// A C++ program that launches the kernel of ring.cu as it is and with records in it, with pipesim_record.h:
// ring PLAIN.cubin RECORDED.cubin INITIAL.buffer OUT.records. It prints whether both have computed the same.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "pipesim_record.h"

enum { CTAS = 8, ITEMS = 24 };

static void require(CUresult status, const char* what) {
    if (status == CUDA_SUCCESS) return;
    std::printf("%s: error %d\n", what, static_cast<int>(status));
    std::exit(3);
}
static CUfunction load(const char* path, CUmodule* module) {
    CUfunction function;
    require(cuModuleLoad(module, path), path);
    require(cuModuleGetFunction(&function, *module, "ring"), "ring");
    return function;
}

int main(int, char** argv) {
    CUdevice device;
    CUcontext context;
    CUdeviceptr in, out;
    CUmodule plain_module, module;
    CUstream stream;
    PipesimRecording recording;
    std::vector<float> given(CTAS * ITEMS * 32), first(CTAS * 32), second(CTAS * 32);
    for (size_t i = 0; i < given.size(); ++i) given[i] = static_cast<float>((i * 2654435761u >> 8) & 0xffff) / 65536.0f;
    require(cuInit(0), "cuInit");
    require(cuDeviceGet(&device, 0), "cuDeviceGet");
    require(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    require(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    require(cuMemAlloc(&in, given.size() * 4), "cuMemAlloc");
    require(cuMemAlloc(&out, first.size() * 4), "cuMemAlloc");
    require(cuMemcpyHtoD(in, given.data(), given.size() * 4), "cuMemcpyHtoD");
    CUfunction plain = load(argv[1], &plain_module), recorded = load(argv[2], &module);
    int items = ITEMS;
    void* values[] = {&in, &out, &items};
    require(cuLaunchKernel(plain, CTAS, 1, 1, 64, 1, 1, 0, stream, values, nullptr), "the launch");
    require(cuStreamSynchronize(stream), "the kernel");
    require(cuMemcpyDtoH(first.data(), out, first.size() * 4), "cuMemcpyDtoH");
    require(cuMemsetD8(out, 0, first.size() * 4), "cuMemsetD8");
    if (pipesim_open(&recording, argv[3])) return 4;
    require(pipesim_begin(&recording, module, stream), "pipesim_begin");
    require(cuLaunchKernel(recorded, CTAS, 1, 1, 64, 1, 1, 0, stream, values, nullptr), "the recorded launch");
    require(pipesim_end(&recording, stream, 5.0), "the recorded kernel");
    require(cuMemcpyDtoH(second.data(), out, second.size() * 4), "cuMemcpyDtoH");
    if (pipesim_write(&recording, argv[4])) return 5;
    pipesim_close(&recording);
    std::printf("%s\n", memcmp(first.data(), second.data(), first.size() * 4) ? "different" : "equal");
    return 0;
}
