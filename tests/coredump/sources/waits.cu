// Kernels whose dumps are in ../dumps: hangs in functions that are not inlined, with addresses of barriers in local memory,
// on a word of another CTA's shared memory, of one word for each lane, on a word that was stored too early; two exceptions.
// Each is compiled alone with a main that launches it: TILE is 256 floats, x and y are zeros, w has 8,192 words of zeros.
#include "common.cuh"
#define DEV static __device__ __forceinline__
DEV unsigned sa(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
DEV void init(u64 *b, unsigned n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sa(b)), "r"(n) : "memory"); }
DEV void initfence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEV bool try_wait(u64 *b, unsigned par) {
    unsigned d;
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(d) : "r"(sa(b)), "r"(par) : "memory");
    return d;
}
DEV bool test_wait(u64 *b, unsigned par) {
    unsigned d;
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(d) : "r"(sa(b)), "r"(par) : "memory");
    return d;
}
DEV void wait(u64 *b, unsigned par) { while (!try_wait(b, par)) { } }
DEV void wait_asm(u64 *b, unsigned par) {
    asm volatile("{\n\t.reg .pred P1;\n\tLAB_WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n\t@P1 bra DONE;\n\tbra LAB_WAIT;\n\tDONE:\n\t}" ::"r"(sa(b)), "r"(par) : "memory");
}
DEV void arrive(u64 *b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(sa(b)) : "memory"); }
DEV u64 arrive_token(u64 *b) { u64 t; asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(t) : "r"(sa(b)) : "memory"); return t; }
DEV void expect(u64 *b, unsigned n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sa(b)), "r"(n) : "memory"); }
DEV void expect_only(u64 *b, unsigned n) { asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(sa(b)), "r"(n) : "memory"); }
DEV void copy(void *to, const void *from, unsigned n, u64 *b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(sa(to)), "l"(__cvta_generic_to_global(from)), "r"(n), "r"(sa(b)) : "memory");
}
DEV void copy_multicast(void *to, const void *from, unsigned n, u64 *b, unsigned short m) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(sa(to)), "l"(__cvta_generic_to_global(from)), "r"(n), "r"(sa(b)), "h"(m) : "memory");
}
DEV void arrive_at(u64 *b, unsigned cta) {
    asm volatile("{\n\t.reg .b32 r;\n\tmapa.shared::cluster.u32 r, %0, %1;\n\tmbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];\n\t}" ::"r"(sa(b)), "r"(cta) : "memory");
}
DEV unsigned rank() { unsigned r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
DEV void cl_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DEV void cl_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEV void cl_sync() { cl_arrive(); cl_wait(); }
template <int ID> DEV void bsync(int n) { asm volatile("bar.sync %0, %1;" ::"n"(ID), "r"(n) : "memory"); }
template <int ID> DEV void barrive(int n) { asm volatile("bar.arrive %0, %1;" ::"n"(ID), "r"(n) : "memory"); }
DEV void bsync_r(int id, int n) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
DEV void barrive_r(int id, int n) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory"); }
static constexpr int T = 256;  // floats of a tile

// call_wait: waits in a function that is not inlined, called at three places; consumer warp 2 (of 1..3) skips its release of tile 4
static __device__ __noinline__ void slow_wait(u64 *b, unsigned p) { while (!try_wait(b, p)) { } }
static __device__ __noinline__ float consume(const float *t, u64 *full, unsigned p) { slow_wait(full, p); return t[threadIdx.x % T]; }
__global__ void callwait(const float *x, float *y, int tiles) {
    __shared__ alignas(128) float t[2][T]; __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0) { for (int i = 0; i < 2; ++i) init(&full[i], 1), init(&empty[i], 3); initfence(); }
    __syncthreads();
    const int warp = threadIdx.x / 32;
    if (warp == 0) {
        if (threadIdx.x == 0) for (int i = 0; i < tiles; ++i) { slow_wait(&empty[i % 2], i / 2 % 2 ^ 1); expect(&full[i % 2], T * 4); copy(t[i % 2], x + i * T, T * 4, &full[i % 2]); }
        return;
    }
    float s = 0;
    for (int i = 0; i < tiles; ++i) { s += consume(t[i % 2], &full[i % 2], i / 2 % 2); __syncwarp(); if (threadIdx.x % 32 == 0 && !(warp == 2 && i == 4)) arrive(&empty[i % 2]); }
    y[threadIdx.x] = s;
}
// launched as callwait<<<1, 128>>>(x, y, 9);

