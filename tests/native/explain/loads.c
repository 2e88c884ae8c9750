/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 * SPDX-FileCopyrightText: The dapple authors
 *
 * loads LIBRARY: opens a device and loads the library, which is constructor.c. */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>

__attribute__((visibility("default"))) struct ibv_context* device;
__attribute__((visibility("default"))) int query_error;

int main(int count, char** words) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  if (count != 2 || list == NULL || list[0] == NULL || (device = ibv_open_device(list[0])) == NULL) return 2;
  ibv_free_device_list(list);
  void* library = dlopen(words[1], RTLD_NOW);
  if (library == NULL) printf("%s\n", dlerror());
  if (library == NULL || query_error != EINVAL) return 1;
  puts("as expected");
  return ibv_close_device(device);
}
