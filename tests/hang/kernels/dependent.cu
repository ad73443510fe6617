// Two kernels, of which the second begins while the first runs (programmatic dependent launch). The first waits until the
// second says by a flag that it has loaded its weights; but the second waits for the end of the first before it says so.
#include "hang.cuh"

__global__ void __launch_bounds__(32) earlier(float *y, unsigned *ready) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    unsigned seen = 0;
    if (threadIdx.x == 0)
        while (seen < gridDim.x) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(ready) : "memory");
    __syncwarp();
    y[blockIdx.x * 32 + threadIdx.x] = 2;
}

__global__ void __launch_bounds__(32) dependent(const float *x, float *y, unsigned *ready) {
    const float weight = x[threadIdx.x] + 3;
    if (!RIGHT) asm volatile("griddepcontrol.wait;" ::: "memory");
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(ready) : "memory");
    if (RIGHT) asm volatile("griddepcontrol.wait;" ::: "memory");
    y[blockIdx.x * 32 + threadIdx.x] *= weight;
}

void launch(const float *x, float *y, unsigned *words) {
    cudaFuncAttributes loaded;  // a kernel that is not loaded yet waits for those that run
    cudaFuncGetAttributes(&loaded, dependent);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    earlier<<<2, 32, 0, stream>>>(y, words + 2);
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = 2, config.blockDim = 32, config.stream = stream, config.attrs = &attribute, config.numAttrs = 1;
    cudaLaunchKernelEx(&config, dependent, x, y, words + 2);
}

bool is_right(const float *y) { return y[0] == 6 && y[63] == 6; }
