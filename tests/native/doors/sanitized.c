/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * sanitized: built with a sanitizer, it lists and opens devices on two threads. It prints how the system places its
 * memory.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/personality.h>

static void* list(void* opened) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  struct ibv_context* context;
  struct ibv_comp_channel* channel;
  if (devices == NULL || devices[0] == NULL) return NULL;
  context = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  if (context == NULL) return NULL;
  channel = ibv_create_comp_channel(context);
  if (channel == NULL || ibv_destroy_comp_channel(channel) != 0 || ibv_close_device(context) != 0) return NULL;
  return opened;
}

int main(void) {
  pthread_t thread;
  int opened;
  void* other = NULL;
  void* own;
  if (pthread_create(&thread, NULL, list, &opened) != 0) return 1;
  own = list(&opened);
  pthread_join(thread, &other);
  if (own == NULL || other == NULL) return 1;
  puts((personality(0xFFFFFFFF) & ADDR_NO_RANDOMIZE) != 0 ? "fixed" : "random");
  return 0;
}