// local_barriers: addresses of barriers in an array in local memory, indexed by a value; consumer warp 1 releases the next stage instead of its own in tile 5
__global__ void __launch_bounds__(96) localbar(const float *x, float *y, int tiles, int stages) {
    extern __shared__ __align__(128) float sm[];
    u64 *bars = (u64 *)(sm + 4 * T);
    u64 *full[4], *empty[4];
    for (int i = 0; i < 4; ++i) full[(i * 3) & 3] = bars + ((i * 3) & 3) * 2, empty[i] = bars + i * 2 + 1;
    asm volatile("" : "+l"(full[0]), "+l"(empty[1]));
    if (threadIdx.x == 0) { for (int i = 0; i < stages; ++i) init(full[i], 1), init(empty[i], 2); initfence(); }
    __syncthreads();
    const int warp = threadIdx.x / 32;
    int st = 0; unsigned ph = 0;
    if (warp == 0) {
        if (threadIdx.x == 0) for (int i = 0; i < tiles; ++i) { wait(empty[st], ph ^ 1); expect(full[st], T * 4); copy(sm + st * T, x + i * T, T * 4, full[st]); if (++st == stages) st = 0, ph ^= 1; }
        return;
    }
    float s = 0;
    for (int i = 0; i < tiles; ++i) {
        wait(full[st], ph); s += sm[st * T + threadIdx.x]; __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(empty[warp == 1 && i == 5 ? (st + 1) % stages : st]);
        if (++st == stages) st = 0, ph ^= 1;
    }
    y[threadIdx.x] = s;
}
// launched as localbar<<<1, 96, 4 * T * 4 + 64>>>(x, y, 12, 4);

// remote_word: CTA 1 of a cluster of two spins on a word in the shared memory of CTA 0, which writes its own rank's slot 0 instead of slot 1
__global__ void dsmem(float *y) {
    __shared__ volatile unsigned flag[2];
    if (threadIdx.x < 2) flag[threadIdx.x] = 0;
    cl_sync();
    if (rank() == 0 && threadIdx.x == 0) flag[0] = 5;
    if (rank() == 1 && threadIdx.x == 0) {
        unsigned v;
        do asm volatile("{\n\t.reg .b32 r;\n\tmapa.shared::cluster.u32 r, %1, 0;\n\tld.acquire.cluster.shared::cluster.u32 %0, [r];\n\t}" : "=r"(v) : "r"(sa((const void *)&flag[1])) : "memory"); while (v < 5);
    }
    cl_sync();
    y[blockIdx.x * 32 + threadIdx.x] = rank();
}
// launched as cluster_launch(2, 2, 32, 0, dsmem, y);

// peers: each lane polls the word of another peer, until all have at least step 2 (as in communication kernels); peer 11's has 1
__global__ void peers(float *y, u64 *w, u64 step) {
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        w[lane * 16] = lane == 11 ? 1 : 2; __threadfence_system(); __syncwarp();
        u64 v; bool done;
        do { asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(w + lane * 16) : "memory"); done = v >= step; } while (!__all_sync(0xffffffffu, done));
    }
    __syncthreads();
    y[threadIdx.x] = 1;
}
// launched as peers<<<1, 64>>>(y, w, 2);

