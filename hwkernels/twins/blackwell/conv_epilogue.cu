// D = convolution(A, B) + beta * C in bf16 with fp32 sums on Blackwell, as an implicit GEMM: the kernel behind the protocol
// `conv_epilogue`. Needs sm_100a. NEVER RUN on a GPU (clc_sm100.cuh says what is known of it).
//
// A is [images][height][width][channels], B [filters][R][S][channels], C and D [images][P][Q][filters], channels and filters
// multiples of 8. Of the product, a row is a pixel of the output, a column a filter; K runs through R, S and the channels, 64
// of them a step. A's tiles come through an im2col tensor map: 128 pixels of the output one behind the other, each shifted to
// the same place under the filter, zeros outside of the image. C comes slice by slice, 128 x 32, through a ring of its own.
//
// The load-order barrier lets the epilogue-load warp begin when the first loads of a tile are under way. FIRST_TILE_ONLY 1
// orders the first tile, as CUTLASS does. 0 orders every tile, as upstream does: the load warp, which nobody holds back, may
// arrive twice before the other has looked once, and then the wait misses both and meets its deadline.
//
// Compile-time parameters: those of clc_sm100.cuh but K_GROUP, EPI_STAGES slices of C, RESIDUAL (0: beta * C is left out) and
// FIRST_TILE_ONLY.
#define PIPESIM_TABLE "conv_epilogue.table.h"
#define K_GROUP 1
#include "bf16_sm100.cuh"

using SourceState = RingState<EPI_STAGES>;

// Of both directions alike. p, q: height and width of the output. blocks: of 64 channels, the last filled up with zeros.
struct Filter {
    unsigned p, q, s, blocks, stride, padding, dilation;
};

struct Conv : Sm100 {
    const TensorMap *c_map;
    unsigned source;  // shared address of C's slices
    Filter filter;
    float beta;
};

// The step of K: a block of channels at a place under the filter.
struct Step {
    unsigned block, r, s;
    __device__ __forceinline__ void next(const Filter &filter) {
        if (++block < filter.blocks) return;
        block = 0;
        if (++s < filter.s) return;
        s = 0;
        ++r;
    }
};

// Where the pixels begin that A's tiles of an output tile have under the filter's first place.
struct Pixel {
    int x, y, image;
};

static __device__ __forceinline__ Pixel first_pixel(const Filter &filter, unsigned row) {
    const unsigned line = row / filter.q;
    return {(int)(row % filter.q * filter.stride - filter.padding), (int)(line % filter.p * filter.stride - filter.padding),
            (int)(line / filter.p)};
}

static __device__ __forceinline__ bool load(const Conv &cta PIPESIM_PARAM) {
    ClcState throttle = {0, 1}, clc = {0, 0};
    InputState input = {0, 1};
    const unsigned prologue = cta.groups < RING_STAGES ? cta.groups : RING_STAGES;
    unsigned n = 0, tile = blockIdx.x;
    for (bool more = true; more;) {
        if (!throttle_signal(cta, throttle, n PIPESIM_PASS)) return false;
        const bool ordered = !FIRST_TILE_ONLY || tile == blockIdx.x;
        const Pixel pixel = first_pixel(cta.filter, cta.row(tile));
        const unsigned column = cta.column(tile);
        Step step = {0, 0, 0};
        for (unsigned k = 0; k < cta.groups; ++k) {
            WAIT(load, input_empty, input)
            const unsigned full = cta.barrier(BARRIER_input_full, input.stage), channel = step.block * BLOCK_K;
            const bool one = elect_one();
            PIPESIM_RECORD(SITE_load_expect_input_full, BYTES_STAGE)
            if (one) mbarrier_arrive_expect_tx(full, A_BYTES + B_BYTES);
            PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_A)
            if (one)
                tensor_load_im2col(cta.a + input.stage * A_BYTES, cta.a_map, channel, pixel.x, pixel.y, pixel.image,
                                   step.s * cta.filter.dilation, step.r * cta.filter.dilation, full);
            PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_B)
            if (one)
                tensor_load_3d(cta.b + input.stage * B_BYTES, cta.b_map, channel, step.r * cta.filter.s + step.s, column,
                               full);
            __syncwarp();
            input.step();
            step.next(cta.filter);
            if (ordered && k + 1 == prologue) {  // nothing holds this back
                PIPESIM_SAY(n, 0, 0)
                PIPESIM_RECORD(SITE_load_arrive_load_order, 1)
                if (elect_one()) mbarrier_arrive(cta.barrier(BARRIER_load_order, 0));
                __syncwarp();
            }
        }
        NEXT_TILE(load)
    }
    return drain(cta, input, n PIPESIM_PASS);
}

