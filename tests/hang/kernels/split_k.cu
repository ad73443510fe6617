// Each output tile of a split product has a semaphore, on which its three splits take turns. The last tile lies outside, so
// that its CTAs return without handing the semaphore on: split 0 is at its end, 1 and 2 wait for their turns.
#include "hang.cuh"

__global__ void __launch_bounds__(64) split_k(float *y, unsigned *turn, int rows) {
    const unsigned tile = blockIdx.x, split = blockIdx.y;
    if (threadIdx.x == 0) {
        unsigned seen;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(turn + tile) : "memory");
        while (seen != split);
    }
    __syncthreads();
    if (!RIGHT && int(tile) * 64 >= rows) return;
    if (int(tile * 64 + threadIdx.x) < rows) y[tile * 64 + threadIdx.x] += split + 1;
    __syncthreads();
    const unsigned next = split + 1 == gridDim.y ? 0 : split + 1;
    if (threadIdx.x == 0)
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(turn + tile), "r"(next) : "memory");
}

void launch(const float *, float *y, unsigned *words) { split_k<<<dim3(4, 3), 64>>>(y, words + 8, 180); }

bool is_right(const float *y) { return y[0] == 6 && y[179] == 6 && y[180] == 0; }
