/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * A library with the sanitizer, and with an error that it must find.
 */
#include <pthread.h>
#include <stdlib.h>

void planted_error(void);

#ifdef __SANITIZE_THREAD__

static int count;

static void* add(void* nothing) {
  count++;
  return nothing;
}

void planted_error(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, add, NULL) != 0) abort();
  add(NULL);
  pthread_join(thread, NULL);
}

#else

/* The compiler must not see that it is too small. */
static volatile size_t size = 10;

void planted_error(void) {
  char* bytes = malloc(size);
  if (bytes == NULL) abort();
  bytes[size] = 1;
  free(bytes);
}

#endif
