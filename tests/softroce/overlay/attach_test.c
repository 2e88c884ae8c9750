/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/* dappledv_attach() on a real device, by a program that knows of it. The first device that libibverbs lists is used. */
#include <errno.h>
#include <infiniband/dappledv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { kSize = 16384, kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static struct ibv_device** devices;
static struct ibv_context* context;
static struct ibv_pd* pd;
static char* buffer;

static int list_devices(void** state) {
  int num_devices = 0;

  (void)state;
  devices = ibv_get_device_list(&num_devices);
  if (!devices || num_devices == 0) {
    fprintf(stderr, "there is no RDMA device here\n");
    return -1;
  }
  buffer = aligned_alloc(4096, kSize);
  return buffer ? 0 : -1;
}

static int unlist_devices(void** state) {
  (void)state;
  free(buffer);
  ibv_free_device_list(devices);
  return 0;
}

static int open_device(void** state) {
  (void)state;
  context = ibv_open_device(devices[0]);
  pd = context ? ibv_alloc_pd(context) : NULL;
  return pd ? 0 : -1;
}

static int close_device(void** state) {
  (void)state;
  if (!context) return 0;
  if (ibv_dealloc_pd(pd) != 0) return -1;
  return ibv_close_device(context);
}

static int open_as_incoherent(void** state) {
  setenv("DAPPLE_COHERENCE", "cpu", 1);
  return open_device(state);
}

static int close_and_unset(void** state) {
  unsetenv("DAPPLE_COHERENCE");
  return close_device(state);
}

static struct ibv_sge segment(const void* address, uint32_t length, uint32_t lkey) {
  const struct ibv_sge sge = {.addr = (uintptr_t)address, .length = length, .lkey = lkey};

  return sge;
}

/* Vendors' own libraries compare this with theirs: it follows the public part of a device. */
static const void* operations_of(const struct ibv_device* device) {
  const void* operations;

  memcpy(&operations, device + 1, sizeof(operations));
  return operations;
}

static void attach__data_path_and_device_untouched(void** state) {
  const void* device_operations = operations_of(context->device);
  struct ibv_context_ops before = context->ops;

  (void)state;
  errno = ENOTTY;
  assert_int_equal(dappledv_attach(context, 0), 0);
  assert_int_equal(errno, ENOTTY);
  assert_ptr_equal(context->ops.poll_cq, before.poll_cq);
  assert_ptr_equal(context->ops.post_send, before.post_send);
  assert_ptr_equal(context->ops.post_recv, before.post_recv);
  assert_ptr_equal(context->ops.post_srq_recv, before.post_srq_recv);
  assert_ptr_equal(context->ops.req_notify_cq, before.req_notify_cq);
  assert_ptr_equal(operations_of(context->device), device_operations);
  /* Attaching twice has the effect of once. */
  before = context->ops;
  assert_int_equal(dappledv_attach(context, 0), 0);
  assert_memory_equal(&context->ops, &before, sizeof(before));
}

static void attach__bad_arguments(void** state) {
  (void)state;
  assert_int_equal(dappledv_attach(NULL, 0), EINVAL);
  assert_int_equal(dappledv_attach(context, UINT64_C(1) << 63), EINVAL);
  setenv("DAPPLE_COHERENCE", "perhaps", 1);
  assert_int_equal(dappledv_attach(context, 0), EINVAL);
  unsetenv("DAPPLE_COHERENCE");
  assert_int_equal(dappledv_sync_mr_for_cpu(context, NULL, 0, NULL), EOPNOTSUPP);
}

static void regions__known_until_deregistered(void** state) {
  struct ibv_mr* mr;
  struct ibv_sge list[2];
  uint32_t lkey;
  size_t bad = 0;

  (void)state;
  assert_int_equal(dappledv_attach(context, 0), 0);
  mr = ibv_reg_mr(pd, buffer, kSize, kAccess);
  assert_non_null(mr);
  assert_ptr_equal(mr->addr, buffer);
  assert_int_equal(mr->length, kSize);
  lkey = mr->lkey;

  list[0] = segment(buffer, kSize, lkey);
  list[1] = segment(buffer + kSize - 1, 1, lkey);
  assert_int_equal(dappledv_sync_mr_for_device(context, list, 2, NULL), 0);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, list, 2, NULL), 0);
  list[1] = segment(buffer + kSize - 1, 2, lkey);
  assert_int_equal(dappledv_sync_mr_for_device(context, list, 2, &bad), EINVAL);
  assert_int_equal(bad, 1);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, list, 2, NULL), EINVAL);
  list[1] = segment(buffer, 1, lkey + 1);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, list, 2, NULL), EINVAL);

  assert_int_equal(ibv_dereg_mr(mr), 0);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, list, 1, NULL), EINVAL);
}

