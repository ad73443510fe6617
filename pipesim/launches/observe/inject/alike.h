/* A process that observes itself (Python): launches like one before are counted here, and not reported to it.

   CUPTI calls pipesim_called. It asks Python about a launch of a kind that it does not know. The answer is one more than
   the number of the counter for launches like this one (with ALL: for all of this function), 0 for none, and AT_ITS_END
   where Python wants to be asked again after the launch. All else that CUPTI reports goes to Python as it is. */
#ifndef PIPESIM_ALIKE_H
#define PIPESIM_ALIKE_H
#include "exchange.h"

enum { ALL = 1 << 29, AT_ITS_END = 1 << 28, MOST_COUNTERS = 1 << 16, MOST_ALIKE = 1 << 16, NO_COUNTER = -1 };
typedef struct {
  Digest key;
  int counter;
} Alike;

static int (*python)(uint32_t number, const void *data);
static Alike *alike; /* a slot of two zeros is free */
static size_t alike_count;
static uint64_t counters[MOST_COUNTERS];
static __thread bool asked_at_its_end, leaves_out; /* the latter: bytes are left out since */

static Alike *slot_of(Digest key) {
  size_t i = key.a & (2 * MOST_ALIKE - 1);
  while ((alike[i].key.a || alike[i].key.b) && (alike[i].key.a != key.a || alike[i].key.b != key.b))
    i = (i + 1) & (2 * MOST_ALIKE - 1);
  return &alike[i];
}
static int counter_of(Digest key) {
  Alike *found = slot_of(key);
  return found->key.a || found->key.b ? found->counter : NO_COUNTER;
}
static void remember(Digest key, int counter) {
  if (alike_count >= MOST_ALIKE) {
    memset(alike, 0, 2 * MOST_ALIKE * sizeof *alike);
    alike_count = 0;
  }
  Alike *slot = slot_of(key);
  alike_count += !slot->key.a && !slot->key.b;
  *slot = (Alike){key, counter};
}
static void forget_alike(void) { /* a handle may be given again */
  if (!acquire()) return;
  forget_functions();
  memset(alike, 0, 2 * MOST_ALIKE * sizeof *alike);
  alike_count = 0;
  pthread_mutex_unlock(&lock);
}
/* The counter of a launch like one before, NO_COUNTER for a new kind. KEYS: its function, its bytes, and those without addresses;
   the latter two are zeros where its parameters are not known. */
static int counter_for(const Attempt *attempt, Digest keys[3]) { /* under the lock */
  static char data[MOST_SPACE];
  static Pointed pointers[MOST_POINTERS];
  keys[0] = keys[1] = NOTHING_YET;
  keys[2] = (Digest){0};
  digest(&keys[0], &attempt->function, sizeof attempt->function);
  digest(&keys[0], &attempt->context, sizeof attempt->context); /* in which it may have another function */
  int counter = counter_of(keys[0]);
  Known *known = counter == NO_COUNTER ? functions[bucket(attempt->function)] : NULL;
  while (known && known->function != attempt->function) known = known->next;
  if (counter == NO_COUNTER && !known && (known = calloc(1, sizeof *known))) {
    known->function = attempt->function;
    known->parameters = -1;
    known->tally = (Tally *)known; /* by which alone launches of two functions differ */
    learn_parameters(known);
    known->next = functions[bucket(attempt->function)];
    functions[bucket(attempt->function)] = known;
  }
  if (counter == NO_COUNTER && known && gather(attempt, known, data)) {
    keys[1] = keys[0];
    digest(&keys[1], attempt->shape, sizeof attempt->shape);
    digest(&keys[1], attempt->cluster, sizeof attempt->cluster);
    digest(&keys[1], data, known->nbytes);
    if ((counter = counter_of(keys[1])) == NO_COUNTER) {
      int count = 0;
      const char *at = data;
      for (int i = 0; i < known->parameters; at += known->layout[2 * i + 1], i++)
        count = find_pointers(at, known->layout[2 * i + 1], (uint32_t)i, pointers, count);
      keys[2] = distinct_digest(attempt, known, data, pointers, count, true);
      digest(&keys[2], &attempt->context, sizeof attempt->context);
      if ((counter = counter_of(keys[2])) != NO_COUNTER) remember(keys[1], counter);
    }
  }
  return counter;
}
static void learn_answer(int answer, const Digest keys[3]) {
  int counter = (answer & (AT_ITS_END - 1)) - 1;
  asked_at_its_end = answer & AT_ITS_END;
  if (counter < 0 || counter >= MOST_COUNTERS || (!(answer & ALL) && !keys[2].a && !keys[2].b) || !acquire()) return;
  if (answer & ALL) remember(keys[0], counter);
  else {
    remember(keys[1], counter);
    remember(keys[2], counter);
  }
  pthread_mutex_unlock(&lock);
}
#endif
