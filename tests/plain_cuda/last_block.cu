// The sum of all blocks: each stores its own, and the last one, by a counter in global memory, adds them up.
// launch: grid 2, block 128, n = 250; wrong: no __threadfence between the store and the counter
extern "C" __global__ void last_block(const float* x, float* parts, float* y, unsigned* counter, int n) {
    __shared__ float word[128];
    __shared__ bool last;
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    word[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) word[t] += word[t + half];
        __syncthreads();
    }
    if (t == 0) {
        parts[blockIdx.x] = word[0];
#if !WRONG
        __threadfence();
#endif
        last = atomicAdd(counter, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && t == 0) {
        float sum = 0.0f;
        for (int block = 0; block < gridDim.x; ++block) sum += __ldcg(&parts[block]);
        *y = sum;
    }
}
