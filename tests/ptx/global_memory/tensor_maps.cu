// A tensor map for each CTA, in global memory: changed for every group as CUTLASS's grouped GEMMs do, and copied by.
// Made into PTX by nvcc: -arch=sm_90a -lineinfo -ptx
using u32 = unsigned;
struct alignas(128) Map { char bytes[128]; };
static __device__ __forceinline__ u32 shared(const void* p) { return u32(__cvta_generic_to_shared(p)); }
static __device__ __forceinline__ void wait(u32 bar, u32 parity) {
  asm volatile("{.reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;}"
               ::"r"(bar), "r"(parity) : "memory");
}
static __device__ __forceinline__ void begin(u32 full) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
static __device__ __forceinline__ void acquire(const Map* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}
static __device__ __forceinline__ void load(const void* tile, const Map* map, u32 full) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(full) : "memory");
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
               ::"r"(shared(tile)), "l"(map), "r"(0), "r"(full) : "memory");
}
#define REPLACE(field, ...) "tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], " __VA_ARGS__ ";"
enum Wrong { RIGHT, NOT_RELEASED, NOT_ACQUIRED, EARLY };

template <int wrong> static __device__ void grouped(Map* maps, float* x, float* y, int groups) {
  __shared__ Map map;
  __shared__ alignas(128) float tile[2][64];
  __shared__ alignas(8) unsigned long long full;
  Map* mine = maps + blockIdx.x;
  u32 bar = shared(&full), at = shared(&map);
  if (threadIdx.x == 0) {
    begin(bar);
    asm volatile(REPLACE("elemtype", "7") REPLACE("rank", "0") REPLACE("box_dim", "0, 64") ::"r"(at) : "memory");
  }
  __syncthreads();
#pragma unroll 1
  for (int g = 0; g < groups; g++) {
    if (threadIdx.x < 32) {
      if (threadIdx.x == 0)
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;"
                     ::"r"(at), "l"(x + (blockIdx.x * groups + g) * 64) : "memory");
      __syncwarp();
      if (wrong == NOT_RELEASED) ((u32*)mine)[threadIdx.x] = ((u32*)&map)[threadIdx.x];
      else asm volatile(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
        ::"l"(mine), "r"(at) : "memory");
      __syncwarp();
      if (threadIdx.x == 0) {
        if (wrong != NOT_ACQUIRED || g == 0) acquire(mine);
        load(tile[g & 1], mine, bar);
        wait(bar, g & 1);
      }
    }
    __syncthreads();
    y[(blockIdx.x * groups + g) * 64 + threadIdx.x] = tile[g & 1][threadIdx.x];
  }
}
// the groups' maps are changed where copies have read them: when these have done so is not known
extern "C" __global__ void grouped_maps(Map* maps, float* x, float* y, int groups) { grouped<RIGHT>(maps, x, y, groups); }
extern "C" __global__ void tensor_map_1(Map* maps, float* x, float* y, int groups) {
  grouped<NOT_RELEASED>(maps, x, y, groups);
}
extern "C" __global__ void tensor_map_2(Map* maps, float* x, float* y, int groups) {
  grouped<NOT_ACQUIRED>(maps, x, y, groups);
}

// one warp changes a map in place, another one copies by it
template <int wrong> static __device__ void in_place(Map* maps, float* x, float* y) {
  __shared__ alignas(128) float tile[64];
  __shared__ alignas(8) unsigned long long full;
  Map* mine = maps + blockIdx.x;
  u32 bar = shared(&full);
  if (threadIdx.x == 0) {
    begin(bar);
    asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;"
                 "tensormap.replace.tile.elemtype.global.b1024.b32 [%0], 7;"
                 "tensormap.replace.tile.rank.global.b1024.b32 [%0], 0;"
                 "tensormap.replace.tile.box_dim.global.b1024.b32 [%0], 0, 64;"
                 "fence.proxy.tensormap::generic.release.cta;" ::"l"(mine), "l"(x + blockIdx.x * 64) : "memory");
  }
  if (wrong == EARLY && threadIdx.x == 32) acquire(mine);
  __syncthreads();
  if (threadIdx.x == 32) {
    if (wrong != EARLY) acquire(mine);
    load(tile, mine, bar);
  }
  wait(bar, 0);
  y[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void map_in_place(Map* maps, float* x, float* y) { in_place<RIGHT>(maps, x, y); }
extern "C" __global__ void tensor_map_3(Map* maps, float* x, float* y) { in_place<EARLY>(maps, x, y); }
