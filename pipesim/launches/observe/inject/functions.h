/* What is known of the functions that the program launches: the kernel, its code, its parameters. */
#ifndef PIPESIM_FUNCTIONS_H
#define PIPESIM_FUNCTIONS_H
#include "images.h"

enum { MOST_PARAMETERS = 4096, MOST_SPACE = 1 << 15 };

typedef struct Tally { /* how often a kernel was launched */
  struct Tally *next;
  char *kernel;
  uint64_t image, launches, distinct, left_out;
  uint64_t asked; /* launches that could have been recorded */
  bool listed;    /* as one without PTX */
  bool plain;     /* it has no barriers: nothing is recorded of it */
} Tally;
typedef struct Known { /* what is known of a function; TALLY is NULL if no pattern matches it */
  struct Known *next;
  void *function, *context; /* and in which it was launched last */
  Tally *tally;
  int parameters;   /* -1 if the driver does not say */
  uint32_t *layout; /* offset and bytes of each */
  uint32_t nbytes;
  uint32_t *unread, unread_count; /* bytes of all parameters that the kernel does not read: they count as zeros */
  bool has_code;
  char code[32], why_not[400];
  const char *origin;
} Known;
typedef struct {
  void *function, *stream, *context; /* the context is not known of a kernel of a graph */
  uint32_t shape[7], cluster[3]; /* the cluster is 0 if the launch does not say */
  void **parameters, **extra;
  bool is_graph;
  const char *symbol;
  const char *place; /* of a kernel of a graph that is launched: which it is */
} Attempt;

static Known *functions[1024];
static Tally *tallies;
static Set seen; /* launches by their bytes */

static void forget_functions(void) { /* handles may be given again */
  for (int i = 0; i < 1024; i++) {
    while (functions[i]) {
      Known *known = functions[i];
      functions[i] = known->next;
      free(known->layout);
      free(known->unread);
      free(known);
    }
    while (aliases[i]) {
      Alias *alias = aliases[i];
      aliases[i] = alias->next;
      free(alias);
    }
  }
  empty(&seen);
}
static Tally *tally_of(const char *kernel, uint64_t image) {
  for (Tally *each = tallies; each; each = each->next)
    if (each->image == image && !strcmp(each->kernel, kernel)) return each;
  Tally *made = calloc(1, sizeof *made);
  if (!made || !(made->kernel = strdup(kernel))) {
    free(made);
    return NULL;
  }
  made->image = image;
  made->next = tallies;
  return tallies = made;
}
static Image *image_of_function(void *function) {
  void *owner = NULL;
  Image *image = NULL;
  if (!ASK(cuFuncGetModule, &owner, function)) image = image_of(owner);
  if (!image && (owner = alias_of(function))) image = image_of(owner);
  if (!image && (owner = NULL, !ASK(cuKernelGetLibrary, &owner, function))) image = image_of(owner);
  return image;
}
/* A CUkernel may be launched as a CUfunction, and what the driver answers for one that it takes for the other is not
   documented: the handle is of the kind of which it has parameters. */
static void learn_parameters(Known *known) {
  static uint32_t layout[2 * MOST_PARAMETERS]; /* under the lock */
  int count = 0;
  bool is_answered = false; /* that there is no parameter of a number: CUDA_ERROR_INVALID_VALUE */
  for (int kind = 0; kind < 2 && !count; kind++) {
    for (int status = 0; count < MOST_PARAMETERS; count++) {
      size_t offset = 0, nbytes = 0;
      status = kind ? ASK(cuKernelGetParamInfo, known->function, (size_t)count, &offset, &nbytes)
                    : ASK(cuFuncGetParamInfo, known->function, (size_t)count, &offset, &nbytes);
      is_answered |= status == 1;
      if (status) break;
      if (offset + nbytes > MOST_SPACE) return;
      layout[2 * count] = (uint32_t)offset;
      layout[2 * count + 1] = (uint32_t)nbytes;
      known->nbytes += (uint32_t)nbytes;
    }
  }
  if ((!count && !is_answered) || known->nbytes > MOST_SPACE) return;
  known->layout = malloc((size_t)count * 8 + 1);
  if (!known->layout) return;
  memcpy(known->layout, layout, (size_t)count * 8);
  known->parameters = count;
}
/* A captured graph has the function of a kernel that was launched, another one in each context: it is of the kernel's
   library. */
static void add_function_of(void *kernel) {
  void *library = NULL, *function = NULL;
  int relaxed = RELAXED;
  if (ASK(cuKernelGetLibrary, &library, kernel)) return;
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
  if (!ASK(cuKernelGetFunction, &function, kernel)) add_alias(function, library);
  ASK(cuThreadExchangeStreamCaptureMode, &relaxed);
}
static Known *known_of(const Attempt *attempt) {
  Known **at = &functions[bucket(attempt->function)];
  for (Known *each = *at; each; each = each->next)
    if (each->function == attempt->function) {
      if (each->has_code && attempt->context && attempt->context != each->context) add_function_of(each->function);
      each->context = attempt->context ? attempt->context : each->context;
      return each;
    }
  const char *name = attempt->symbol;
  if (!name && ASK(cuFuncGetName, &name, attempt->function) && ASK(cuKernelGetName, &name, attempt->function))
    name = NULL;
  if (!name || !*name) {
    note("the name of a kernel could not be read: it is not in the list");
    return NULL;
  }
  Known *known = calloc(1, sizeof *known);
  if (!known) return NULL;
  known->function = attempt->function;
  known->context = attempt->context;
  known->parameters = -1;
  if (is_wanted(name)) {
    Image *image = image_of_function(attempt->function);
    known->tally = tally_of(name, image ? image->key : 0);
    known->has_code = image && write_image(image);
    if (known->has_code) {
      add_function_of(attempt->function);
      strcpy(known->code, image->name);
      known->origin = image->origin;
      learn_parameters(known);
    } else strcpy(known->why_not, image ? image->why_not : "its module was loaded before the capture began");
  }
  known->next = *at;
  return *at = known;
}
static int function_attribute(void *function, int attribute) {
  int value = 0, device = 0;
  if (!ASK(cuFuncGetAttribute, &value, attribute, function)) return value;
  ASK(cuCtxGetDevice, &device);
  return ASK(cuKernelGetAttribute, &value, attribute, function, device) ? 0 : value;
}

#endif