// notify: cuda::atomic_ref::wait: CTA 1 waits while the word is 0; CTA 0 stores 0 and notifies
#include <cuda/atomic>
__global__ void stdatomic(float *y, int *w) {
    cuda::atomic_ref<int, cuda::thread_scope_device> a(*w);
    if (threadIdx.x == 0) { if (blockIdx.x == 0) { a.store(0, cuda::memory_order_release); a.notify_all(); } else a.wait(0, cuda::memory_order_acquire); }
    __syncthreads();
    y[blockIdx.x * 32 + threadIdx.x] = 1;
}
// launched as stdatomic<<<2, 32>>>(y, (int *)(w + 3));

// over_arrive: exception: more arrivals than the barrier has pending: 64 of 32
__global__ void x_overarrive(float *y) { __shared__ u64 b; if (threadIdx.x == 0) init(&b, 3), initfence(); __syncthreads(); if (threadIdx.x < 32) arrive(&b); else wait(&b, 0); y[threadIdx.x] = 1; }
// launched as x_overarrive<<<1, 96>>>(y);

// trap: exception: trap in warp 1 (as of a bounded wait), the rest waits for an mbarrier
__global__ void x_trap(float *y, int n) { __shared__ u64 b; if (threadIdx.x == 0) init(&b, 2), initfence(); __syncthreads(); if (threadIdx.x % 32 == 0 && threadIdx.x < 32) arrive(&b); if (threadIdx.x >= 32) { for (int i = 0; !try_wait(&b, 0); ++i) if (i > n) __trap(); } else wait(&b, 0); y[threadIdx.x] = 1; }
// launched as x_trap<<<2, 64>>>(y, 1000);

// inlined_roles: template kernel, namespaces, struct parameter with pointers; consumer 1 of 2 arrives at a barrier of the wrong struct (kv instead of q)
namespace lib { namespace detail {
template <int S> struct Pipe { alignas(128) float t[S][T]; u64 full[S], empty[S]; };
struct Params { const float *x; float *y; int tiles; int pad; const float *z; };
template <int S, typename F> struct Kernel {
    struct Storage { Pipe<S> q, kv; };
    static __device__ void run(const Params &p, Storage &s);
};
template <int S, typename F> __device__ void Kernel<S, F>::run(const Params &p, Storage &s) {
    const int w = threadIdx.x / 32;
    if (threadIdx.x == 0) { for (int i = 0; i < S; ++i) init(&s.q.full[i], 1), init(&s.q.empty[i], 2), init(&s.kv.full[i], 1), init(&s.kv.empty[i], 3); initfence(); }
    __syncthreads();
    if (w == 0) { if (threadIdx.x == 0) for (int i = 0; i < p.tiles; ++i) {
        wait(&s.q.empty[i % S], i / S % 2 ^ 1); expect(&s.q.full[i % S], T * 4); copy(s.q.t[i % S], p.x + i * T, T * 4, &s.q.full[i % S]);
        wait(&s.kv.empty[i % S], i / S % 2 ^ 1); expect(&s.kv.full[i % S], T * 4); copy(s.kv.t[i % S], p.z + i * T, T * 4, &s.kv.full[i % S]); }
    } else {
        F acc = 0;
        for (int i = 0; i < p.tiles; ++i) {
            wait(&s.q.full[i % S], i / S % 2); acc += s.q.t[i % S][threadIdx.x]; __syncwarp();
            if (threadIdx.x % 32 == 0) { if (w == 1) arrive(&s.q.empty[i % S]); else arrive(&s.kv.empty[i % S]); }
            wait(&s.kv.full[i % S], i / S % 2); acc *= s.kv.t[i % S][threadIdx.x]; __syncwarp();
            if (threadIdx.x % 32 == 0) arrive(&s.kv.empty[i % S]);
        }
        p.y[threadIdx.x] = acc;
    }
}
template <typename K> __global__ void __launch_bounds__(96) device_kernel(const __grid_constant__ Params p) { __shared__ typename K::Storage s; K::run(p, s); }
} }
// launched as lib::detail::Params p{x, y, 9, 0, x + 4096}; lib::detail::device_kernel<lib::detail::Kernel<2, float>><<<2, 96>>>(p);

// debug_build: call_wait, by nvcc -G
