/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * stock [LIBRARY]: a program without a sanitizer. Two of its threads copy to one place, and a child of one of them
 * makes a thread. Then it calls planted_error() of the library.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char place[64];
/* So that the compiler calls memcpy, which the runtime watches. */
static volatile size_t size = sizeof place;

static void* copy(void* from) {
  memcpy(place, from, size);
  return NULL;
}

static void* do_nothing(void* nothing) {
  return nothing;
}

/* Returns true if a child can make a thread. */
static bool child_makes_thread(void) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    _exit(pthread_create(&thread, NULL, do_nothing, NULL) != 0 || pthread_join(thread, NULL) != 0);
  }
  return waitpid(child, &status, 0) == child && status == 0;
}

static void* fork_beside_main(void* from) {
  return child_makes_thread() ? copy(from) : from;
}

int main(int count, char** arguments) {
  char bytes[sizeof place] = {0};
  pthread_t thread;
  void* end = NULL;
  if (pthread_create(&thread, NULL, fork_beside_main, bytes) != 0) return 1;
  copy(bytes);
  pthread_join(thread, &end);
  if (end != NULL) {
    printf("the child cannot make a thread\n");
    return 1;
  }
  if (count < 2) return 0;

  void* library = dlopen(arguments[1], RTLD_NOW);
  void* symbol = library != NULL ? dlsym(library, "planted_error") : NULL;
  void (*planted_error)(void);
  if (symbol == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  memcpy(&planted_error, &symbol, sizeof planted_error);
  planted_error();
  return 0;
}
