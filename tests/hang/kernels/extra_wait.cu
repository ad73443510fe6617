// The consumers read one tile more than the producer loads (<= for <): the producer has ended, they wait for full[1].
#include "hang.cuh"

__global__ void __launch_bounds__(96) extra_wait(const float *x, float *y, int tiles) {
    __shared__ Ring<4> ring;
    set_up(ring, 1, 2);
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            for (int tile = 0; tile < tiles; ++tile) load(ring, x, tile);
        return;
    }
    float sum = 0;
    for (int tile = 0; tile <= tiles; ++tile) {
        sum += read_tile(ring, tile);
        give_back(ring, tile);
    }
    y[threadIdx.x] = sum;
}

void launch(const float *x, float *y, unsigned *) { extra_wait<<<1, 96>>>(x, y, 13); }
