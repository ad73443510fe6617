// The empty barriers expect one arrival of every thread (128), but one lane of each warp arrives (4).
#include "hang.cuh"

__global__ void __launch_bounds__(160) wrong_count(const float *x, float *y, int tiles) {
    __shared__ Ring<3> ring;
    set_up(ring, 1, 128);
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128)
            for (int tile = 0; tile < tiles; ++tile) load(ring, x, tile);
        return;
    }
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        sum += read_tile(ring, tile);
        give_back(ring, tile);
    }
    y[threadIdx.x] = sum;
}

void launch(const float *x, float *y, unsigned *) { wrong_count<<<1, 160>>>(x, y, 12); }