static void regions__zero_based(void** state) {
  struct ibv_mr* mr;
  struct ibv_sge sge;

  (void)state;
  assert_int_equal(dappledv_attach(context, 0), 0);
  mr = ibv_reg_mr_iova(pd, buffer, kSize, 0, kAccess);
  assert_non_null(mr);
  sge = segment(NULL, kSize, mr->lkey);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, &sge, 1, NULL), 0);
  sge = segment(buffer, 1, mr->lkey);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, &sge, 1, NULL), EINVAL);
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* Some devices can change a region and others cannot; the overlay must record the device's result. */
static void regions__changed_in_place(void** state) {
  struct ibv_mr* mr;
  struct ibv_sge sge;
  bool changed;

  (void)state;
  assert_int_equal(dappledv_attach(context, 0), 0);
  mr = ibv_reg_mr(pd, buffer, 4096, kAccess);
  assert_non_null(mr);
  changed = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buffer + 8192, 4096, 0) == 0;
  sge = segment(buffer, 1, mr->lkey);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, &sge, 1, NULL), changed ? EINVAL : 0);
  sge = segment(buffer + 8192, 1, mr->lkey);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, &sge, 1, NULL), changed ? 0 : EINVAL);
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void regions__refused_by_the_device(void** state) {
  (void)state;
  assert_int_equal(dappledv_attach(context, 0), 0);
  errno = 0;
  /* Remote write without local write. */
  assert_null(ibv_reg_mr(pd, buffer, kSize, IBV_ACCESS_REMOTE_WRITE));
  assert_int_not_equal(errno, 0);
}

static void attach__late(void** state) {
  struct ibv_mr *early, *late;
  struct ibv_sge sge;

  (void)state;
  early = ibv_reg_mr(pd, buffer, kSize, kAccess);
  assert_non_null(early);
  assert_int_equal(dappledv_attach(context, 0), 0);
  late = ibv_reg_mr(pd, buffer, kSize, kAccess);
  assert_non_null(late);
  sge = segment(buffer, 1, early->lkey);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, &sge, 1, NULL), EINVAL);
  sge = segment(buffer, 1, late->lkey);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, &sge, 1, NULL), 0);
  assert_int_equal(ibv_dereg_mr(early), 0);
  assert_int_equal(ibv_dereg_mr(late), 0);
}

