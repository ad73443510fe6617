// Kernels that are right or wrong in global memory alone: each twice, and the wrong one as the name says.
// Made into PTX by NVRTC: --gpu-architecture=sm_90a -lineinfo
// each CTA has words of its own; or all CTAs have the same ones
extern "C" __global__ void own_words(float* out, const float* in) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] + 1.0f;
}
extern "C" __global__ void same_words(float* out, const float* in) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[threadIdx.x] = in[i] + 1.0f;
}

// rows of 100 words by 8 threads a row: the last CTA begins at a row that fits, and writes only its own
extern "C" __global__ void ragged(float* out, const float* in, int rows) {
  int row = blockIdx.x * 16 + threadIdx.x / 8;
  if (row < rows)
    for (int c = threadIdx.x % 8; c < 100; c += 8) out[row * 100 + c] = in[c];
}
extern "C" __global__ void ragged_overlap(float* out, const float* in, int rows) {
  int first = blockIdx.x * 16;
  if (first + 16 > rows) first = rows - 16;  // shifted back: it writes rows of the CTA before
  int row = first + threadIdx.x / 8;
  for (int c = threadIdx.x % 8; c < 100; c += 8) out[row * 100 + c] = in[c] * blockIdx.x;
}

// a warp reads what another one has stored
extern "C" __global__ void exchanged(float* work, float* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  work[i] = float(i);
  __syncthreads();
  out[i] = work[i ^ 32];
}
extern "C" __global__ void exchanged_early(float* work, float* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  work[i] = float(i);
  out[i] = work[i ^ 32];
  __syncthreads();
}

// what a bulk store has written is read after its group is complete; or after its source is free
template <bool READ>
static __device__ void stored_and_read(float* work, float* out) {
  __shared__ alignas(128) float tile[64];
  tile[threadIdx.x] = float(threadIdx.x);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float* mine = work + blockIdx.x * 64;
  if (threadIdx.x == 0) {
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(mine), "r"(at) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    if (READ)
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    else
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = mine[63 - threadIdx.x];
}
extern "C" __global__ void bulk_complete(float* work, float* out) { stored_and_read<false>(work, out); }
extern "C" __global__ void bulk_source_free(float* work, float* out) { stored_and_read<true>(work, out); }

// in place: the stride of a CTA is the words that it updates, or fewer
extern "C" __global__ void in_place(float* data, int stride) {
  unsigned i = blockIdx.x * stride + threadIdx.x;
  data[i] = data[i] * 0.5f;
}

// a stencil: from another array, or from the one that neighbours write
extern "C" __global__ void halo(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float left = i > 0 ? in[i - 1] : 0.0f, right = i + 1 < n ? in[i + 1] : 0.0f;
  if (i < n) out[i] = 0.5f * (left + right);
}
extern "C" __global__ void halo_in_place(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float left = i > 0 ? out[i - 1] : 0.0f;
  __syncthreads();
  if (i < n) out[i] = 0.5f * (left + in[i]);
}

// sums: all CTAs add to one word, or store to it
extern "C" __global__ void summed(float* sum, const float* in) {
  float mine = in[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(sum + threadIdx.x % 4, mine);
}
extern "C" __global__ void summed_and_read(float* sum, const float* in, float* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(sum + threadIdx.x % 4, in[i]);
  __syncthreads();
  out[i] = sum[0];  // of the CTAs that were there until now
}

// a grid of two dimensions with a pitch: rows of tiles that do not overlap; or a pitch of fewer words than a row has
extern "C" __global__ void pitched(float* out, int pitch) {
  unsigned x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 4 + threadIdx.x / 32;
  out[y * pitch + x] = float(x);
}

// where it stores is data
extern "C" __global__ void scattered(float* out, const int* where, const float* in) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[where[i]] = in[i];
}
// where it loads is data, of what nobody writes
extern "C" __global__ void gathered(float* out, const int* where, const float* in) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[where[i]];
}
// each CTA clears what all of them add to
extern "C" __global__ void cleared_by_all(float* sum, const float* in) {
  if (threadIdx.x < 4) sum[threadIdx.x] = 0.0f;
  __syncthreads();
  atomicAdd(sum + threadIdx.x % 4, in[blockIdx.x * blockDim.x + threadIdx.x]);
}
// each CTA raises a flag: all store the same
extern "C" __global__ void raised(int* flag, float* out, int value) {
  if (threadIdx.x == 0) flag[0] = value + 1;
  out[blockIdx.x * blockDim.x + threadIdx.x] = 0.0f;
}
