/* CUDA graphs whose kernels are recorded.

   A copy of each graph is made where it becomes executable, and follows what the program changes there, also after all
   its kernels were recorded: a change may bring another one. Before a launch
   of which a kernel is to be recorded, the executable graph is updated to another copy in which that kernel is exchanged,
   and right after the call it is updated back: an update is of later launches alone (cuGraphExecUpdate). So launches that
   are not recorded are of the program's own kernels, and the order of launches is as the program has made it. */
#ifndef PIPESIM_GRAPHS_H
#define PIPESIM_GRAPHS_H
#include "alike.h"

enum { MOST_NODES = 1 << 16, DEEPEST_GRAPH = 8, FROM_DEVICE = 4, /* CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH */
       GRAPH_CHOICE = 1 << 20, GRAPH_END, GRAPH_NOTE };             /* what a process that observes itself is called for */

typedef struct Graph {
  struct Graph *next;
  void *executable, *copy; /* the copy is NULL where it cannot be recorded */
  void **nodes; /* of the graph of which it was made, by which the program changes one, also after an update to another */
  size_t count;
  bool is_chain; /* each node after the one before it: to which node of another chain one belongs is then certain */
  bool is_done;  /* nothing more is recorded of its kernels, as they are now */
  int number;
  unsigned long long launches;
} Graph;
typedef struct { /* GraphChoice of pipesim/launches/observe/calls.py */
  Attempt attempt;
  char place[80];
  void *kernel; /* to be launched in place of the program's, if it is not NULL */
  bool is_done; /* nothing more will be recorded of this kernel */
  bool asks;    /* only whether it is done */
} Choice;
typedef struct { /* GraphEnd of calls.py */
  bool launched, keeps_buffers;
} GraphEnd;
static struct {
  void (*choose)(Choice *choice);
  void (*end)(const GraphEnd *end);
  void (*say)(const char *text);
} recorder; /* of this process; choose is NULL where launches are not recorded */
static Graph *graphs; /* under the lock */
static bool said_unknown; /* that a graph was executable before */
static __thread Graph *exchanged;

static void **nodes_of(void *graph, size_t *count) {
  bool read = !ASK(cuGraphGetNodes, graph, NULL, count) && *count <= MOST_NODES;
  void **nodes = read ? calloc(*count + 1, sizeof *nodes) : NULL;
  if (nodes && *count && ASK(cuGraphGetNodes, graph, nodes, count)) {
    free(nodes);
    nodes = NULL;
  }
  return nodes;
}
/* Whether all kernels of a graph, and of the graphs in it, could be read and VISIT is true of each. */
static bool visit_kernels(void *graph, int depth, bool (*visit)(const KernelNode *own, const uint32_t cluster[3])) {
  size_t count = 0;
  void **nodes = depth < DEEPEST_GRAPH ? nodes_of(graph, &count) : NULL;
  bool goes_on = nodes != NULL;
  for (size_t i = 0; goes_on && i < count; i++) {
    int type = -1;
    void *child = NULL;
    KernelNode own = {0};
    uint32_t cluster[16] = {0};
    if (ASK(cuGraphNodeGetType, nodes[i], &type)) continue;
    if (type == GRAPH_NODE && !ASK(cuGraphChildGraphNodeGetGraph, nodes[i], &child))
      goes_on = visit_kernels(child, depth + 1, visit);
    if (type != KERNEL_NODE) continue;
    if (ASK(cuGraphKernelNodeGetAttribute, nodes[i], CLUSTER_DIMENSION, cluster)) memset(cluster, 0, sizeof cluster);
    goes_on = !ASK(cuGraphKernelNodeGetParams_v2, nodes[i], &own) && visit(&own, cluster);
  }
  free(nodes);
  return goes_on;
}
static Graph *graph_of(void *executable) {
  Graph *found = graphs;
  while (found && found->executable != executable) found = found->next;
  return found;
}
static void drop_copy(Graph *graph) {
  if (graph->copy) ASK(cuGraphDestroy, graph->copy);
  graph->copy = NULL;
}
static bool are_chain(void *graph, void **nodes, size_t count) {
  size_t edges = 0;
  if (!nodes || ASK(cuGraphGetEdges, graph, NULL, NULL, &edges) || edges + 1 != count) return false;
  void **from = calloc(2 * edges + 1, sizeof *from), **to = from + edges;
  bool is_chain = from && (!edges || !ASK(cuGraphGetEdges, graph, from, to, &edges));
  for (size_t i = 0, j; is_chain && i < edges; i++) {
    for (j = 0; j < edges && (from[j] != nodes[i] || to[j] != nodes[i + 1]);) j++;
    is_chain = j < edges;
  }
  free(from);
  return is_chain;
}
/* The node of a graph's copy that belongs to one of the graph of which it was made. NULL if that is not certain: the
   driver's order of other graphs is not known (cuGraphExecUpdate). */
