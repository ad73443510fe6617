// Helpers of the blind set: PTX in three styles of waiting, and the host's part. Each kernel hangs unless built with -DRIGHT.
#pragma once
#include <cstdint>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
#ifdef RIGHT
#define WRONG_OR(wrong, right) (right)
#else
#define WRONG_OR(wrong, right) (wrong)
#endif
typedef unsigned long long u64;
#define DI __device__ __forceinline__

DI unsigned sptr(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
DI void bar_init(u64 *b, unsigned n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sptr(b)), "r"(n) : "memory"); }
DI void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DI void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DI void bar_arrive(u64 *b) { asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(sptr(b)) : "memory"); }
DI void bar_expect(u64 *b, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sptr(b)), "r"(bytes) : "memory");
}
// the loop in assembly, as CUTLASS writes it
DI void wait_asm(u64 *b, unsigned parity) {
    asm volatile(
        "{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}"
        ::"r"(sptr(b)), "r"(parity) : "memory");
}
DI bool try_wait(unsigned b, unsigned parity) {
    unsigned ok;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, 1000;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(ok) : "r"(b), "r"(parity) : "memory");
    return ok;
}
DI bool test_wait(unsigned b, unsigned parity) {
    unsigned ok;
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(ok) : "r"(b), "r"(parity) : "memory");
    return ok;
}
// a loop of C++
DI void wait_loop(u64 *b, unsigned parity) {
    while (!try_wait(sptr(b), parity)) {}
}
// polled, with a sleep that grows
DI void wait_sleep(u64 *b, unsigned parity) {
    unsigned ns = 20;
    while (!test_wait(sptr(b), parity)) {
        __nanosleep(ns);
        if (ns < 500) ns *= 2;
    }
}
DI void bulk_load(void *to, const void *from, unsigned bytes, u64 *b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(sptr(to)), "l"(from), "r"(bytes), "r"(sptr(b)) : "memory");
}
DI unsigned cluster_rank() { unsigned r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
DI unsigned at_rank(unsigned a, unsigned rank) {
    unsigned r;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(rank));
    return r;
}
DI void arrive_remote(u64 *b, unsigned rank) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(at_rank(sptr(b), rank)) : "memory");
}
DI void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DI void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DI void named_sync(int id, int n) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
DI void named_arrive(int id, int n) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory"); }

void launch(float *x, float *y, unsigned *words);
#define OK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { printf("%s: %s\n", #call, cudaGetErrorString(e_)); exit(9); } } while (0)
int main() {
    float *x, *y; unsigned *words;
    const size_t n = 1 << 16;
    OK(cudaMalloc(&x, n * 4)); OK(cudaMalloc(&y, n * 4)); OK(cudaMalloc(&words, 4096));
    std::vector<float> ones(n, 1.0f);
    for (size_t i = 5 * 96; i < 6 * 96; ++i) ones[i] = 0.01f;
    OK(cudaMemcpy(x, ones.data(), n * 4, cudaMemcpyHostToDevice));
    OK(cudaMemset(y, 0, n * 4)); OK(cudaMemset(words, 0, 4096));
    launch(x, y, words);
    OK(cudaGetLastError());
    printf("launched\n"); fflush(stdout);
    OK(cudaDeviceSynchronize());
    std::vector<float> back(n);
    OK(cudaMemcpy(back.data(), y, n * 4, cudaMemcpyDeviceToHost));
    double sum = 0; for (float v : back) sum += v;
    printf("ended, sum %.6g\n", sum);
    return 0;
}
