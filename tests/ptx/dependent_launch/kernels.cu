// Kernels of a stream that begin before the one before has ended: each right, and wrong with WRONG defined as 1.
// A comment "wrong" marks the line of the finding.
#if WRONG
#define EITHER(right, wrong) wrong
#else
#define EITHER(right, wrong) right
#endif

__device__ void wait_for_earlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ void let_dependents_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ int me() { return blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void load_before_wait(const float *x, float *y) {
    EITHER(wait_for_earlier(), );
    float v = x[me()]; // wrong
    EITHER(, wait_for_earlier());
    y[me()] = 2 * v;
}

extern "C" __global__ void wait_of_idle_warps(const float *x, float *y) {
    if (threadIdx.x >= 32) wait_for_earlier();
    EITHER(__syncthreads(), );
    if (threadIdx.x < 32) {
        float v = x[me()]; // wrong
        EITHER(, __syncthreads());
        y[me()] = 2 * v;
    } else {
        EITHER(, __syncthreads());
    }
}

extern "C" __global__ void wait_of_some_ctas(const float *x, float *y) {
    if (EITHER(true, blockIdx.x < 2)) wait_for_earlier();
    y[me()] = 2 * x[me()]; // wrong
}

extern "C" __global__ void store_before_wait(const float *x, float *y) {
    EITHER(wait_for_earlier(), );
    y[me()] = 0; // wrong
    EITHER(, wait_for_earlier());
    if (x[me()] > 0) y[me()] = x[me()];
}

__device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void tma_producer(const float *x, float *y) {
    __shared__ alignas(128) float tile[32];
    __shared__ unsigned long long full;
    unsigned bar = shared_address(&full);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    if (threadIdx.x == 32) {
        EITHER(wait_for_earlier(), );
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(bar));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" // wrong
                     ::"r"(shared_address(tile)), "l"(__cvta_generic_to_global(x + 32 * blockIdx.x)), "r"(bar) : "memory");
    }
    if (threadIdx.x < 32) {
        EITHER(, wait_for_earlier());
        asm volatile("{.reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;}" ::"r"(bar)
                     : "memory");
        y[32 * blockIdx.x + threadIdx.x] = 2 * tile[threadIdx.x];
    }
}

extern "C" __global__ void weights_first(const float *weights, const float *x, float *y) {
    float w = weights[threadIdx.x];
    EITHER(wait_for_earlier(), );
    float v = x[me()]; // wrong
    EITHER(, wait_for_earlier());
    y[me()] = w * v + x[me()];
}

extern "C" __global__ void store_of_one_cta(const float *x, float *y) {
    EITHER(wait_for_earlier(), );
    if (blockIdx.x == 3) y[me()] = 0; // wrong
    EITHER(, wait_for_earlier());
    if (blockIdx.x != 3) y[me()] = x[me()];
}

// Of sequences: what one kernel stores another one loads.
extern "C" __global__ void primary(float *x) {
    EITHER(, let_dependents_begin());
    x[me()] = 1; // wrong
    __syncthreads();
    EITHER(let_dependents_begin(), );
}

extern "C" __global__ void without_wait(const float *x, float *y) {
    y[me()] = 2 * x[me()]; // wrong
}

extern "C" __global__ void with_wait(const float *x, float *y) {
    wait_for_earlier();
    y[me()] = 2 * x[me()]; // wrong
}

extern "C" __global__ void early_exit(const float *x, float *y, int n) {
    let_dependents_begin();
    EITHER(wait_for_earlier(), );
    if (me() >= n) return;
    wait_for_earlier();
    y[me()] = x[me()];
}

struct alignas(64) Map { char bytes[128]; };
extern "C" __global__ void map_first(const __grid_constant__ Map map, const float *x, float *y) {
    if (threadIdx.x == 0) asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
    wait_for_earlier();
    y[me()] = 2 * x[me()];
}

extern "C" __global__ void wait_of_one_thread(const float *x, float *y) {
    if (threadIdx.x == 0) wait_for_earlier();
    EITHER(__syncthreads(), );
    y[me()] = 2 * x[me()]; // wrong
}

extern "C" __global__ void in_place(float *x, float *y) {
    EITHER(wait_for_earlier(), );
    float v = x[me()]; // wrong
    EITHER(, wait_for_earlier());
    x[me()] = v + y[me()];
}
