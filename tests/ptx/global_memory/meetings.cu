// Accesses of global memory that meet, or are ordered, by their scope, their size, or what performs them.
// Made into PTX by NVRTC: --gpu-architecture=sm_90a -lineinfo
using u32 = unsigned;
static __device__ __forceinline__ u32 shared(const void* p) { return u32(__cvta_generic_to_shared(p)); }
static __device__ __forceinline__ void store(void* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
static __device__ __forceinline__ void stored() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
static __device__ __forceinline__ void tile_of(float* tile) {
  tile[threadIdx.x] = float(threadIdx.x);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
}

// warps exchange words in the memory of the last of many pointers, or in a variable of the module
extern "C" __global__ void fifth_pointer(float* a, float* b, float*, float*, float* work) {
  int t = threadIdx.x + blockIdx.x * 64;
  work[t] = a[t];
  __syncthreads();
  b[t] = work[t ^ 32];
}
extern "C" __global__ void fifth_pointer_early(float* a, float* b, float*, float*, float* work) {
  int t = threadIdx.x + blockIdx.x * 64;
  work[t] = a[t];
  b[t] = work[t ^ 32];
}
__device__ float kept[64];
extern "C" __global__ void module_variable(float* a, float* b) {
  kept[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = kept[threadIdx.x ^ 32];
}

// a reduction of four words; the last of them is stored by another CTA
extern "C" __global__ void red_of_four(const float* in, float* out) {
  float v = in[blockIdx.x];
  if (blockIdx.x == 1) out[4] = v;
  if (blockIdx.x == 0) asm volatile("red.global.add.v4.f32 [%0], {%1,%1,%1,%1};" ::"l"(out), "f"(v) : "memory");
}
extern "C" __global__ void red_of_four_meets(const float* in, float* out) {
  float v = in[blockIdx.x];
  if (blockIdx.x == 1) out[3] = v;
  if (blockIdx.x == 0) asm volatile("red.global.add.v4.f32 [%0], {%1,%1,%1,%1};" ::"l"(out), "f"(v) : "memory");
}

// all CTAs add to the same words: the scope includes all of them, or each one alone
extern "C" __global__ void added_by_all(const float* in, float* out) {
  atomicAdd(out + threadIdx.x, in[blockIdx.x * 64 + threadIdx.x]);
}
extern "C" __global__ void added_by_all_at_cta_scope(const float* in, float* out) {
  atomicAdd_block(out + threadIdx.x, in[blockIdx.x * 64 + threadIdx.x]);
}
extern "C" __global__ void stored_by_all_at_cta_scope(float* out) {
  asm volatile("st.relaxed.cta.global.f32 [%0], %1;" ::"l"(out + threadIdx.x), "f"(float(blockIdx.x)) : "memory");
}
extern "C" __global__ void added_by_each_at_cta_scope(const float* in, float* out) {
  atomicAdd_block(out + blockIdx.x * 64 + threadIdx.x % 8, in[blockIdx.x * 64 + threadIdx.x]);
}

// constant data is what the kernel does not write: not even its own CTA, before a barrier
extern "C" __global__ void constant_load(float* work, const float* in, float* out) {
  int t = threadIdx.x + blockIdx.x * 64;
  work[t] = __ldg(in + t);
  __syncthreads();
  out[t] = work[t ^ 32];
}
extern "C" __global__ void constant_load_of_written(float* work, const float* in, float* out) {
  int t = threadIdx.x + blockIdx.x * 64;
  work[t] = in[t];
  __syncthreads();
  out[t] = __ldg(work + (t ^ 32));
}

// a bulk store, and what the same thread does to its bytes
extern "C" __global__ void bulk_store_then_store(float* out) {
  __shared__ alignas(128) float tile[64];
  tile_of(tile);
  if (threadIdx.x == 0) {
    store(out + blockIdx.x * 64, tile, 256);
    stored();
    out[blockIdx.x * 64] = 7;
  }
}
extern "C" __global__ void bulk_store_and_store(float* out) {
  __shared__ alignas(128) float tile[64];
  tile_of(tile);
  if (threadIdx.x == 0) {
    store(out + blockIdx.x * 64, tile, 256);
    out[blockIdx.x * 64] = 7;
    stored();
  }
}
extern "C" __global__ void bulk_stores_meet(float* out) {
  __shared__ alignas(128) float tile[64];
  tile_of(tile);
  if (threadIdx.x == 0) {
    store(out + blockIdx.x * 64, tile, 256);
    store(out + blockIdx.x * 64, tile, 256);
    stored();
  }
}
extern "C" __global__ void bulk_stores_apart(float* out) {
  __shared__ alignas(128) float tile[64];
  tile_of(tile);
  if (threadIdx.x == 0) {
    store(out + blockIdx.x * 64, tile, 128);
    store(out + blockIdx.x * 64 + 32, tile + 32, 128);
    stored();
  }
}
// in place: what one warp has loaded, its thread stores as a whole; and an asynchronous load of what is stored later
extern "C" __global__ void bulk_in_place(float* out) {
  __shared__ alignas(128) float tile[64];
  tile[threadIdx.x] = out[blockIdx.x * 64 + threadIdx.x] + 1.0f;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out + blockIdx.x * 64, tile, 256);
    stored();
    out[blockIdx.x * 64 + 1] = out[blockIdx.x * 64] + 1.0f;
  }
}
extern "C" __global__ void copied_and_stored(float* work, float* out) {
  __shared__ alignas(128) float tile[32];
  float* mine = work + blockIdx.x * 32 + threadIdx.x;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared(tile + threadIdx.x)), "l"(mine) : "memory");
  *mine = 3;
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];
}
