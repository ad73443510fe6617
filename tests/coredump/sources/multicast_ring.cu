// Clusters of 4: each CTA loads a quarter of every tile and multicasts it to all four. A stage is given back to all CTAs by
// lanes of each consumer warp, one a CTA; the lanes are those below CTAs - 1.
#include "common.cuh"
constexpr int CTAS = 4, STAGES = 3, TILE = 512, WARPS = 4;
struct Shared {
    alignas(128) float tile[STAGES][TILE];
    u64 full[STAGES];
    u64 empty[STAGES];
};
DI void bulk_multicast(void *to, const void *from, unsigned bytes, u64 *b, unsigned short mask) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                 ::"r"(sptr(to)), "l"(from), "r"(bytes), "r"(sptr(b)), "h"(mask) : "memory");
}
__global__ void __cluster_dims__(CTAS, 1, 1) __launch_bounds__(32 * (WARPS + 1)) multicast_ring(const float *x, float *y, int tiles) {
    extern __shared__ __align__(128) unsigned char raw[];
    Shared &sh = *reinterpret_cast<Shared *>(raw);
    const unsigned rank = cluster_rank();
    if (threadIdx.x == 0) {
#pragma unroll
        for (int s = 0; s < STAGES; ++s) { bar_init(&sh.full[s], 1); bar_init(&sh.empty[s], CTAS * WARPS); }
        fence_init();
    }
    __syncthreads();
    cluster_arrive();
    cluster_wait();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 0) {
        if (lane == 0) {
            int s = 0; unsigned ph = 0;
            for (int t = 0; t < tiles; ++t) {
                wait_asm(&sh.empty[s], ph ^ 1);
                bar_expect(&sh.full[s], TILE * 4);
                const int at = rank * (TILE / CTAS);
                bulk_multicast(&sh.tile[s][at], x + t * TILE + at, TILE / CTAS * 4, &sh.full[s], (1 << CTAS) - 1);
                if (++s == STAGES) { s = 0; ph ^= 1; }
            }
        }
    } else {
        float sum = 0;
        int s = 0; unsigned ph = 0;
        for (int t = 0; t < tiles; ++t) {
            wait_asm(&sh.full[s], ph);
            for (int i = threadIdx.x - 32; i < TILE; i += 128) sum += sh.tile[s][i];
            __syncwarp();
            if (lane < WRONG_OR(CTAS - 1, CTAS)) arrive_remote(&sh.empty[s], lane);
            if (++s == STAGES) { s = 0; ph ^= 1; }
        }
        y[blockIdx.x * 128 + threadIdx.x - 32] = sum;
    }
    __syncwarp();
    cluster_arrive();
    cluster_wait();
}
void launch(float *x, float *y, unsigned *) { multicast_ring<<<8, 160, sizeof(Shared)>>>(x, y, 20); }
