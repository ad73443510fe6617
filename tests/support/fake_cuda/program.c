/* A program that uses the driver as its arguments say, one command after the other; a command's values follow it.

   Code:      data|dataex|fatbinary|wrapper|link FILE   file FILE   library FILE   libraryfile FILE   unload
              copied FILE (given to the driver in memory that is cleared right after)
   Values:    number N (of every 4-byte parameter)   shift BYTES (of pointers)   grid X   block X   shared BYTES
              tiled   im2col   wide   replace (a tensor map for every 128-byte parameter)   busy 0|1   stream 0|1
              contents N (the first 4 bytes that pointers lead to)
   Launches:  launch|ex|cluster|cooperative|extra|thread|function KERNEL   repeat COUNT KERNEL   threads COUNT KERNEL
              graph|captured KERNEL (with a cluster of 2, or without)   nodes KERNEL (added, in a graph in a graph)
              updated|disabled KERNEL (a graph of two, with a kernel of grid 2, then one of grid 3; or a node switched)
              late|branched KERNEL (one that comes into a graph of kernels without barriers, by changes of one node and
              of all nodes, which follow each other, or do not)
              device KERNEL (a graph that can be launched from the device)
              context N (of the second device for 1)
              files 1 (closes all files but the first three, and opens the file "mine" under each number)
   At the end it prints what the launches did. */
#define _GNU_SOURCE
#include "cuda.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static CUmodule module;
static CUlibrary library;
static CUstream stream;
static CUdeviceptr memory;
static CUtensorMap map;
static unsigned number, grid = 4, block = 128, shared, repeats;
static uint64_t shift;

