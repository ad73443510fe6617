// Warp 0 hands tiles to warp 1 over a ring of two. With -DHANGS the consumer keeps one tile, and the producer waits for
// ever: what a recording with a deadline has to explain.
using uint32_t = unsigned int;

__device__ inline uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ inline void wait(const unsigned long long* barrier, uint32_t parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}
__device__ inline void arrive(const unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

extern "C" __global__ void __launch_bounds__(64) ring(const float* in, float* out, int items) {
    __shared__ alignas(8) unsigned long long full[2], empty[2];
    __shared__ float tile[2][32];
    const int lane = threadIdx.x & 31;
    if (threadIdx.x < 2) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(shared_address(&full[threadIdx.x])));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(shared_address(&empty[threadIdx.x])));
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int i = 0; i < items; ++i) {
            wait(&empty[i & 1], ((i >> 1) & 1) ^ 1);
            tile[i & 1][lane] = in[(blockIdx.x * items + i) * 32 + lane];
            arrive(&full[i & 1]);
        }
    } else {
        float sum = 0;
        for (int i = 0; i < items; ++i) {
            wait(&full[i & 1], (i >> 1) & 1);
            sum = sum * 0.75f + tile[i & 1][lane];
#ifdef HANGS
            if (i == items - 4) continue;
#endif
            arrive(&empty[i & 1]);
        }
        out[blockIdx.x * 32 + lane] = sum;
    }
}
