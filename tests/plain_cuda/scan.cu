// The running sums of 256 numbers of each block, each step into the other half of shared memory.
// launch: grid 4, block 256, n = 1024; wrong: the steps use one half, so that a sum is read after it was replaced
extern "C" __global__ void scan(const float* x, float* y, int n) {
    __shared__ float part[2][256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, now = 0;
    part[now][t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int far = 1; far < 256; far *= 2) {
        int next = WRONG ? now : 1 - now;
        part[next][t] = t >= far ? part[now][t] + part[now][t - far] : part[now][t];
        __syncthreads();
        now = next;
    }
    if (i < n) y[i] = part[now][t];
}
