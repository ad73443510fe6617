// Each row less its mean: the sum by shuffles in a warp, then through a word for each warp.
// launch: grid 4, block 256, n = 600; wrong: the warps but the first leave before the last barrier
extern "C" __global__ void layernorm(const float* x, float* y, int n) {
    __shared__ float word[8];
    int t = threadIdx.x, warp = t / 32, lane = t % 32;
    x += blockIdx.x * n, y += blockIdx.x * n;
    float sum = 0.0f;
    for (int i = t; i < n; i += 256) sum += x[i];
    for (int far = 16; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, far);
    if (lane == 0) word[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        float all = lane < 8 ? word[lane] : 0.0f;
        for (int far = 4; far > 0; far /= 2) all += __shfl_xor_sync(0xffffffffu, all, far);
        if (lane == 0) word[0] = all / n;
#if WRONG
        __syncthreads();
#endif
    }
#if !WRONG
    __syncthreads();
#endif
    for (int i = t; i < n; i += 256) y[i] = x[i] - word[0];
}
