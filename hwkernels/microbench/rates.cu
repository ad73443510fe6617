// What one instruction of a class costs: each warp executes `rounds` times 32 of them between two readings of %clock.
// KIND says which; chains wait for each result, the others keep 8 results apart. Every loop is bounded, and nothing waits
// for another thread: a launch ends after rounds * 32 instructions a warp.
//
// out: [warps of the CTA], cycles of each warp. chain: device memory of a chain of addresses, each word the next index.

enum Kind : unsigned {
    FMA, ALU, EXP2, SHUFFLE_CHAIN, SHARED_CHAIN, SHARED_LOADS, GLOBAL_CHAIN, NOTHING
};

static constexpr unsigned UNROLLED = 32, APART = 8, SHARED_WORDS = 4096;

extern "C" __global__ void __launch_bounds__(1024) rates(unsigned rounds, const unsigned *chain, unsigned *out) {
    __shared__ __align__(16) unsigned words[SHARED_WORDS];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned base = (unsigned)__cvta_generic_to_shared(words);
    for (unsigned i = threadIdx.x; i < SHARED_WORDS; i += blockDim.x) words[i] = base + 4 * ((i + 32) % SHARED_WORDS);
    __syncthreads();

    float a[APART];
    unsigned b[APART];
    for (unsigned i = 0; i < APART; ++i) {
        a[i] = 1.0f + (float)(lane + i);
        b[i] = lane + i;
    }
    unsigned at = KIND == SHARED_CHAIN ? base + 4 * lane : lane, ignored = 0;
    unsigned begin, end;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(begin)::"memory");
    for (unsigned round = 0; round < rounds; ++round) {
#pragma unroll
        for (unsigned i = 0; i < UNROLLED; ++i) {
            const unsigned n = i % APART;
            if (KIND == FMA) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(a[n]));
            if (KIND == ALU)  // three operands that change: ptxas merges what it can
                asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;"
                             : "+r"(b[n]) : "r"(b[(n + 1) % APART]), "r"(b[(n + 3) % APART]));
            if (KIND == EXP2) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(a[n]));
            if (KIND == SHUFFLE_CHAIN)
                asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;" : "+r"(b[0]));
            if (KIND == SHARED_CHAIN) {
                asm volatile("ld.volatile.shared.u32 %0, [%0];" : "+r"(at)::"memory");  // the word is an address
            }
            if (KIND == SHARED_LOADS) {
                unsigned x, y, z, w;
                const unsigned from = base + 16 * lane + 512 * n;
                asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(from) : "memory");
                b[n] ^= x ^ y ^ z ^ w;
            }
            if (KIND == GLOBAL_CHAIN)
                asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
        }
    }
    // the results are used before the second reading: it must not overtake what was measured
    for (unsigned i = 0; i < APART; ++i) ignored += b[i] + __float_as_uint(a[i]);
    ignored += at;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(end) : "r"(ignored) : "memory");
    if (lane == 0) out[warp] = end - begin;
    if (ignored == 0x12345678u && rounds == 0) out[warp] = ignored;
}
