// The mean of five neighbours, through a tile with two words more at each side.
// launch: grid 4, block 128, n = 500; wrong: threads beyond the end return before the barrier that others wait at
extern "C" __global__ void stencil(const float* x, float* y, int n) {
    __shared__ float tile[132];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
#if WRONG
    if (i >= n) return;
#endif
    tile[t + 2] = i < n ? x[i] : 0.0f;
    if (t < 2) {
        tile[t] = i >= 2 ? x[i - 2] : 0.0f;
        tile[t + 130] = i + 128 < n ? x[i + 128] : 0.0f;
    }
    __syncthreads();
    if (i < n) y[i] = (tile[t] + tile[t + 1] + tile[t + 2] + tile[t + 3] + tile[t + 4]) / 5;
}
