/* CUDA graphs whose kernels are recorded.

   A copy of each graph is made where it becomes executable, and follows what the program changes there. Before a launch
   of which a kernel is to be recorded, the executable graph is updated to another copy in which that kernel is exchanged,
   and right after the call it is updated back: an update is of later launches alone (cuGraphExecUpdate). So launches that
   are not recorded are of the program's own kernels, and the order of launches is as the program has made it. */
#ifndef PIPESIM_GRAPHS_H
#define PIPESIM_GRAPHS_H
#include "alike.h"

enum { MOST_NODES = 1 << 16, DEEPEST_GRAPH = 8, FROM_DEVICE = 2, /* CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH */
       GRAPH_CHOICE = 1 << 20, GRAPH_END, GRAPH_NOTE };             /* what a process that observes itself is called for */

typedef struct Graph {
  struct Graph *next;
  void *executable, *copy; /* the copy is NULL where nothing more is recorded of it */
  int number;
  unsigned long long launches;
} Graph;
typedef struct { /* GraphChoice of pipesim/launches/observe/calls.py */
  Attempt attempt;
  char place[80];
  void *kernel; /* to be launched in place of the program's, if it is not NULL */
  bool is_done; /* nothing more will be recorded of this kernel */
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
static Graph *graph_of(void *executable) {
  Graph *found = graphs;
  while (found && found->executable != executable) found = found->next;
  return found;
}
static void drop_copy(Graph *graph) {
  if (graph->copy) ASK(cuGraphDestroy, graph->copy);
  graph->copy = NULL;
}
static const char *copy_graph(Graph *made, void *graph) { /* what is to be said */
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
  drop_copy(made);
  return flags & FROM_DEVICE ? NULL : copy_graph(made, graph);
}
static const char *node_changed(Graph *graph, void *node, const KernelNode *given) {
  void *mine = NULL;
  if (!graph || !graph->copy) return NULL;
  if (given && !ASK(cuGraphNodeFindInClone, &mine, node, graph->copy) && !ASK(cuGraphKernelNodeSetParams_v2, mine, given))
    return NULL;
  drop_copy(graph);
  return "a CUDA graph was not recorded after one of its nodes was changed alone, other than a kernel of it";
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
static void graph_destroyed(void *executable) { /* under the lock */
  for (Graph **at = &graphs; *at; at = &(*at)->next)
    if ((*at)->executable == executable) {
      Graph *graph = *at;
      *at = graph->next;
      drop_copy(graph);
      free(graph);
      return;
    }
}

typedef struct { /* one launch of a graph */
  Graph *graph;
  void *stream;
  int kernels, chosen; /* kernels that were come to; those that are exchanged */
  bool is_done;        /* nothing more will be recorded of any */
} GraphLaunch;

static bool is_like(const KernelNode *one, const KernelNode *other) {
  return one->function == other->function && one->kernel == other->kernel &&
         !memcmp(one->shape, other->shape, sizeof one->shape);
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
  recorder.choose(&choice);
  launch->is_done &= choice.is_done;
  if (!choice.kernel) return true;
  launch->chosen++;
  if (own.function) {
    if (ASK(cuKernelGetFunction, &other.function, choice.kernel)) return false;
    other.kernel = NULL;
  } else other.kernel = choice.kernel;
  if (ASK(cuGraphKernelNodeSetParams_v2, copied, &other)) return false;
  ASK(cuGraphKernelNodeCopyAttributes, copied, node);
  uint32_t same[16] = {0};
  ASK(cuGraphKernelNodeGetAttribute, copied, CLUSTER_DIMENSION, same);
  return !memcmp(cluster, same, 3 * sizeof *same);
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
  GraphLaunch launch = {graph, per_thread && !given->second ? (void *)PER_THREAD_STREAM : given->second, 0, 0, true};
  if (!graph || !graph->copy || ASK(cuStreamIsCapturing, launch.stream, &capturing) || capturing) return;
  graph->launches++;
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  bool fits = !ASK(cuGraphClone, &copy, graph->copy) && exchange_nodes(&launch, graph->copy, copy, 0);
  bool begun = launch.chosen && fits && !updated(graph->executable, copy);
  if (launch.chosen && !begun) recorder.end(&(GraphEnd){false, false});
  if (!fits || (launch.chosen && !begun)) {
    launch.is_done = true;
    recorder.say("a CUDA graph was not recorded: the driver does not exchange its kernels");
  }
  if (copy) ASK(cuGraphDestroy, copy);
  if (begun) exchanged = graph;
  else if (launch.is_done) drop_copy(graph);
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
    if (number == GRAPH_DESTROY) graph_destroyed(((const Handles *)call->arguments)->first);
    else said = follow_graph(number, call);
    pthread_mutex_unlock(&lock);
    if (said) recorder.say(said);
  }
}
#endif
