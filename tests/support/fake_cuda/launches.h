/* The driver without a GPU: tensor maps, launches and graphs. Included by cuda.c alone.

   The parameters that CUPTI reports are declared here once more, and not shared with driver.h of pipesim: the library
   that is tested and the driver that tests it must not agree by having one mistake in common. */

/* tensor maps: 128 bytes that depend on all arguments */

struct tensor_params { /* which those of each function begin with */
  CUtensorMap *map;
  int element;
  uint32_t rank;
  void *address;
  const uint64_t *dims, *strides;
};
static CUresult encode(CUtensorMap *map, void *address, uint64_t sum) {
  map->opaque[0] = (uint64_t)(uintptr_t)address;
  for (int i = 1; i < 16; i++) map->opaque[i] = sum = sum * 6364136223846793005u + 1442695040888963407u;
  return 0;
}
CUDA_API CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int element, uint32_t rank, void *address,
                                         const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                                         const uint32_t *steps, int interleave, int swizzle, int l2, int fill) {
  struct {
    struct tensor_params tensor;
    const uint32_t *box, *steps;
    int interleave, swizzle, l2, fill;
  } P = {{map, element, rank, address, dims, strides}, box, steps, interleave, swizzle, l2, fill};
  REPORTED(697, "cuTensorMapEncodeTiled", NULL, encode(map, address, dims[0] * 977 + box[0] * 31 + (uint64_t)swizzle));
}
CUDA_API CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, int element, uint32_t rank, void *address,
                                          const uint64_t *dims, const uint64_t *strides, const int *lower,
                                          const int *upper, uint32_t channels, uint32_t pixels, const uint32_t *steps,
                                          int interleave, int swizzle, int l2, int fill) {
  struct {
    struct tensor_params tensor;
    const int *lower, *upper;
    uint32_t channels, pixels;
    const uint32_t *steps;
    int interleave, swizzle, l2, fill;
  } P = {{map, element, rank, address, dims, strides},
         lower, upper, channels, pixels, steps, interleave, swizzle, l2, fill};
  REPORTED(698, "cuTensorMapEncodeIm2col", NULL, encode(map, address, dims[0] * 977 + channels * 31 + pixels));
}
CUDA_API CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *map, int element, uint32_t rank, void *address,
                                              const uint64_t *dims, const uint64_t *strides, int lower, int upper,
                                              uint32_t channels, uint32_t pixels, const uint32_t *steps, int interleave,
                                              int mode, int swizzle, int l2, int fill) {
  struct {
    struct tensor_params tensor;
    int lower, upper;
    uint32_t channels, pixels;
    const uint32_t *steps;
    int interleave, mode, swizzle, l2, fill;
  } P = {{map, element, rank, address, dims, strides},
         lower, upper, channels, pixels, steps, interleave, mode, swizzle, l2, fill};
  REPORTED(781, "cuTensorMapEncodeIm2colWide", NULL, encode(map, address, dims[0] * 977 + channels * 37 + pixels));
}
CUDA_API CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address) {
  struct {
    CUtensorMap *map;
    void *address;
  } P = {map, address};
  REPORTED(699, "cuTensorMapReplaceAddress", NULL, (map->opaque[0] = (uint64_t)(uintptr_t)address, 0));
}

/* launches */

