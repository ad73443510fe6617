// A product of n by n matrices in tiles of 16 by 16.
// launch: grid 4 4, block 16 16, n = 64; wrong: the next tiles are stored while slow threads read these
extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += left[y][i] * right[i][x];
#if !WRONG
        __syncthreads();
#endif
    }
    c[row * n + column] = sum;
}