static __device__ __forceinline__ bool load_source(const Conv &cta PIPESIM_PARAM) {
    ClcState clc = {0, 0};
    SourceState source = {0, 1};
    RingState<1> order = {0, 0};
    unsigned n = 0, tile = blockIdx.x;
    for (bool more = true; more;) {
        if (!FIRST_TILE_ONLY || tile == blockIdx.x) {
            WAIT(epilogue_load, load_order, order)
            order.step();
        }
        for (unsigned slice = 0; RESIDUAL && slice < SLICES; ++slice) {
            WAIT(epilogue_load, epi_load_empty, source)
            const unsigned full = cta.barrier(BARRIER_epi_load_full, source.stage);
            const bool one = elect_one();
            PIPESIM_RECORD(SITE_epilogue_load_expect_epi_load_full, BYTES_OWN)
            if (one) mbarrier_arrive_expect_tx(full, SLICE_BYTES);
            PIPESIM_RECORD(SITE_epilogue_load_copy_epi_load_full, BYTES_OWN)
            if (one)
                tensor_load_2d(cta.source + source.stage * SLICE_BYTES, cta.c_map, cta.column(tile) + slice * SLICE,
                               cta.row(tile), full);
            __syncwarp();
            source.step();
        }
        NEXT_TILE(epilogue_load)
    }
    return true;
}

// v += beta * this thread's row of a slice of C.
static __device__ __forceinline__ void add_row(float (&v)[SLICE], float beta, unsigned source) {
#pragma unroll
    for (unsigned piece = 0; piece < 4; ++piece) {
        const uint4 pairs = load_shared(source + swizzled_64(threadIdx.x, piece));
        const unsigned words[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
            v[8 * piece + 2 * i] += beta * __uint_as_float(words[i] << 16);
            v[8 * piece + 2 * i + 1] += beta * __uint_as_float(words[i] & 0xffff0000u);
        }
    }
}

static __device__ __forceinline__ bool finish(const Conv &cta PIPESIM_PARAM) {
    ClcState clc = {0, 0};
    OutputState output = {0, 0};
    SourceState source = {0, 0};
    unsigned n = 0, tile = blockIdx.x, slices = 0;
    const unsigned tmem = find_tmem(cta);
    for (bool more = true; more;) {
        EPILOGUE_WAIT(output_full, output)
        tcgen05_after_sync();
        for (unsigned slice = 0; slice < SLICES; ++slice) {
            float v[SLICE];
            load_slice(v, tmem + output.stage * BLOCK_N, slice);
            if (slice + 1 == SLICES) free_accumulator(cta, output.stage, n PIPESIM_PASS);
            if (RESIDUAL) {
                EPILOGUE_WAIT(epi_load_full, source)
                add_row(v, cta.beta, cta.source + source.stage * SLICE_BYTES);
                PIPESIM_RECORD(SITE_epilogue_arrive_epi_load_empty, 32)
                mbarrier_arrive(cta.barrier(BARRIER_epi_load_empty, source.stage));
                source.step();
            }
            if (!store_slice(cta, v, cta.row(tile), cta.column(tile) + slice * SLICE, slices++ PIPESIM_PASS)) return false;
        }
        output.step();
        EPILOGUE_NEXT_TILE()
    }
    leave(cta, n PIPESIM_PASS);
    return true;
}

// a_map: im2col of A, 64 channels and 128 pixels, lower corner -padding, upper corner padding - dilation * (R - 1) (S - 1 in a
// row), element strides stride in both directions, 128-byte swizzle. The boxes of the others: B [BLOCK_N][1][64] of [filters]
// [R * S][channels] with 128-byte swizzle, C and D [128][32] of [images * P * Q][filters] with 64-byte swizzle. n_tiles: of
// columns; groups: R * S * blocks, the steps of a tile, at least 1. RESIDUAL 0: neither C's map nor beta is looked at.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
conv_epilogue(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
              const __grid_constant__ TensorMap c_map, const __grid_constant__ TensorMap d_map, unsigned n_tiles,
              unsigned groups, unsigned p, unsigned q, unsigned s, unsigned blocks, unsigned stride, unsigned padding,
              unsigned dilation, float beta, PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned warp = threadIdx.x / 32, a = shared_address(memory);
    CtaReport *report = reports + blockIdx.x;
    const Conv cta = {sm100(&a_map, &b_map, &d_map, n_tiles, groups, a, EPI_STAGES * SLICE_BYTES,
                            {report, stop, deadline_ns, warp}),
                      &c_map, a + SLOTS * (A_BYTES + B_BYTES), {p, q, s, blocks, stride, padding, dilation}, beta};
    CTA_BEGIN(report, cta.barriers)
    end_roles(cta, warp == WARP_epilogue_load ? load_source(cta PIPESIM_PASS) : run_role(cta PIPESIM_PASS));
    CTA_END(report, cta.barriers)
}
