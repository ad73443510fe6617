/* Records a launch of an instrumented kernel in a C or C++ program: docs/recording.md of pipesim.

   `pipesim instrument` writes NAME.cubin and NAME.buffer. Load the cubin as a module, then for one launch at a time:

     pipesim_open(&recording, "NAME.buffer")            -1 if the file cannot be used, or there is no memory
     pipesim_begin(&recording, module, stream)          before the launch: the buffer is as it must be, and the kernel's
     pipesim_end(&recording, stream, deadline_s)        waits; after deadline_s (0: never) it tells the kernel to end
     pipesim_write(&recording, "NAME.records")          for `pipesim decode`; -1 if it cannot be written
     pipesim_close(&recording)

   begin and end may be repeated; each records again. The buffer is memory of the host that the device can write, so that
   what was recorded is there whatever becomes of the kernel. Both files have 128 bytes, little-endian, then the buffer:

     0 "PIPESIMR"   8 u32 version, 1   12 u32 end (PIPESIM_...)   16 u32 SMs   20 u32 capability, major   24 u32 minor
     28 u32 driver's CUDA version   32 u64 bytes of the buffer   40 u64 ns from begin to end   48 char device[72]
     120 u32 how the kernel was instrumented (not to be changed)   124 u32 its CTA

   The first four bytes of the buffer are the word at which a kernel ends that `pipesim instrument` made. */
#ifndef PIPESIM_RECORD_H
#define PIPESIM_RECORD_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cuda.h>

enum { PIPESIM_FINISHED, PIPESIM_STOPPED, PIPESIM_RUNNING, PIPESIM_FAILED };
typedef struct {
  unsigned char head[128], *initial, *host; /* of the file; the buffer before a launch, and its memory */
  CUdeviceptr device;
  uint64_t nbytes, began;
} PipesimRecording;

static inline uint64_t pipesim_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
static inline void pipesim_put(PipesimRecording *r, int at, uint64_t value, size_t size) {
  memcpy(r->head + at, &value, size);
}
static inline int pipesim_open(PipesimRecording *r, const char *path) {
  FILE *in = fopen(path, "rb");
  memset(r, 0, sizeof *r);
  int read = in && fread(r->head, 128, 1, in) == 1 && !memcmp(r->head, "PIPESIMR\1\0\0\0", 12);
  memcpy(&r->nbytes, r->head + 32, 8);
  read = read && (r->initial = (unsigned char *)malloc(r->nbytes)) && fread(r->initial, r->nbytes, 1, in) == 1;
  if (in) fclose(in);
  /* 3: of every context, and mapped into the device's addresses */
  if (!read || cuMemHostAlloc((void **)&r->host, r->nbytes, 3)) return -1;
  return cuMemHostGetDevicePointer(&r->device, r->host, 0) ? -1 : 0;
}
static inline CUresult pipesim_begin(PipesimRecording *r, CUmodule module, CUstream stream) {
  CUdeviceptr symbol;
  size_t nbytes;
  memcpy(r->host, r->initial, r->nbytes);
  CUresult status = cuModuleGetGlobal(&symbol, &nbytes, module, "pipesim_buffer");
  r->began = pipesim_now();
  return status ? status : cuMemcpyHtoDAsync(symbol, &r->device, 8, stream);
}
static inline CUresult pipesim_end(PipesimRecording *r, CUstream stream, double deadline_s) {
  const double grace_s = 2; /* that a kernel has to end after its stop word was set */
  struct timespec pause = {0, 200000};
  uint64_t end = PIPESIM_FINISHED;
  CUresult status;
  while ((status = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
    double took = 1e-9 * (double)(pipesim_now() - r->began);
    if (deadline_s > 0 && took > deadline_s) {
      *(volatile uint32_t *)r->host = 1;
      end = PIPESIM_STOPPED;
    }
    if (deadline_s > 0 && took > deadline_s + grace_s) break;
    nanosleep(&pause, NULL);
  }
  if (status) end = status == CUDA_ERROR_NOT_READY ? PIPESIM_RUNNING : PIPESIM_FAILED;
  pipesim_put(r, 12, end, 4);
  pipesim_put(r, 40, pipesim_now() - r->began, 8);
  return status;
}
static inline int pipesim_write(PipesimRecording *r, const char *path) {
  int sms = 0, major = 0, minor = 0, driver = 0;
  CUdevice device;
  if (!cuCtxGetDevice(&device)) {
    cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    cuDeviceGetName((char *)r->head + 48, 71, device);
  }
  cuDriverGetVersion(&driver);
  pipesim_put(r, 16, (uint64_t)sms, 4);
  pipesim_put(r, 20, (uint64_t)major, 4);
  pipesim_put(r, 24, (uint64_t)minor, 4);
  pipesim_put(r, 28, (uint64_t)driver, 4);
  FILE *out = fopen(path, "wb");
  int written = out && fwrite(r->head, 128, 1, out) == 1 && fwrite(r->host, r->nbytes, 1, out) == 1;
  return out && !fclose(out) && written ? 0 : -1;
}
static inline void pipesim_close(PipesimRecording *r) { /* a kernel that still runs writes to the memory */
  uint32_t end;
  memcpy(&end, r->head + 12, 4);
  if (end != PIPESIM_RUNNING) cuMemFreeHost(r->host);
  free(r->initial);
}
#endif
