// A CUDA graph of four kernels: `fill` ends; then, in two branches, `ring` hangs, as its warp 1 skips the second tile and
// with it the arrive, and `reader` spins on a flag that `setter`, behind `ring` in the graph and so not begun, would set.
// The first launch of the graph, with a ring of one tile and the flag set before, ends.
#include "hang.cuh"

__global__ void __launch_bounds__(64) fill(float *y, int tiles) { y[threadIdx.x] = tiles; }

__global__ void __launch_bounds__(96) ring(const float *x, float *y, const int *tiles) {
    __shared__ Ring<2> stages;
    set_up(stages, 1, 2);
    const int warp = threadIdx.x / 32;
    if (warp == 2) {
        if (threadIdx.x % 32 == 0)
            for (int tile = 0; tile < *tiles; ++tile) load(stages, x, tile);
        return;
    }
    float sum = 0;
    for (int tile = 0; tile < *tiles; ++tile) {
        if (warp * tile == 1) continue;
        sum += read_tile(stages, tile);
        give_back(stages, tile);
    }
    y[threadIdx.x] = sum;
}

__global__ void __launch_bounds__(32) setter(unsigned *flag) {
    if (threadIdx.x == 0) atomicExch(flag, 1u);
}

__global__ void __launch_bounds__(32) reader(float *y, unsigned *flag) {
    unsigned set = 0;
    while (set == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(set) : "l"(flag) : "memory");
    y[threadIdx.x] = set;
}

void launch(const float *x, float *y, unsigned *words) {
    int *tiles = reinterpret_cast<int *>(words + 8), many = 12, one = 1;
    cudaStream_t first, second;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEvent_t forked, joined;
    cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&joined, cudaEventDisableTiming);
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal);
    fill<<<1, 64, 0, first>>>(y, 12);
    cudaEventRecord(forked, first);
    cudaStreamWaitEvent(second, forked, 0);
    ring<<<1, 96, 0, first>>>(x, y, tiles);
    setter<<<1, 32, 0, first>>>(words);
    reader<<<2, 32, 0, second>>>(y + 1024, words);
    cudaEventRecord(joined, second);
    cudaStreamWaitEvent(first, joined, 0);
    cudaStreamEndCapture(first, &graph);
    cudaGraphInstantiate(&ready, graph, 0);
    cudaMemcpy(tiles, &one, sizeof one, cudaMemcpyHostToDevice);
    cudaGraphLaunch(ready, first);
    puts(cudaGetErrorString(cudaStreamSynchronize(first)));
    cudaMemset(words, 0, 4);
    cudaMemcpy(tiles, &many, sizeof many, cudaMemcpyHostToDevice);
    cudaGraphLaunch(ready, first);
}
