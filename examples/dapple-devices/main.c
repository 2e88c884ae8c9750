/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * dapple-devices: the smallest verbs program that tells whether the CPU and the device see the same memory.
 *
 * The exit code is 1 if a device cannot be queried.
 */
#include <errno.h>
#include <infiniband/dappledv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

static int show(struct ibv_device* device) {
  const char* name = ibv_get_device_name(device);
  struct ibv_context* context = ibv_open_device(device);
  if (context == NULL) {
    fprintf(stderr, "dapple-devices: cannot open %s: %s\n", name, strerror(errno));
    return 1;
  }
  struct dappledv_device_attr attr = {.comp_mask = 0};
  int error = dappledv_query_device(context, &attr);
  if (error != 0) {
    fprintf(stderr, "dapple-devices: cannot ask about %s: %s\n", name, strerror(error));
  } else {
    printf("%s: %s (%s, %s)\n", name, dappledv_coherence_str(attr.coherence), dappledv_reason_str(attr.reason),
           dappledv_certainty_str(attr.certainty));
  }
  ibv_close_device(context);
  return error != 0;
}

int main(void) {
  int failed = 0;
  struct ibv_device** devices = ibv_get_device_list(NULL);
  if (devices == NULL) {
    fprintf(stderr, "dapple-devices: no RDMA here: %s\n", strerror(errno));
    return 0;
  }
  for (struct ibv_device** device = devices; *device != NULL; device++) failed |= show(*device);
  if (devices[0] == NULL) printf("dapple-devices: no RDMA device was found\n");
  ibv_free_device_list(devices);
  return failed;
}
