// 64 CTAs, each with as many tiles as `lengths` says: in CTA 37 the count is odd, and its consumers take tiles in pairs,
// so that the producer has one tile less than they wait for. 63 CTAs have ended.
#include "hang.cuh"

__global__ void __launch_bounds__(96) one_of_64(const float *x, float *y, const unsigned *lengths) {
    __shared__ Ring<4> ring;
    set_up(ring, 1, 2);
    const int tiles = lengths[blockIdx.x];
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            for (int tile = 0; tile < tiles; ++tile) load(ring, x, tile);
        return;
    }
    float sum = 0;
    for (int tile = 0; tile < tiles; tile += 2) {
        sum += read_tile(ring, tile);
        sum += read_tile(ring, tile + 1);
        give_back(ring, tile);
        give_back(ring, tile + 1);
    }
    y[blockIdx.x * 96 + threadIdx.x] = sum;
}

void launch(const float *x, float *y, unsigned *words) {
    unsigned lengths[64];
    for (int cta = 0; cta < 64; ++cta) lengths[cta] = cta == 37 ? 9 : 8 + cta % 3 * 2;
    cudaMemcpy(words, lengths, sizeof lengths, cudaMemcpyHostToDevice);
    one_of_64<<<64, 96>>>(x, y, words);
}
