// How often each of 256 values occurs: counted in shared memory, then added to global memory.
// launch: grid 2, block 256, n = 512, x given; wrong: no barrier after the counts were set to 0
extern "C" __global__ void histogram(const unsigned char* x, int* y, int n) {
    __shared__ int count[256];
    int t = threadIdx.x;
    count[t] = 0;
#if !WRONG
    __syncthreads();
#endif
    for (int i = blockIdx.x * 256 + t; i < n; i += 256 * gridDim.x) atomicAdd(&count[x[i]], 1);
    __syncthreads();
    atomicAdd(&y[t], count[t]);
}