static struct FakeNode *added(struct FakeGraph *graph, int type) {
  struct FakeNode *node = calloc(1, sizeof *node);
  node->type = type;
  return graph->count < MOST ? graph->nodes[graph->count++] = node : node;
}
static void recorded(CUfunction f, CUstream stream) { /* what an instrumented kernel leaves in its buffer */
  uint32_t *buffer = (uint32_t *)(uintptr_t)(f->kernel ? f->kernel : f)->owner->buffer;
  const char *path = getenv("FAKE_CUDA_RECORDS");
  FILE *from = path ? fopen(path, "rb") : NULL;
  stream = stream_of(stream);
  if (!buffer) return;
  for (int byte, i = 0; from && (byte = fgetc(from)) != EOF; i++) ((char *)buffer)[i] = (char)byte;
  if (from) fclose(from);
  if (!strncmp(f->name, "hangs", 5) || !strncmp(f->name, "stuck", 5)) stream->busy = 1;
  stream->until = strncmp(f->name, "stuck", 5) ? buffer : NULL;
  if (!strncmp(f->name, "traps", 5)) stream->error = 719;
}
static CUresult launch(CUfunction f, const unsigned *shape, const unsigned *cluster, CUstream stream, void **params,
                       void **extra) {
  size_t offset, nbytes, count = 0;
  if (f->magic != FUNCTION && f->magic != KERNEL) return INVALID_HANDLE;
  char *buffer =
      !params && extra ? extra[1] : NULL; /* of CU_LAUNCH_PARAM_BUFFER_POINTER, which our program gives first */
  if (is_made(stream) && stream->capture) {
    if (f->magic == KERNEL) loaded(&f, f); /* as of driver 580 */
    CUDA_KERNEL_NODE_PARAMS node = {f,
                                    shape[0],
                                    shape[1],
                                    shape[2],
                                    shape[3],
                                    shape[4],
                                    shape[5],
                                    shape[6],
                                    NULL,
                                    NULL,
                                    NULL,
                                    current};
    node.kernelParams = calloc(MOST, sizeof(void *));
    for (; parameter(f->name, count, &offset, &nbytes); count++)
      node.kernelParams[count] = memcpy(malloc(nbytes), buffer ? buffer + offset : params[count], nbytes);
    struct FakeNode *made = added(stream->capture, 0);
    made->after = stream->capture->count > 1 ? stream->capture->nodes[stream->capture->count - 2] : NULL;
    made->params = node;
    if (cluster) memcpy(made->cluster, cluster, sizeof made->cluster);
    return 0;
  }
  if (!strncmp(f->name, "killed", 6)) raise(SIGKILL);
  for (; parameter(f->name, count, &offset, &nbytes); count++) {
    CUdeviceptr address;
    if (nbytes != 8) continue;
    memcpy(&address, buffer ? buffer + offset : params[count], 8);
    if (allocation_of(address) >= 0) __atomic_add_fetch((int *)(uintptr_t)address, 1, __ATOMIC_RELAXED);
    break;
  }
  recorded(f, stream);
  return 0;
}
struct launch_params {
  CUfunction f;
  unsigned shape[7];
  CUstream stream;
  void **params, **extra;
};
CUDA_API CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {
  struct launch_params P = {f, {gx, gy, gz, bx, by, bz, shared}, stream, params, extra};
  REPORTED(307, "cuLaunchKernel", f->name, launch(P.f, P.shape, NULL, stream, params, extra));
}
CUDA_API CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                      unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {
  struct launch_params P = {f, {gx, gy, gz, bx, by, bz, shared}, stream, params, extra};
  REPORTED(442, "cuLaunchKernel_ptsz", f->name, launch(P.f, P.shape, NULL, stream, params, extra));
}
CUDA_API CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                            unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params) {
  /* What follows these parameters in memory is not a list of extras. */
  struct {
    CUfunction f;
    unsigned shape[7];
    CUstream stream;
    void **params;
  } P = {f, {gx, gy, gz, bx, by, bz, shared}, stream, params};
  REPORTED(477, "cuLaunchCooperativeKernel", f->name, launch(P.f, P.shape, NULL, stream, params, NULL));
}
CUDA_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra) {
  struct {
    const CUlaunchConfig *config;
    CUfunction f;
    void **params, **extra;
  } P = {config, f, params, extra};
  const unsigned *cluster = NULL;
  for (unsigned i = 0; i < config->numAttrs; i++)
    if (config->attrs[i].id == 4) cluster = &config->attrs[i].value.clusterDim.x;
  REPORTED(652, "cuLaunchKernelEx", f->name, launch(P.f, &config->gridDimX, cluster, config->hStream, params, extra));
}

/* graphs */

