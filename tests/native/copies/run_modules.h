/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { kMaxModules = 8 };

typedef int (*PingPong)(void);

static void* play(void* argument) {
  return (*(PingPong*)argument)() == 0 ? NULL : argument;
}

/* The arguments name modules. The exit status. */
static inline int run_modules(int argc, char** argv) {
  PingPong played[kMaxModules];
  pthread_t threads[kMaxModules];
  const int count = argc - 1 < kMaxModules ? argc - 1 : kMaxModules;
  int failures = 0;
  for (int i = 0; i < count; i++) {
    void* module = dlopen(argv[i + 1], RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) printf("FAILED %s\n", dlerror());
    if (module == NULL) return 1;
    void* symbol = dlsym(module, "ping_pong");
    memcpy(&played[i], &symbol, sizeof symbol);
  }
  /* At first at the same time, as the threads of a program begin. */
  for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, play, &played[i]);
  for (int i = 0; i < count; i++) {
    void* failed;
    pthread_join(threads[i], &failed);
    failures += failed != NULL;
  }
  for (int i = 0; i < count; i++) failures += played[i]() != 0;
  printf("%d failed\n", failures);
  return failures != 0;
}
