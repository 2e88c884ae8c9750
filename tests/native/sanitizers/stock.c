/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * stock [LIBRARY]: a program without a sanitizer. Two of its threads copy to one place. Then it calls planted_error()
 * of the library.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static char place[64];
/* So that the compiler calls memcpy, which the runtime watches. */
static volatile size_t size = sizeof place;

static void* copy(void* from) {
  memcpy(place, from, size);
  return NULL;
}

int main(int count, char** arguments) {
  char bytes[sizeof place] = {0};
  pthread_t thread;
  if (pthread_create(&thread, NULL, copy, bytes) != 0) return 1;
  copy(bytes);
  pthread_join(thread, NULL);
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
