// Every SM of an H100 or H200 with a hung CTA of 12 warps: the count of each empty barrier is one too large.
#include "hang.cuh"

__global__ void __launch_bounds__(384) full_grid(const float *x, float *y, int tiles) {
    __shared__ Ring<8> ring;
    set_up(ring, 1, 12);
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            for (int tile = 0; tile < tiles; ++tile) load(ring, x, tile);
        return;
    }
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        sum += read_tile(ring, tile);
        give_back(ring, tile);
    }
    y[blockIdx.x * 384 + threadIdx.x] = sum;
}

void launch(const float *x, float *y, unsigned *) { full_grid<<<132, 384>>>(x, y, 32); }
