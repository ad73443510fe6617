// One product of a warp group, D[64][N] = A[64][64] * B, with descriptors that the host chooses: which of them are right?
// The operands come by tensor maps, and their shared memory is written out as it lies there.
//
// Compile-time: N is PRODUCT_N (64, 128, 256). PRODUCT_TRANSPOSE 0: B is [N][64], K-major; 1: B is [64][N], MN-major, loaded in blocks of 64
// columns. PRODUCT_REGISTERS 1: A comes from registers.
#include "mbarrier.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

static constexpr unsigned A_BYTES = 64 * 128, B_BYTES = PRODUCT_N * 128;

// leading, stride: of a descriptor, in bytes; step: from one product of 16 of K to the next. maps: A, B, and where A is stored
// to. a: [64][64] bf16, also for the registers. d: [64][N]. shared: [A_BYTES + B_BYTES],
// as it lies. waited: 1 once the copies have landed, 2 if they did not within deadline_ns.
extern "C" __global__ void __launch_bounds__(128, 1)
products(const TensorMap *maps, const unsigned *a, unsigned a_leading, unsigned a_stride, unsigned a_step,
         unsigned b_leading, unsigned b_stride, unsigned b_step, unsigned deadline_ns, float *d, unsigned *shared,
         unsigned *waited) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned at = shared_address(memory), full = at + A_BYTES + B_BYTES;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        mbarrier_init(full, 1);
        mbarrier_init_fence();
    }
    __syncthreads();
    if (warp == 0 && elect_one()) {
        for (unsigned map = 0; map < 3; ++map) tensor_map_acquire(maps + map);
        mbarrier_arrive_expect_tx(full, A_BYTES + B_BYTES);
        tensor_load_2d(at, maps, 0, 0, full);
        if (PRODUCT_TRANSPOSE) {
            for (unsigned block = 0; block < PRODUCT_N / 64; ++block)
                tensor_load_2d(at + A_BYTES + block * 8192, maps + 1, 64 * block, 0, full);
        } else {
            tensor_load_2d(at + A_BYTES, maps + 1, 0, 0, full);
        }
    }
    __syncwarp();
    const WaitEnd end = wait_parity<true>(full, 0, deadline_ns, nullptr);
    if (threadIdx.x == 0) *waited = end == WAIT_DONE ? 1 : 2;
    if (__syncthreads_or(end != WAIT_DONE)) return;

    for (unsigned word = threadIdx.x; word < (A_BYTES + B_BYTES) / 16; word += 128)
        ((uint4 *)shared)[word] = load_shared(at + 16 * word);
    const unsigned row = 16 * warp + lane / 4, column = 2 * (lane % 4);
    float sums[PRODUCT_N / 2] = {};
    wgmma_hold(sums);
    wgmma_fence();
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
        const unsigned long long b = wgmma_descriptor(at + A_BYTES + k * b_step, b_leading, b_stride);
#if PRODUCT_REGISTERS
        unsigned mine[4];
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) mine[i] = a[((row + 8 * (i & 1)) * 64 + 16 * k + 8 * (i >> 1) + column) / 2];
        wgmma_fence();
        Wgmma<PRODUCT_N, PRODUCT_TRANSPOSE>::registers(sums, mine, b, 1);
        wgmma_commit();
        wgmma_wait<0>();
#else
        Wgmma<PRODUCT_N, PRODUCT_TRANSPOSE>::shared(sums, wgmma_descriptor(at + k * a_step, a_leading, a_stride), b, 1);
#endif
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_hold(sums);
#pragma unroll
    for (unsigned i = 0; i < PRODUCT_N / 2; ++i)
        d[(row + 8 * (i / 2 % 2)) * PRODUCT_N + 8 * (i / 4) + column + i % 2] = sums[i];
    __syncthreads();
    if (warp == 0 && elect_one()) {
        tensor_store_2d(maps + 2, 0, 0, at);
        bulk_commit();
        bulk_wait<0>();
    }
}
