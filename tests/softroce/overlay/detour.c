/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/*
 * detour [default]: opens the first device by functions that dlsym() finds in libibverbs' handle or, with "default", in
 * RTLD_DEFAULT.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  void* library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_GLOBAL);
  void* where = argc > 1 && strcmp(argv[1], "default") == 0 ? RTLD_DEFAULT : library;
  struct ibv_device** (*list)(int*) = NULL;
  struct ibv_context* (*open_it)(struct ibv_device*) = NULL;
  struct ibv_device** devices;

  if (library) {
    list = (struct ibv_device * *(*)(int*)) dlsym(where, "ibv_get_device_list");
    open_it = (struct ibv_context * (*)(struct ibv_device*)) dlsym(where, "ibv_open_device");
  }
  if (!list || !open_it || !(devices = list(NULL)) || !devices[0] || !open_it(devices[0])) {
    fprintf(stderr, "detour: no device opens\n");
    return 1;
  }
  printf("opened\n");
  return 0;
}