CUDA_API CUresult cuGraphCreate(CUgraph *graph, unsigned flags) {
  *graph = calloc(1, sizeof **graph);
  return 0 * (int)flags;
}
CUDA_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                          const CUDA_KERNEL_NODE_PARAMS *params) {
  *node = added(graph, 0);
  (*node)->params = *params;
  (*node)->after = count ? *after : NULL;
  return 0;
}
CUDA_API CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                           CUgraph child) {
  *node = added(graph, 4);
  (*node)->child = child;
  return 0 * (int)(count + !after);
}
CUDA_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  if (nodes) memcpy(nodes, graph->nodes, (*count < graph->count ? *count : graph->count) * sizeof *nodes);
  *count = graph->count;
  return 0;
}
CUDA_API CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
  size_t edges = 0;
  for (size_t i = 0; i < graph->count; i++) {
    if (!graph->nodes[i]->after) continue;
    if (from) {
      from[edges] = graph->nodes[i]->after;
      to[edges] = graph->nodes[i];
    }
    edges++;
  }
  *count = edges;
  return 0;
}
CUDA_API CUresult cuGraphNodeGetType(CUgraphNode node, int *type) {
  *type = node->type;
  return 0;
}
CUDA_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph) {
  return node->type == 4 ? (*graph = node->child, 0) : INVALID_VALUE;
}
CUDA_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params) {
  *params = node->params;
  return node->type ? INVALID_VALUE : 0;
}
CUDA_API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, int attribute, void *value) {
  if (attribute != 4) return INVALID_VALUE;
  memcpy(value, node->cluster, sizeof node->cluster);
  return 0;
}
static struct FakeNode *copied_node(struct FakeGraph *to, struct FakeNode *from) {
  struct FakeNode *made = added(to, from->type);
  *made = *from;
  made->origin = from;
  return made;
}
static struct FakeGraph *copied_graph(struct FakeGraph *graph) {
  struct FakeGraph *made = calloc(1, sizeof *made);
  for (size_t i = 0; i < graph->count; i++) {
    struct FakeNode *node = copied_node(made, graph->nodes[i]);
    if (node->child) node->child = copied_graph(node->child);
    for (size_t j = 0; node->after && j < i; j++)
      if (graph->nodes[j] == node->after) {
        node->after = made->nodes[j];
        break;
      }
  }
  return made;
}
CUDA_API CUresult cuGraphClone(CUgraph *made, CUgraph graph) {
  *made = copied_graph(graph);
  return getenv("FAKE_CUDA_NO_COPIES") ? 801 : 0;
}
CUDA_API CUresult cuGraphDestroy(CUgraph graph) {
  graph->count = 0;
  return 0;
}
CUDA_API CUresult cuGraphNodeFindInClone(CUgraphNode *found, CUgraphNode node, CUgraph graph) {
  for (size_t i = 0; i < graph->count; i++)
    if (graph->nodes[i]->origin == node) return *found = graph->nodes[i], 0;
  return INVALID_VALUE;
}
CUDA_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params) {
  node->params = *params;
  memset(node->cluster, 0, sizeof node->cluster); /* as if these belonged to the kernel */
  return 0;
}
CUDA_API CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  memcpy(to->cluster, from->cluster, sizeof to->cluster);
  return 0;
}
static CUresult instantiated(void **executable, CUgraph graph) {
  *executable = copied_graph(graph);
  return 0;
}
CUDA_API CUresult cuGraphInstantiateWithFlags(void **executable, CUgraph graph, unsigned long long flags) {
  struct {
    void **executable;
    CUgraph graph;
    unsigned long long flags;
  } P = {executable, graph, flags};
  REPORTED(643, "cuGraphInstantiateWithFlags", NULL, instantiated(executable, graph));
}
static CUresult replaced(struct FakeGraph *executable, CUgraph graph) {
  if (executable->count != graph->count) return 910;
  for (size_t i = 0; i < graph->count; i++) {
    struct FakeNode *node = executable->nodes[i], *other = graph->nodes[i];
    if (node->child && replaced(node->child, other->child)) return 910;
    node->params = other->params;
    memcpy(node->cluster, other->cluster, sizeof node->cluster);
  }
  return 0;
}
CUDA_API CUresult cuGraphExecUpdate_v2(void *executable, CUgraph graph, void *result) {
  struct {
    void *executable;
    CUgraph graph;
    void *result;
  } P = {executable, graph, result};
  REPORTED(696, "cuGraphExecUpdate_v2", NULL, replaced(executable, graph));
}
CUDA_API CUresult cuGraphExecKernelNodeSetParams_v2(void *executable, CUgraphNode node,
                                                    const CUDA_KERNEL_NODE_PARAMS *params) {
  struct {
    void *executable;
    CUgraphNode node;
    const CUDA_KERNEL_NODE_PARAMS *params;
  } P = {executable, node, params};
  CUgraphNode mine = NULL;
  cuGraphNodeFindInClone(&mine, node, executable);
  REPORTED(692, "cuGraphExecKernelNodeSetParams_v2", NULL, mine ? cuGraphKernelNodeSetParams_v2(mine, params) : 1);
}
CUDA_API CUresult cuGraphNodeSetEnabled(void *executable, CUgraphNode node, unsigned enabled) {
  struct {
    void *executable;
    CUgraphNode node;
    unsigned enabled;
  } P = {executable, node, enabled};
  REPORTED(650, "cuGraphNodeSetEnabled", NULL, 0);
}
CUDA_API CUresult cuGraphExecDestroy(void *executable) {
  struct {
    void *executable;
  } P = {executable};
  REPORTED(516, "cuGraphExecDestroy", NULL, cuGraphDestroy(executable));
}
static CUresult run(struct FakeGraph *graph, CUstream stream) {
  for (size_t i = 0; i < graph->count; i++) {
    struct FakeNode *node = graph->nodes[i];
    if (node->type == 4) run(node->child, stream);
    else
      launch(node->params.func ? node->params.func : node->params.kern, &node->params.gridDimX, NULL, stream,
             node->params.kernelParams, NULL);
  }
  return 0;
}
CUDA_API CUresult cuGraphLaunch(void *executable, CUstream stream) {
  struct {
    void *executable;
    CUstream stream;
  } P = {executable, stream};
  REPORTED(514, "cuGraphLaunch", NULL, run(executable, stream));
}
