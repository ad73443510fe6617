// Producer and consumer with cuda::barrier, two buffers, as in the CUDA programming guide. Consumers say at the start that the
// buffers are free: of the first one only.
#include <cuda/barrier>
#include "common.cuh"
using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int LENGTH = 128, BUFFERS = 2;
DI void produce(Barrier *ready, Barrier *filled, float *buffer, const float *in, int n) {
    for (int i = 0; i < n; ++i) {
        ready[i % BUFFERS].arrive_and_wait();
        for (int j = threadIdx.x; j < LENGTH; j += 64) buffer[i % BUFFERS * LENGTH + j] = in[i * LENGTH + j];
        (void)filled[i % BUFFERS].arrive();
    }
}
DI void consume(Barrier *ready, Barrier *filled, const float *buffer, float *out, int n) {
    for (int b = 0; b < WRONG_OR(1, BUFFERS); ++b) (void)ready[b].arrive();
    for (int i = 0; i < n; ++i) {
        filled[i % BUFFERS].arrive_and_wait();
        for (int j = threadIdx.x - 64; j < LENGTH; j += 64) out[i * LENGTH + j] = 2 * buffer[i % BUFFERS * LENGTH + j];
        (void)ready[i % BUFFERS].arrive();
    }
}
__global__ void __launch_bounds__(128) two_buffers(const float *in, float *out, int n) {
    __shared__ float buffer[BUFFERS * LENGTH];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ Barrier bar[2 * BUFFERS];
    if (threadIdx.x < 2 * BUFFERS) init(bar + threadIdx.x, blockDim.x);
    __syncthreads();
    in += blockIdx.x * n * LENGTH;
    out += blockIdx.x * n * LENGTH;
    if (threadIdx.x < 64) produce(bar, bar + BUFFERS, buffer, in, n);
    else consume(bar, bar + BUFFERS, buffer, out, n);
}
void launch(float *x, float *y, unsigned *) { two_buffers<<<2, 128>>>(x, y, 9); }
