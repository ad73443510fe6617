// cp.async copies whose arrival is never asked for: the `cp.async.mbarrier.arrive` of the last lap is left out, so the
// copies land and the barrier does not hear of it. (A bulk group that is not committed is no hang: its wait returns.)
#include "hang.cuh"

__global__ void __launch_bounds__(64) copies_not_committed(const float *x, float *y, int tiles) {
    __shared__ Ring<2> ring;
    set_up(ring, 32, 1);
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        if (threadIdx.x < 32) {
            wait(ring.empty[tile % 2], tile / 2 % 2 ^ 1);
            for (int i = threadIdx.x; i < TILE; i += 32)
                asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&ring.tile[tile % 2][i])),
                             "l"(x + tile * TILE + i) : "memory");
            if (tile + 2 < tiles)
                asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                                 shared_address(&ring.full[tile % 2])) : "memory");
        } else {
            sum += read_tile(ring, tile);
            give_back(ring, tile);
        }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    y[threadIdx.x] = sum;
}

void launch(const float *x, float *y, unsigned *) { copies_not_committed<<<1, 64>>>(x, y, 8); }
