// Named barrier 1 is told of 128 threads, but the three compute warps are 96: it waits for a warp that never comes. The
// producer, warp 3, waits for an mbarrier on which they would arrive afterwards.
#include "hang.cuh"

__global__ void __launch_bounds__(128) named_barrier_count(const float *x, float *y, int tiles) {
    __shared__ Ring<2> ring;
    set_up(ring, 1, 3);
    if (threadIdx.x >= 96) {
        if (threadIdx.x == 96)
            for (int tile = 0; tile < tiles; ++tile) load(ring, x, tile);
        return;
    }
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        sum += read_tile(ring, tile);
        asm volatile("bar.sync 1, 128;" ::: "memory");
        give_back(ring, tile);
    }
    y[threadIdx.x] = sum;
}

void launch(const float *x, float *y, unsigned *) { named_barrier_count<<<1, 128>>>(x, y, 8); }
