// A program that is not Python: two launches through the CUDA runtime, one of them with a cluster.
//   nvcc -gencode arch=compute_90a,code=[compute_90a,sm_90a] plain.cu -o plain && pipesim launches --inject -- ./plain
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

__device__ inline uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// One warp hands words to another one, through two mbarriers.
__global__ void __launch_bounds__(64) handoff(const int* in, int* out, int steps) {
    __shared__ alignas(8) uint64_t full, empty;
    __shared__ int tile[32];
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(shared_address(&full)));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(shared_address(&empty)));
    }
    __syncthreads();
    const bool producer = threadIdx.x < 32;
    const int lane = threadIdx.x & 31;
    for (int i = 0; i < steps; ++i) {
        asm volatile(
            "{\n.reg .pred done;\nagain:\n"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(
                shared_address(producer ? &empty : &full)),
            "r"(producer ? (i & 1) ^ 1 : i & 1)
            : "memory");
        if (producer) {
            tile[lane] = in[32 * i + lane];
        } else {
            out[32 * i + lane] = 2 * tile[lane];
        }
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(producer ? &full : &empty))
                     : "memory");
    }
}

// A cluster of two waits for each other.
__global__ void __cluster_dims__(2, 1, 1) together(int* out) {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x == 0) out[blockIdx.x] = blockIdx.x + 1;
}

int main() {
    constexpr int kSteps = 6;
    int *in, *out, host[32 * kSteps], sum = 0;
    cudaMalloc(&in, sizeof(host));
    cudaMalloc(&out, sizeof(host));
    for (int i = 0; i < 32 * kSteps; ++i) host[i] = i;
    cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice);
    for (int n = 0; n < 3; ++n) handoff<<<1, 64>>>(in, out, kSteps);
    cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
    for (int value : host) sum += value;
    together<<<4, 64>>>(out);
    cudaMemcpy(host, out, 4 * sizeof(int), cudaMemcpyDeviceToHost);
    printf("%d %d: %s\n", sum, host[3], cudaGetErrorString(cudaDeviceSynchronize()));
    return sum == 36672 && host[3] == 4 ? 0 : 1;
}
