// A matrix of n by n transposed, in tiles of 32 by 32 with a column more against bank conflicts.
// launch: grid 2 2, block 32 8, n = 64; wrong: no barrier between the stores and the loads of the tile
extern "C" __global__ void transpose(const float* x, float* y, int n) {
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = x[(row + j) * n + column];
#if !WRONG
    __syncthreads();
#endif
    column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        y[(row + j) * n + column] = tile[threadIdx.x][threadIdx.y + j];
}
