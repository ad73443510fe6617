// A softmax of each row: its maximum, then the sum of its exponentials, through the same words of shared memory.
// launch: grid 4, block 128, n = 500; wrong: the words get the sums while a slow thread has not read the maximum
extern "C" __global__ void softmax(const float* x, float* y, int n) {
    __shared__ float word[128];
    int t = threadIdx.x;
    x += blockIdx.x * n, y += blockIdx.x * n;
    float most = -1e30f, sum = 0.0f;
    for (int i = t; i < n; i += 128) most = fmaxf(most, x[i]);
    word[t] = most;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) word[t] = fmaxf(word[t], word[t + half]);
        __syncthreads();
    }
    most = word[0];
#if !WRONG
    __syncthreads();
#endif
    for (int i = t; i < n; i += 128) sum += __expf(x[i] - most);
    word[t] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) word[t] += word[t + half];
        __syncthreads();
    }
    for (int i = t; i < n; i += 128) y[i] = __expf(x[i] - most) / word[0];
}
