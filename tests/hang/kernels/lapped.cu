// Warp 3 looks at the first tile only, and late: it is not counted by the empty barriers, so full[0] has completed two
// phases by then, and the parity for which it waits is that of the phase under way, which nobody will complete.
#include "hang.cuh"

__global__ void __launch_bounds__(128) lapped(const float *x, float *y, int tiles) {
    __shared__ Ring<2> ring;
    set_up(ring, 1, 2);
    const int warp = threadIdx.x / 32;
    if (warp == 0) {
        if (threadIdx.x == 0)
            for (int tile = 0; tile < tiles; ++tile) load(ring, x, tile);
        return;
    }
    if (warp == 3) {
        for (int i = 0; i < 1000; ++i) __nanosleep(10000);
        y[threadIdx.x] = read_tile(ring, 0);
        return;
    }
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        sum += read_tile(ring, tile);
        give_back(ring, tile);
    }
    y[threadIdx.x] = sum;
}

void launch(const float *x, float *y, unsigned *) { lapped<<<1, 128>>>(x, y, 4); }
