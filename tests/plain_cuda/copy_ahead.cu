// Tiles are copied one ahead of their use by cp.async into two slots, and added up.
// launch: grid 4, block 128, tiles = 6; wrong: the copy that is still under way is the one that is read
extern "C" __global__ void copy_ahead(const float4* x, float4* y, int tiles) {
    __shared__ float4 slot[2][128];
    int t = threadIdx.x;
    float4 sum = {0, 0, 0, 0};
    x += blockIdx.x * tiles * 128;
    auto copy = [&](int tile) {
        unsigned to = __cvta_generic_to_shared(&slot[tile % 2][t]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + tile * 128 + t) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    copy(0);
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) copy(tile + 1);
        if (WRONG || tile + 1 < tiles) asm volatile("cp.async.wait_group 1;" ::: "memory");
        else asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        float4 other = slot[tile % 2][127 - t];
        sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
        __syncthreads();
    }
    y[blockIdx.x * 128 + t] = sum;
}
