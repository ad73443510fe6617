// The sum of 256 numbers of each block, by a tree in shared memory.
// launch: grid 4, block 256, n = 1000; wrong: no barrier between the steps of the tree
extern "C" __global__ void reduce(const float* x, float* y, int n) {
    __shared__ float part[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
#if !WRONG
        __syncthreads();
#endif
    }
    if (t == 0) y[blockIdx.x] = part[0];
}
