// A tensor map of 176 columns in boxes of 64: the copy fills the box beyond the edge with zeros, which count, but only the
// bytes of 48 columns are expected. full[2] has 2,048 bytes more than it expects, and never completes.
#include "hang.cuh"
#include <cuda.h>
#include <cstring>
#include <dlfcn.h>
#include "tensor_map.cuh"
struct Tiles { alignas(128) float tile[3][32 * 64]; unsigned long long full[3], empty[3]; };
__global__ void __launch_bounds__(160) edge_box(const __grid_constant__ TensorMap map, float *y, int columns, int rows) {
    __shared__ Tiles t;
    if (threadIdx.x == 0) {
        for (int s = 0; s < 3; ++s) mbarrier_init(shared_address(&t.full[s]), 1), mbarrier_init(shared_address(&t.empty[s]), 4);
        mbarrier_init_fence();
    }
    __syncthreads();
    const int warp = threadIdx.x / 32, across = (columns + 63) / 64, tiles = across * (rows / 32);
    if (warp == 4) {
        if (elect_one())
            for (int n = 0; n < tiles; ++n) {
                const int s = n % 3, column = n % across * 64;
                wait(t.empty[s], n / 3 % 2 ^ 1);
                expect(t.full[s], 32 * 4 * (column + 64 <= columns ? 64 : columns - column));
                tensor_load_2d(shared_address(t.tile[s]), &map, column, n / across * 32, shared_address(&t.full[s]));
            }
        return;
    }
    float sum = 0;
    for (int n = 0; n < tiles; ++n) {
        wait(t.full[n % 3], n / 3 % 2);
        sum += t.tile[n % 3][threadIdx.x];
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(t.empty[n % 3]);
    }
    y[threadIdx.x] = sum;
}
void launch(const float *x, float *y, unsigned *) {
    CUtensorMap map;
    const cuuint64_t sizes[2] = {176, 128}, strides[1] = {176 * 4};
    const cuuint32_t box[2] = {64, 32}, steps[2] = {1, 1};
    const auto encode = (decltype(&cuTensorMapEncodeTiled))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuTensorMapEncodeTiled");
    if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float *>(x), sizes, strides, box, steps,
                               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) puts("no map");
    TensorMap mine;
    memcpy(&mine, &map, sizeof mine);
    edge_box<<<1, 160>>>(mine, y, 176, 128);
}