static void *node_of_copy(const Graph *graph, void *node) {
  void *found = NULL;
  size_t count = 0, i = 0;
  if (!ASK(cuGraphNodeFindInClone, &found, node, graph->copy)) return found;
  while (i < graph->count && graph->nodes[i] != node) i++;
  void **nodes = graph->is_chain && i < graph->count ? nodes_of(graph->copy, &count) : NULL;
  found = count == graph->count && are_chain(graph->copy, nodes, count) ? nodes[i] : NULL;
  free(nodes);
  return found;
}
static const char *copy_graph(Graph *made, void *graph) { /* what is to be said */
  made->is_done = false;
  drop_copy(made);
  if (!ASK(cuGraphClone, &made->copy, graph)) return NULL;
  made->copy = NULL;
  return "a CUDA graph was not recorded: the driver copies none with conditional nodes or memory of its own";
}
static const char *note_executable(void *executable, void *graph, unsigned long long flags) {
  static int number;
  Graph *made = graph_of(executable);
  if (!made) {
    if (!(made = calloc(1, sizeof *made))) return NULL;
    made->executable = executable;
    made->next = graphs;
    graphs = made;
  }
  made->number = ++number;
  made->launches = 0;
  free(made->nodes);
  made->count = 0;
  made->nodes = nodes_of(graph, &made->count);
  made->is_chain = are_chain(graph, made->nodes, made->nodes ? made->count : 0);
  drop_copy(made);
  return flags & FROM_DEVICE ? "a CUDA graph was not recorded: it can also be launched from the device" /* as it is */
                             : copy_graph(made, graph);
}
static const char *node_changed(Graph *graph, void *node, const KernelNode *given) {
  if (!graph || !graph->copy) return NULL;
  void *mine = given ? node_of_copy(graph, node) : NULL;
  graph->is_done = false;
  if (mine && !ASK(cuGraphKernelNodeSetParams_v2, mine, given)) return NULL;
  drop_copy(graph);
  if (!given) return "a CUDA graph was not recorded after one of its nodes was changed alone, other than a kernel of it";
  return mine ? "a CUDA graph was not recorded after a kernel of it was changed alone: the driver does not change the copy"
              : "a CUDA graph was not recorded after a kernel of it was changed alone: that kernel's place in the copy is "
                "not certain after an update to another graph, or in a graph in the graph";
}
/* What the program has made of graphs, after a call that succeeded; under the lock. What is to be said of it. */
static const char *follow_graph(uint32_t number, const CallbackData *call) {
  const Handles *given = call->arguments;
  const char *said = NULL;
  Graph *graph = NULL;
  KernelNode node = {0};
  int relaxed = RELAXED;
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  switch (number) {
  case INSTANTIATE_FLAGS:
    said = note_executable(*(void **)given->first, given->second, (uintptr_t)given->third);
    break;
  case INSTANTIATE_PARAMS:
  case INSTANTIATE_PARAMS_PTSZ:
    said = note_executable(*(void **)given->first, given->second, given->third ? *(uint64_t *)given->third : 0);
    break;
  case INSTANTIATE:
  case INSTANTIATE_V2:
    said = note_executable(*(void **)given->first, given->second, 0);
    break;
  case EXEC_UPDATE:
  case EXEC_UPDATE_V2:
    if ((graph = graph_of(given->first)) && graph->copy) said = copy_graph(graph, given->second);
    break;
  case NODE_SET_V2:
    said = node_changed(graph_of(given->first), given->second, given->third);
    break;
  case NODE_SET: /* of an older form, which ends before the kernel */
    if (given->third) memcpy(&node, given->third, offsetof(KernelNode, kernel));
    said = node_changed(graph_of(given->first), given->second, &node);
    break;
  default:
    for (int i = 0; i < COUNT(NODE_CHANGES); i++)
      if (number == NODE_CHANGES[i]) said = node_changed(graph_of(given->first), NULL, NULL);
  }
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  return said;
}
static void forget_graphs(const void *executable) { /* or all, for NULL; under the lock */
  for (Graph **at = &graphs; *at;) {
    Graph *graph = *at;
    if (executable && graph->executable != executable) {
      at = &graph->next;
      continue;
    }
    *at = graph->next;
    drop_copy(graph);
    free(graph->nodes);
    free(graph);
  }
}