static void attach__two_contexts_of_a_device(void** state) {
  struct ibv_context* other = ibv_open_device(devices[0]);
  struct ibv_mr* mr;
  struct ibv_sge sge;

  (void)state;
  assert_non_null(other);
  assert_int_equal(dappledv_attach(context, 0), 0);
  mr = ibv_reg_mr(pd, buffer, kSize, kAccess);
  assert_non_null(mr);
  sge = segment(buffer, 1, mr->lkey);
  assert_int_equal(dappledv_sync_mr_for_cpu(other, &sge, 1, NULL), EOPNOTSUPP);
  assert_int_equal(dappledv_attach(other, 0), 0);
  assert_int_equal(dappledv_sync_mr_for_cpu(other, &sge, 1, NULL), EINVAL);
  assert_int_equal(ibv_close_device(other), 0);
  /* Only its address is used. */
  assert_int_equal(dappledv_sync_mr_for_cpu(other, &sge, 1, NULL), EOPNOTSUPP);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, &sge, 1, NULL), 0);
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void attach__child_of_a_fork(void** state) {
  struct ibv_mr* mr;
  struct ibv_sge sge;
  int status = -1;
  pid_t child;

  (void)state;
  assert_int_equal(dappledv_attach(context, 0), 0);
  mr = ibv_reg_mr(pd, buffer, kSize, kAccess);
  assert_non_null(mr);
  sge = segment(buffer, kSize, mr->lkey);
  child = fork();
  if (child == 0) {
    struct ibv_context* own;
    bool right;

    alarm(120);
    own = ibv_open_device(devices[0]);
    right = dappledv_sync_mr_for_device(context, &sge, 1, NULL) == 0 && own && dappledv_attach(own, 0) == 0 &&
            ibv_close_device(own) == 0;
    _exit(right ? 0 : 1);
  }
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(dappledv_sync_mr_for_cpu(context, &sge, 1, NULL), 0);
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* No other test here may start the emulator before this one, because it lasts as long as the process. */
static void emulate__attached_without__does_not_start_the_emulator(void** state) {
  struct sigaction action;

  (void)state;
  assert_int_equal(dappledv_attach(context, 0), 0);
  assert_int_equal(dappledv_attach(context, DAPPLEDV_ATTACH_EMULATE), EBUSY);
  assert_int_equal(sigaction(SIGTERM, NULL, &action), 0);
  assert_true(action.sa_handler == SIG_DFL);
}

/* The device still refuses invalid requests, although it works on shadows, which it may write to. */
static void emulate__memory_for_reading_only(void** state) {
  struct dappledv_device_attr attr = {0};
  void* page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct ibv_mr* mr;

  (void)state;
  assert_true(page != MAP_FAILED);
  assert_int_equal(dappledv_attach(context, DAPPLEDV_ATTACH_EMULATE), 0);
  assert_int_equal(dappledv_query_device(context, &attr), 0);
  assert_int_equal(attr.coherence, DAPPLEDV_COHERENCE_NONCOHERENT_CPU);
  assert_int_equal(attr.reason, DAPPLEDV_REASON_EMULATOR);
  assert_int_equal(attr.certainty, DAPPLEDV_CERTAINTY_OVERRIDE);
  errno = 0;
  assert_null(ibv_reg_mr(pd, page, 4096, IBV_ACCESS_LOCAL_WRITE));
  assert_int_equal(errno, EFAULT);
  mr = ibv_reg_mr(pd, page, 4096, IBV_ACCESS_REMOTE_READ);
  assert_non_null(mr);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  assert_int_equal(munmap(page, 4096), 0);
}

static void emulate__more_memory_than_there_is(void** state) {
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  (void)state;
  assert_true(page != MAP_FAILED);
  assert_int_equal(dappledv_attach(context, DAPPLEDV_ATTACH_EMULATE), 0);
  assert_null(ibv_reg_mr(pd, page, (size_t)1 << 62, IBV_ACCESS_LOCAL_WRITE));
  assert_null(ibv_reg_mr(pd, page, (size_t)1 << 33, IBV_ACCESS_LOCAL_WRITE));
  assert_int_equal(munmap(page, 4096), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(attach__data_path_and_device_untouched, open_device, close_device),
      cmocka_unit_test_setup_teardown(attach__bad_arguments, open_device, close_device),
      cmocka_unit_test_setup_teardown(regions__known_until_deregistered, open_device, close_device),
      cmocka_unit_test_setup_teardown(regions__known_until_deregistered, open_as_incoherent, close_and_unset),
      cmocka_unit_test_setup_teardown(regions__zero_based, open_device, close_device),
      cmocka_unit_test_setup_teardown(regions__zero_based, open_as_incoherent, close_and_unset),
      cmocka_unit_test_setup_teardown(regions__changed_in_place, open_device, close_device),
      cmocka_unit_test_setup_teardown(regions__refused_by_the_device, open_device, close_device),
      cmocka_unit_test_setup_teardown(attach__late, open_device, close_device),
      cmocka_unit_test_setup_teardown(attach__two_contexts_of_a_device, open_device, close_device),
      cmocka_unit_test_setup_teardown(attach__child_of_a_fork, open_device, close_device),
      cmocka_unit_test_setup_teardown(emulate__attached_without__does_not_start_the_emulator, open_device,
                                      close_device),
      cmocka_unit_test_setup_teardown(emulate__memory_for_reading_only, open_device, close_device),
      cmocka_unit_test_setup_teardown(emulate__more_memory_than_there_is, open_device, close_device),
  };
  unsetenv("DAPPLE_COHERENCE");
  return cmocka_run_group_tests(tests, list_devices, unlist_devices);
}