static void require(CUresult result, const char *what) {
  if (result) {
    printf("%s: %d\n", what, result);
    exit(3);
  }
}
static int among(const char *words, const char *word) {
  char spaced[64];
  snprintf(spaced, sizeof spaced, " %s ", word);
  return strstr(words, spaced) != NULL;
}
static char *file(const char *path, size_t *size) { /* with a NUL at the end, and unmapped memory soon after it */
  FILE *in = fopen(path, "rb");
  if (!in) {
    perror(path);
    exit(3);
  }
  char *data = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *size = fread(data, 1, (1 << 20) - 1, in);
  fclose(in);
  size_t kept = (*size + 4096) / 4096 * 4096;
  munmap(data + kept, (1 << 20) - kept);
  return data;
}
static void load(const char *how, const char *path) {
  size_t size = 0;
  library = NULL;
  if (!strcmp(how, "file")) {
    require(cuModuleLoad(&module, path), how);
    return;
  }
  if (!strcmp(how, "libraryfile")) {
    require(cuLibraryLoadFromFile(&library, path, 0, 0, 0, 0, 0, 0), how);
    return;
  }
  char *data = file(path, &size);
  if (!strcmp(how, "dataex")) require(cuModuleLoadDataEx(&module, data, 0, NULL, NULL), how);
  else if (!strcmp(how, "fatbinary")) require(cuModuleLoadFatBinary(&module, data), how);
  else if (!strcmp(how, "library")) require(cuLibraryLoadData(&library, data, 0, 0, 0, 0, 0, 0), how);
  else if (!strcmp(how, "wrapper")) {
    static struct {
      int magic, version;
      const void *data;
      void *name;
    } wrapper = {0x466243B1, 1, NULL, NULL};
    wrapper.data = data;
    require(cuModuleLoadData(&module, &wrapper), how);
  } else if (!strcmp(how, "link")) {
    CUlinkState state;
    void *cubin;
    require(cuLinkCreate_v2(0, NULL, NULL, &state), how);
    require(cuLinkAddData_v2(state, 1, data, size + 1, path, 0, NULL, NULL), how);
    require(cuLinkComplete(state, &cubin, &size), how);
    require(cuModuleLoadData(&module, memcpy(malloc(size), cubin, size)), how);
  } else {
    require(cuModuleLoadData(&module, data), how);
    if (!strcmp(how, "copied")) memset(data, 0, size);
  }
}
static void encode(const char *how) {
  uint64_t dims[5] = {1024, 512, 8, 4, 2}, strides[4] = {2048, 1 << 20, 1 << 23, 1 << 25};
  uint32_t box[2] = {64, 128}, steps[5] = {1, 1, 1, 1, 1};
  int lower[3] = {0, 0, 0}, upper[3] = {0, 0, 0};
  void *at = (void *)(uintptr_t)(memory + shift);
  if (!strcmp(how, "tiled"))
    require(cuTensorMapEncodeTiled(&map, 9, 2, at, dims, strides, box, steps, 0, 3, 0, 0), how);
  if (!strcmp(how, "im2col"))
    require(cuTensorMapEncodeIm2col(&map, 6, 5, at, dims, strides, lower, upper, 32, 64, steps, 0, 1, 0, 0), how);
  if (!strcmp(how, "wide"))
    require(cuTensorMapEncodeIm2colWide(&map, 6, 5, at, dims, strides, 0, 0, 32, 96, steps, 0, 1, 3, 0, 0), how);
  if (!strcmp(how, "replace")) require(cuTensorMapReplaceAddress(&map, at), how);
}
static void close_files(void) { /* as a program that becomes a daemon, and then opens its own */
  for (int i = 3; i < 64; i++) close(i);
  for (int i = 3; i < 64; i++) (void)!open("mine", O_WRONLY | O_CREAT, 0600);
}
static CUfunction function_named(const char *name) {
  CUfunction f;
  if (library) {
    require(cuLibraryGetKernel(&f, library, name), name);
    return f;
  }
  require(cuModuleGetFunction(&f, module, name), name);
  return f;
}
/* The kernel's parameters by its name, as the fake driver has them, in one buffer and as a list of pointers. */
static size_t values(const char *name, char *buffer, void **list) {
  size_t end = 0, count = 0;
  char *at = strstr(name, "__");
  for (at = at ? at + 2 : ""; *at; at += strspn(at, "_"), count++) {
    size_t size = strtoul(at, &at, 10), align = size % 64 == 0 ? 64 : size % 8 == 0 ? 8 : size & -size;
    uint64_t address = memory + shift;
    end = (end + align - 1) / align * align;
    if (size == 4) memcpy(buffer + end, &number, 4);
    else if (size == 128) memcpy(buffer + end, &map, 128);
    else {
      memset(buffer + end, 0x11, size);
      memcpy(buffer + end + (size > 8 ? 8 : 0), &address, 8); /* a structure has its pointer in the second word */
    }
    list[count] = buffer + end;
    end += size;
  }
  return end;
}
static void launch(const char *how, const char *name) {
  _Alignas(64) char buffer[4096];
  void *list[256];
  size_t nbytes = values(name, buffer, list);
  CUfunction f = function_named(name);
  if (!strcmp(how, "function")) require(cuKernelGetFunction(&f, f), how);
  if (!strcmp(how, "cooperative"))
    require(cuLaunchCooperativeKernel(f, grid, 1, 1, block, 1, 1, shared, stream, list), how);
  else if (!strcmp(how, "thread"))
    require(cuLaunchKernel_ptsz(f, grid, 1, 1, block, 1, 1, shared, NULL, list, NULL), how);
  else if (!strcmp(how, "extra")) {
    void *extra[] = {(void *)1, buffer, (void *)2, &nbytes, NULL};
    require(cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, stream, NULL, extra), how);
  } else if (!strcmp(how, "ex") || !strcmp(how, "cluster")) {
    CUlaunchAttribute attributes[2] = {{.id = 2}, {.id = 4, .value.clusterDim = {2, 1, 1}}};
    CUlaunchConfig config = {grid, 1, 1, block, 1, 1, shared, stream, attributes, *how == 'c' ? 2 : 1};
    require(cuLaunchKernelEx(&config, f, list, NULL), how);
  } else require(cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, stream, list, NULL), how);
}
static void *many(void *name) {
  for (unsigned i = 0; i < 50; i++) launch("launch", name);
  return NULL;
}
static void updated_graph(const char *how, const char *name) {
  CUgraph made;
  CUgraphNode node, other;
  void *executable, *list[256];
  _Alignas(64) char buffer[4096];
  values(name, buffer, list);
  CUDA_KERNEL_NODE_PARAMS params = {function_named(name), grid, 1, 1, block, 1, 1, shared, list, NULL, NULL, NULL};
  require(cuGraphCreate(&made, 0), how);
  require(cuGraphAddKernelNode_v2(&node, made, NULL, 0, &params), how);
  require(cuGraphAddKernelNode_v2(&other, made, &node, 1, &params), how);
  require(cuGraphInstantiateWithFlags(&executable, made, 0), how);
  require(cuGraphLaunch(executable, stream), how);
  if (!strcmp(how, "disabled")) require(cuGraphNodeSetEnabled(executable, node, 1), how);
  params.gridDimX = 2;
  require(cuGraphExecKernelNodeSetParams_v2(executable, node, &params), how);
  require(cuGraphLaunch(executable, stream), how);
  require(cuGraphCreate(&made, 0), how);
  params.gridDimX = 3;
  require(cuGraphAddKernelNode_v2(&node, made, NULL, 0, &params), how);
  require(cuGraphAddKernelNode_v2(&other, made, &node, 1, &params), how);
  require(cuGraphExecUpdate_v2(executable, made, NULL), how);
  require(cuGraphLaunch(executable, stream), how);
  require(cuGraphExecDestroy(executable), how);
}
/* A graph of two kernels, with their grids. */
static CUgraph two(const char *how, const char *first, unsigned grid_of_first, const char *second, CUgraphNode *node) {
  CUgraph made;
  CUgraphNode other;
  static void *list[256]; /* the fake driver keeps their addresses */
  static _Alignas(64) char buffer[4096];
  values(first, buffer, list); /* both have the same parameters */
  CUDA_KERNEL_NODE_PARAMS params = {function_named(first), grid_of_first, 1, 1, block, 1, 1, shared, list, NULL, NULL, NULL};
  require(cuGraphCreate(&made, 0), how);
  require(cuGraphAddKernelNode_v2(node, made, NULL, 0, &params), how);
  params.func = function_named(second);
  params.gridDimX = grid;
  require(cuGraphAddKernelNode_v2(&other, made, node, *how != 'b', &params), how);
  return made;
}
static void late_graph(const char *how, const char *name) {
  const char *plain = "plain__8_4";
  CUgraphNode node, other;
  void *executable, *list[256];
  _Alignas(64) char buffer[4096];
  values(name, buffer, list);
  CUDA_KERNEL_NODE_PARAMS params = {function_named(name), 2, 1, 1, block, 1, 1, shared, list, NULL, NULL, NULL};
  require(cuGraphInstantiateWithFlags(&executable, two(how, plain, 1, plain, &node), 0), how);
  for (int i = 0; i < 2; i++) require(cuGraphLaunch(executable, stream), how);
  require(cuGraphExecKernelNodeSetParams_v2(executable, node, &params), how);
  require(cuGraphLaunch(executable, stream), how);
  require(cuGraphExecUpdate_v2(executable, two(how, plain, 1, plain, &other), NULL), how);
  require(cuGraphLaunch(executable, stream), how);
  require(cuGraphExecUpdate_v2(executable, two(how, name, 3, plain, &other), NULL), how);
  require(cuGraphLaunch(executable, stream), how);
  params.gridDimX = 4;
  require(cuGraphExecKernelNodeSetParams_v2(executable, node, &params), how);
  require(cuGraphLaunch(executable, stream), how);
}
static void graph(const char *how, const char *name) {
  CUgraph made, outer;
  CUgraphNode node;
  void *executable, *list[256];
  _Alignas(64) char buffer[4096];
  if (among(" graph captured ", how)) {
    CUstream before = stream;
    require(cuStreamCreate(&stream, 0), how);
    require(cuStreamBeginCapture_v2(stream, 0), how);
    launch(*how == 'g' ? "cluster" : "launch", name);
    require(cuStreamEndCapture(stream, &outer), how);
    stream = before;
  } else {
    values(name, buffer, list);
    CUDA_KERNEL_NODE_PARAMS params = {function_named(name), grid, 1, 1, block, 1, 1, shared, list, NULL, NULL, NULL};
    require(cuGraphCreate(&made, 0) || cuGraphCreate(&outer, 0), how);
    if (library) {
      params.kern = params.func;
      params.func = NULL;
    }
    require(cuGraphAddKernelNode_v2(&node, made, NULL, 0, &params), how);
    require(cuGraphAddChildGraphNode(&node, outer, NULL, 0, made), how);
  }
  require(cuGraphInstantiateWithFlags(&executable, outer, *how == 'd' ? 4 : 2 * (*how == 'n')), how);
  for (int i = 0; i < 3; i++) require(cuGraphLaunch(executable, stream), how);
}
int main(int argc, char **argv) {
  CUcontext context;
  require(cuInit(0), "cuInit");
  require(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
  require(cuMemAlloc_v2(&memory, 1 << 16), "cuMemAlloc");
  for (int i = 1; i < argc; i++) {
    const char *how = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
    if (among(" tiled im2col wide replace ", how)) {
      encode(how);
      continue;
    }
    if (!strcmp(how, "unload")) {
      library ? cuLibraryUnload(library) : cuModuleUnload(module);
      continue;
    }
    i++;
    if (among(" data dataex fatbinary wrapper link file library libraryfile copied ", how)) load(how, value);
    else if (!strcmp(how, "number")) number = (unsigned)atoi(value);
    else if (!strcmp(how, "shift")) shift = strtoull(value, NULL, 10);
    else if (!strcmp(how, "files")) close_files();
    else if (!strcmp(how, "grid")) grid = (unsigned)atoi(value);
    else if (!strcmp(how, "block")) block = (unsigned)atoi(value);
    else if (!strcmp(how, "shared")) shared = (unsigned)atoi(value);
    else if (!strcmp(how, "contents")) *(unsigned *)(uintptr_t)(memory + shift) = (unsigned)atoi(value);
    else if (!strcmp(how, "stream")) {
      stream = NULL;
      if (atoi(value)) require(cuStreamCreate(&stream, 0), how);
    } else if (!strcmp(how, "busy")) fakeBusy(stream, atoi(value));
    else if (!strcmp(how, "updated") || !strcmp(how, "disabled")) updated_graph(how, value);
    else if (!strcmp(how, "late") || !strcmp(how, "branched")) late_graph(how, value);
    else if (!strcmp(how, "context")) require(cuCtxCreate_v2(&context, 0, atoi(value)), how);
    else if (among(" graph captured nodes device ", how)) graph(how, value);
    else if (!strcmp(how, "repeat")) {
      for (repeats = (unsigned)atoi(value), i++; repeats; repeats--) launch("launch", argv[i]);
    } else if (!strcmp(how, "threads")) {
      pthread_t threads[64];
      int count = atoi(value) % 64;
      i++;
      for (int t = 0; t < count; t++) pthread_create(&threads[t], NULL, many, argv[i]);
      for (int t = 0; t < count; t++) pthread_join(threads[t], NULL);
    } else launch(how, value);
  }
  printf("%d\n", *(int *)(uintptr_t)(memory + shift));
  return 0;
}
