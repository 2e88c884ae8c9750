/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/* For a machine whose RDMA devices are all software devices of the kernel, and that has at least one. */
#include <infiniband/dappledv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct ibv_device** devices;
static struct ibv_context* context;

static int open_first_device(void** state) {
  int num_devices = 0;

  (void)state;
  unsetenv("DAPPLE_COHERENCE");
  devices = ibv_get_device_list(&num_devices);
  if (!devices || num_devices == 0) {
    fprintf(stderr, "there is no RDMA device here\n");
    return -1;
  }
  context = ibv_open_device(devices[0]);
  if (!context) return -1;
  printf("device %s, %s\n", context->device->name, context->device->ibdev_path);
  return 0;
}

static int close_device(void** state) {
  (void)state;
  if (context) ibv_close_device(context);
  if (devices) ibv_free_device_list(devices);
  return 0;
}

static void assert_software_device(void) {
  struct dappledv_device_attr attr = {0};

  assert_int_equal(dappledv_query_device(context, &attr), 0);
  assert_int_equal(attr.coherence, DAPPLEDV_COHERENCE_COHERENT);
  assert_int_equal(attr.reason, DAPPLEDV_REASON_SOFTWARE_DEVICE);
  assert_int_equal(attr.sync_for_device_required, 0);
  assert_int_equal(attr.sync_for_cpu_required, 0);
  assert_int_equal(attr.sync_supported, 1);
  assert_int_equal(attr.sync_complete, 1);
  assert_int_equal(attr.certainty, DAPPLEDV_CERTAINTY_KERNEL);
  assert_int_equal(attr.pci_relaxed_ordering, DAPPLEDV_ANSWER_UNKNOWN);
}

static void query_device__by_the_kernels_driver_id(void** state) {
  (void)state;
  assert_software_device();
}

/* Renamed since it was opened. */
static void query_device__that_sysfs_does_not_show(void** state) {
  char path[sizeof(context->device->ibdev_path)];

  (void)state;
  memcpy(path, context->device->ibdev_path, sizeof(path));
  context->device->ibdev_path[0] = '\0';
  assert_software_device();
  memcpy(context->device->ibdev_path, path, sizeof(path));
}

static void query_device__not_by_sysfs(void** state) {
  struct dappledv_device_attr attr = {0};
  const int cmd_fd = context->cmd_fd;

  (void)state;
  context->cmd_fd = -1;
  assert_int_equal(dappledv_query_device(context, &attr), 0);
  context->cmd_fd = cmd_fd;
  assert_int_not_equal(attr.reason, DAPPLEDV_REASON_SOFTWARE_DEVICE);
}

static void query_device__override_goes_by_the_verbs_name(void** state) {
  char value[sizeof(context->device->name) + sizeof("=cpu")];
  struct dappledv_device_attr attr = {0};

  (void)state;
  snprintf(value, sizeof(value), "%s=cpu", context->device->name);
  assert_int_equal(setenv("DAPPLE_COHERENCE", value, 1), 0);
  assert_int_equal(dappledv_query_device(context, &attr), 0);
  assert_int_equal(unsetenv("DAPPLE_COHERENCE"), 0);
  assert_int_equal(attr.coherence, DAPPLEDV_COHERENCE_NONCOHERENT_CPU);
  assert_int_equal(attr.reason, DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(query_device__by_the_kernels_driver_id),
      cmocka_unit_test(query_device__that_sysfs_does_not_show),
      cmocka_unit_test(query_device__not_by_sysfs),
      cmocka_unit_test(query_device__override_goes_by_the_verbs_name),
  };
  return cmocka_run_group_tests(tests, open_first_device, close_device);
}
