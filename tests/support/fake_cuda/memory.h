/* The driver without a GPU: memory and streams. Included by cuda.c alone. */

/* memory */

static struct {
  CUdeviceptr start;
  size_t nbytes;
} memory[MOST];
static int allocations;

static int allocation_of(CUdeviceptr address) {
  for (int i = 0; i < allocations; i++)
    if (address - memory[i].start < memory[i].nbytes) return i;
  return -1;
}
CUDA_API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t nbytes) {
  void *data = NULL;
  if (allocations == MOST || posix_memalign(&data, 4096, nbytes + 4096)) return 2;
  memset(data, 0, nbytes);
  *address = memory[allocations].start =
      (CUdeviceptr)(uintptr_t)data + 512; /* as the driver: aligned to 512, not more */
  memory[allocations++].nbytes = nbytes;
  return 0;
}
CUDA_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *nbytes, CUdeviceptr address) {
  int i = allocation_of(address);
  if (i < 0) return INVALID_VALUE;
  *start = memory[i].start;
  *nbytes = memory[i].nbytes;
  return 0;
}
CUDA_API CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address) {
  int i = allocation_of(address);
  if (i < 0) return INVALID_VALUE;
  if (attribute == 2) *(unsigned *)data = 2;
  else if (attribute == 11) *(CUdeviceptr *)data = memory[i].start;
  else if (attribute == 12) *(size_t *)data = memory[i].nbytes;
  else if (attribute == 13) *(int *)data = 1;
  else return INVALID_VALUE;
  return 0;
}
CUDA_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t nbytes) {
  if (allocation_of(to) < 0) return INVALID_VALUE;
  memcpy((void *)(uintptr_t)to, from, nbytes);
  return 0;
}
CUDA_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t nbytes) {
  int i = allocation_of(from);
  if (i < 0 || from + nbytes > memory[i].start + memory[i].nbytes) return INVALID_VALUE;
  memcpy(to, (void *)(uintptr_t)from, nbytes);
  return 0;
}
CUDA_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t nbytes, CUstream stream) {
  return stream && stream->capture ? 900 : cuMemcpyDtoH_v2(to, from, nbytes);
}

CUDA_API CUresult cuMemFree_v2(CUdeviceptr address) {
  int i = allocation_of(address);
  if (i < 0 || memory[i].start != address) return INVALID_VALUE;
  memory[i] = memory[--allocations];
  return 0;
}
CUDA_API CUresult cuMemHostAlloc(void **place, size_t nbytes, unsigned flags) {
  *place = calloc(1, nbytes);
  return flags == 3 ? 0 : INVALID_VALUE;
}
CUDA_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *place, unsigned flags) {
  *address = (CUdeviceptr)(uintptr_t)place;
  return 0 * (int)flags;
}
CUDA_API CUresult cuMemFreeHost(void *place) {
  free(place);
  return 0;
}
CUDA_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t nbytes, CUstream stream) {
  memcpy((void *)(uintptr_t)to, from, nbytes); /* to an allocation, or to a variable of a module */
  return 0 * (stream != NULL);
}

/* streams */

static struct FakeStream usual[3]; /* those that every thread has: 0, 1 and 2 */
static CUstream stream_of(CUstream stream) { return (uintptr_t)stream > 2 ? stream : &usual[(uintptr_t)stream]; }

static int is_made(CUstream stream) { return (uintptr_t)stream > 2; } /* not a stream that every thread has */
CUDA_API CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  *stream = calloc(1, sizeof **stream);
  return 0 * (int)flags;
}
CUDA_API CUresult cuStreamDestroy_v2(CUstream stream) {
  free(stream);
  return 0;
}
CUDA_API CUresult cuStreamQuery(CUstream stream) {
  stream = stream_of(stream);
  if (stream->until && *(volatile const uint32_t *)stream->until) stream->busy = 0;
  return stream->capture ? 900 : stream->error ? stream->error : stream->busy ? NOT_READY : 0;
}
CUDA_API CUresult cuStreamSynchronize(CUstream stream) { return is_made(stream) && stream->capture ? 900 : 0; }
CUDA_API CUresult cuStreamIsCapturing(CUstream stream, int *status) {
  *status = is_made(stream) && stream->capture;
  return getenv("FAKE_CUDA_CAPTURE_UNKNOWN") ? 906 : 0;
}
CUDA_API CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  stream->capture = calloc(1, sizeof *stream->capture);
  return 0 * mode;
}
CUDA_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  *graph = stream->capture;
  stream->capture = NULL;
  return 0;
}
