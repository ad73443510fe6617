// What the kernels of this folder are made of. Each of them hangs, on purpose: its waits have no deadline, because a core
// dump of the hang is wanted. Run them only as make_dumps.py does, in a process of their own with a limit of time.
#pragma once
#include <cstdio>

#include "cluster.cuh"
#include "mbarrier.cuh"

static constexpr int TILE = 256;  // floats
static constexpr unsigned TILE_BYTES = TILE * sizeof(float);

template <int STAGES>
struct Ring {
    alignas(128) float tile[STAGES][TILE];
    unsigned long long full[STAGES], empty[STAGES];
};

static __device__ __forceinline__ void wait(unsigned long long &barrier, unsigned parity) {
    while (!mbarrier_try_wait(shared_address(&barrier), parity)) {
    }
}

static __device__ __forceinline__ void arrive(unsigned long long &barrier) {
    mbarrier_arrive(shared_address(&barrier));
}

static __device__ __forceinline__ void expect(unsigned long long &barrier, unsigned bytes) {
    mbarrier_arrive_expect_tx(shared_address(&barrier), bytes);
}

static __device__ __forceinline__ void copy(float *to, const float *from, unsigned bytes, unsigned long long &barrier) {
    bulk_load(shared_address(to), from, bytes, shared_address(&barrier));
}

// All threads of the CTA; a cluster has to meet afterwards.
template <int STAGES>
static __device__ __forceinline__ void set_up(Ring<STAGES> &ring, unsigned full_count, unsigned empty_count) {
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(shared_address(&ring.full[stage]), full_count);
            mbarrier_init(shared_address(&ring.empty[stage]), empty_count);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
}

// One lane: the tile is copied to its stage once the stage is empty.
template <int STAGES>
static __device__ __forceinline__ void load(Ring<STAGES> &ring, const float *x, int tile) {
    const int stage = tile % STAGES;
    wait(ring.empty[stage], tile / STAGES % 2 ^ 1);
    expect(ring.full[stage], TILE_BYTES);
    copy(ring.tile[stage], x + tile * TILE, TILE_BYTES, ring.full[stage]);
}

// A warp: the sum of what its lanes find in the tile.
template <int STAGES>
static __device__ __forceinline__ float read_tile(Ring<STAGES> &ring, int tile) {
    wait(ring.full[tile % STAGES], tile / STAGES % 2);
    return ring.tile[tile % STAGES][threadIdx.x % TILE];
}

// A warp: it has read the tile.
template <int STAGES>
static __device__ __forceinline__ void give_back(Ring<STAGES> &ring, int tile) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(ring.empty[tile % STAGES]);
}

// A launch with clusters of this many CTAs.
template <typename... Parameters, typename... Arguments>
static void launch_clusters(int ctas, int cluster, int threads, void (*kernel)(Parameters...), Arguments... arguments) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.gridDim = ctas, config.blockDim = threads, config.attrs = &attribute, config.numAttrs = 1;
    cudaLaunchKernelEx(&config, kernel, arguments...);
}

// What each file defines: its launch. x has 4,096 tiles, y a float for each thread of a grid, words 64 zeros.
void launch(const float *x, float *y, unsigned *words);

int main() {
    float *x, *y;
    unsigned *words;
    cudaMalloc(&x, 4096 * TILE_BYTES);
    cudaMalloc(&y, 1 << 20);
    cudaMalloc(&words, 256);
    cudaMemset(x, 0, 4096 * TILE_BYTES);
    cudaMemset(words, 0, 256);
    cudaDeviceSynchronize();
    launch(x, y, words);
    const cudaError_t refused = cudaGetLastError();
    puts(refused == cudaSuccess ? "launched" : cudaGetErrorString(refused));
    fflush(stdout);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