typedef struct { /* one launch of a graph */
  Graph *graph;
  void *stream;
  int kernels, chosen; /* kernels that were come to; those that are exchanged */
} GraphLaunch;

static bool is_like(const KernelNode *one, const KernelNode *other) {
  return one->function == other->function && one->kernel == other->kernel &&
         !memcmp(one->shape, other->shape, sizeof one->shape);
}
/* Have the driver's calls made in the context of a kernel: a graph may have kernels on several GPUs. Whether it differs. */
static bool enter(void *context) {
  void *current = NULL;
  return context && !ASK(cuCtxGetCurrent, &current) && current != context && !ASK(cuCtxPushCurrent_v2, context);
}
static void leave(bool entered) {
  void *context;
  if (entered) ASK(cuCtxPopCurrent_v2, &context);
}
/* Exchange a kernel of a copy, whose NODE is like that of the graph, if it is to be recorded. False if that fails. */
static bool exchange_node(GraphLaunch *launch, void *node, void *copied) {
  KernelNode own = {0}, other = {0};
  uint32_t cluster[16] = {0};
  Choice choice = {.attempt = {.stream = launch->stream, .is_graph = true}};
  if (ASK(cuGraphKernelNodeGetParams_v2, node, &own) || ASK(cuGraphKernelNodeGetParams_v2, copied, &other) ||
      !is_like(&own, &other))
    return false;
  Attempt *attempt = &choice.attempt;
  attempt->function = own.function ? own.function : own.kernel;
  attempt->parameters = own.parameters;
  attempt->extra = own.extra;
  memcpy(attempt->shape, own.shape, sizeof attempt->shape);
  if (!ASK(cuGraphKernelNodeGetAttribute, node, CLUSTER_DIMENSION, cluster))
    memcpy(attempt->cluster, cluster, sizeof attempt->cluster);
  snprintf(choice.place, sizeof choice.place, "kernel %d of launch %llu of CUDA graph %d", ++launch->kernels,
           launch->graph->launches, launch->graph->number);
  attempt->place = choice.place;
  bool entered = enter(own.context);
  recorder.choose(&choice);
  void *function = choice.kernel;
  bool has_function = !own.function || !choice.kernel || !ASK(cuKernelGetFunction, &function, choice.kernel);
  leave(entered);
  if (!choice.kernel) return true;
  launch->chosen++;
  if (!has_function) return false;
  other.function = own.function ? function : NULL;
  other.kernel = own.function ? NULL : choice.kernel;
  if (ASK(cuGraphKernelNodeSetParams_v2, copied, &other)) return false;
  ASK(cuGraphKernelNodeCopyAttributes, copied, node);
  uint32_t same[16] = {0};
  ASK(cuGraphKernelNodeGetAttribute, copied, CLUSTER_DIMENSION, same);
  return !memcmp(cluster, same, 3 * sizeof *same);
}
static bool kernel_is_done(const KernelNode *own, const uint32_t cluster[3]) {
  Choice choice = {.attempt = {.function = own->function ? own->function : own->kernel, .is_graph = true}, .asks = true};
  (void)cluster;
  recorder.choose(&choice);
  return choice.is_done;
}
static bool exchange_nodes(GraphLaunch *launch, void *graph, void *copy, int depth) {
  size_t count = 0, copied = 0;
  void **nodes = nodes_of(graph, &count), **copies = nodes_of(copy, &copied);
  bool fits = nodes && copies && count == copied && depth < DEEPEST_GRAPH;
  for (size_t i = 0; fits && i < count; i++) {
    int type = -1, other = -1;
    void *child = NULL, *inside_copy = NULL;
    fits = !ASK(cuGraphNodeGetType, nodes[i], &type) && !ASK(cuGraphNodeGetType, copies[i], &other) && type == other;
    if (fits && type == KERNEL_NODE) fits = exchange_node(launch, nodes[i], copies[i]);
    if (fits && type == GRAPH_NODE)
      fits = !ASK(cuGraphChildGraphNodeGetGraph, nodes[i], &child) &&
             !ASK(cuGraphChildGraphNodeGetGraph, copies[i], &inside_copy) &&
             exchange_nodes(launch, child, inside_copy, depth + 1);
  }
  free(nodes);
  free(copies);
  return fits;
}
static int updated(void *executable, void *graph) {
  void *result[3] = {0}; /* CUgraphExecUpdateResultInfo */
  return ASK(cuGraphExecUpdate_v2, executable, graph, result);
}
static void begin_graph(const Handles *given, bool per_thread) {
  void *copy = NULL;
  int capturing = 0, relaxed = RELAXED;
  if (!acquire()) return;
  Graph *graph = graph_of(given->first);
  pthread_mutex_unlock(&lock);
  GraphLaunch launch = {graph, per_thread && !given->second ? (void *)PER_THREAD_STREAM : given->second, 0, 0};
  if (!graph && !said_unknown) recorder.say("a CUDA graph was not recorded: it was executable before the recording began");
  said_unknown |= !graph;
  if (!graph || !graph->copy) return;
  bool is_answered = !ASK(cuStreamIsCapturing, launch.stream, &capturing);
  graph->launches += !capturing;
  if (capturing || graph->is_done) return;
  if (!is_answered) {
    recorder.say(NOT_ANSWERED);
    return;
  }
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  graph->is_done = visit_kernels(graph->copy, 0, kernel_is_done);
  if (graph->is_done) {
    ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
    return;
  }
  bool fits = !ASK(cuGraphClone, &copy, graph->copy) && exchange_nodes(&launch, graph->copy, copy, 0);
  bool begun = launch.chosen && fits && !updated(graph->executable, copy);
  if (launch.chosen && !begun) recorder.end(&(GraphEnd){false, false});
  if (!fits || (launch.chosen && !begun)) {
    drop_copy(graph);
    recorder.say("a CUDA graph was not recorded: the driver does not exchange its kernels");
  }
  if (copy) ASK(cuGraphDestroy, copy);
  if (begun) exchanged = graph;
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
}
static void end_graph(bool launched) {
  int relaxed = RELAXED;
  Graph *graph = exchanged;
  if (!graph) return;
  exchanged = NULL;
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  int status = updated(graph->executable, graph->copy);
  recorder.end(&(GraphEnd){launched, status != 0});
  if (status) {
    drop_copy(graph);
    recorder.say("kernels with records stay in a CUDA graph: the driver does not update it back");
  }
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
}
static bool is_launch_of_graph(uint32_t number) { return number == GRAPH_LAUNCH || number == GRAPH_LAUNCH_PTSZ; }
/* Whether a call is about nothing but graphs that are recorded. */
static bool is_of_recorded_graphs(uint32_t number) {
  for (int i = 0; i < COUNT(OF_RECORDED_GRAPHS); i++)
    if (number == OF_RECORDED_GRAPHS[i]) return true;
  for (int i = 0; i < COUNT(NODE_CHANGES); i++)
    if (number == NODE_CHANGES[i]) return true;
  return false;
}
/* A call of the driver, before it or after it; not under the lock. */
static void graph_called(uint32_t number, const CallbackData *call, bool failed) {
  const char *said = NULL;
  if (!recorder.choose) return;
  if (is_launch_of_graph(number) && !call->site) begin_graph(call->arguments, number == GRAPH_LAUNCH_PTSZ);
  else if (is_launch_of_graph(number)) end_graph(!failed);
  else if ((number == GRAPH_DESTROY ? !call->site : call->site && !failed) && acquire()) {
    if (number == GRAPH_DESTROY) forget_graphs(((const Handles *)call->arguments)->first);
    else said = follow_graph(number, call);
    pthread_mutex_unlock(&lock);
    if (said) recorder.say(said);
  }
}
#endif
