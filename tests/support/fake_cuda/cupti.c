/* CUPTI's callback interface for the fake driver: libcupti.so.13 of the tests. One subscriber at a time. */
#define _GNU_SOURCE
#include "cuda.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void (*subscribe_t)(CUpti_CallbackFunc, void *);
typedef void (*enable_t)(uint32_t, int);
static int subscribed;

static void *driver(const char *name) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  return library ? dlsym(library, name) : NULL;
}
/* As if the driver were too old for this library: FAKE_CUPTI_REFUSES is a part of its path. */
static int refuses(void) {
  Dl_info about;
  const char *part = getenv("FAKE_CUPTI_REFUSES");
  return part && dladdr(&subscribed, &about) && strstr(about.dli_fname, part);
}
int cuptiSubscribe(void **subscriber, CUpti_CallbackFunc callback, void *userdata) {
  if (subscribed || getenv("FAKE_CUPTI_TAKEN")) return 39; /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
  if (refuses()) return 38;
  subscribed = 1;
  *subscriber = &subscribed;
  ((subscribe_t)driver("fakeSubscribe"))(callback, userdata);
  return 0;
}
int cuptiUnsubscribe(void *subscriber) {
  subscribed = 0;
  ((subscribe_t)driver("fakeSubscribe"))(NULL, NULL);
  return subscriber != &subscribed;
}
int cuptiEnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t cbid) {
  if (domain != 1 || subscriber != &subscribed) return 1;
  ((enable_t)driver("fakeEnable"))(cbid, (int)enable);
  return 0;
}
