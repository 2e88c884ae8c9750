/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/*
 * The emulator under a program of plain verbs. The first device that libibverbs lists is used.
 */
#include "emulator_rig.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Regions ---- */

static void write__without_a_sync_is_named(void** state) {
  (void)state;
  device_writes(7, 100, (uintptr_t)theirs + 200, their_mr->rkey);
  assert_true(is_all(theirs, kSize, 0));
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  assert_true(says(finding(theirs, kSize, 2, 192, kUnsynced)));
  assert_int_equal(times("\n"), 1);
}

static void write__with_a_sync_is_not(void** state) {
  (void)state;
  device_writes(7, 100, (uintptr_t)theirs + 200, their_mr->rkey);
  for_cpu(theirs + 200, 100);
  assert_true(is_all(theirs + 200, 100, 7));
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  assert_string_equal(said, "");
}

static void write__synced_after_the_region_has_gone(void** state) {
  (void)state;
  device_writes(7, 100, (uintptr_t)theirs + 200, their_mr->rkey);
  begin_listening();
  assert_int_equal(ibv_dereg_mr(their_mr), 0);
  their_mr = NULL;
  assert_true(is_all(theirs, kSize, 0));
  for_cpu(theirs + 200, 100);
  assert_true(is_all(theirs + 200, 100, 7));
  end_listening();
  assert_string_equal(said, "");
}

static void regions__overlapping_ones_share_their_bytes(void** state) {
  struct ibv_mr* zero_based = ibv_reg_mr_iova(pd, theirs, kSize, 0, kAccess);
  struct ibv_mr* part = ibv_reg_mr(pd, theirs + 100, 200, kAccess);
  struct ibv_mr* neighbour = ibv_reg_mr(pd, theirs + 300, 200, kAccess);

  (void)state;
  assert_non_null(zero_based);
  assert_non_null(part);
  assert_non_null(neighbour);
  device_writes(7, 50, 150, zero_based->rkey);
  for_cpu(theirs + 150, 50);
  assert_true(is_all(theirs + 150, 50, 7));
  device_writes(8, 100, (uintptr_t)theirs + 200, part->rkey);
  assert_int_equal(deregister(neighbour), 0); /* it has the rest of the last line */
  assert_string_equal(said, "");
  assert_int_equal(deregister(part), 0);
  assert_int_equal(deregister(zero_based), 0);
  /* These regions are gone. The remaining one can still be synced, and is not. */
  assert_string_equal(said, "");
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  assert_true(says(finding(theirs + 100, 200, 2, 92, kUnsynced)));
  assert_true(says(finding(theirs, kSize, 2, 192, kUnsynced)));
}

static void write_back__bytes_of_the_device_are_lost(void** state) {
  (void)state;
  theirs[1000] = 1;
  device_writes(7, 3, (uintptr_t)theirs + 1004, their_mr->rkey);
  for_cpu(theirs + 1004, 3);
  assert_true(is_all(theirs + 1004, 3, 0));
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  assert_true(says(finding(theirs, kSize, 3, 1004, kLost)));
  assert_int_equal(times("\n"), 1);
}

/* ---- Memory windows ---- */

static struct ibv_mw* bound_window(enum ibv_mw_type type, const unsigned char* at, uint64_t length) {
  struct ibv_mw* mw = ibv_alloc_mw(pd, type);
  const struct ibv_mw_bind_info info = {
      .mr = their_mr, .addr = (uintptr_t)at, .length = length, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};

  assert_non_null(mw);
  if (type == IBV_MW_TYPE_1) {
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED, .bind_info = info};

    assert_int_equal(ibv_bind_mw(qp, mw, &bind), 0);
  } else {
    struct ibv_send_wr request = {.opcode = IBV_WR_BIND_MW};

    request.bind_mw.mw = mw;
    request.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    request.bind_mw.bind_info = info;
    post(&request, NULL);
    mw->rkey = request.bind_mw.rkey;
  }
  assert_int_equal(completion(IBV_WC_BIND_MW), IBV_WC_SUCCESS);
  return mw;
}

static void window_works_on_the_regions_shadow(enum ibv_mw_type type) {
  struct ibv_mw* mw = bound_window(type, theirs + kPage + 60, 1000);

  device_writes(7, 10, (uintptr_t)theirs + kPage + 100, mw->rkey);
  assert_int_equal(theirs[kPage + 100], 0);
  for_cpu(theirs + kPage + 100, 10);
  assert_true(is_all(theirs + kPage + 100, 10, 7));
  device_writes(8, 10, (uintptr_t)theirs + kPage + 200, mw->rkey);
  /* The region stays while a window is bound to it, and there is no message about it. */
  assert_int_not_equal(deregister(their_mr), 0);
  assert_string_equal(said, "");
  device_writes(9, 10, (uintptr_t)theirs + kPage + 300, mw->rkey);
  for_cpu(theirs + kPage + 300, 10);
  assert_true(is_all(theirs + kPage + 300, 10, 9));
  assert_int_equal(ibv_dealloc_mw(mw), 0);
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  assert_true(says(finding(theirs, kSize, 1, kPage + 192, kUnsynced)));
}

static void window__type_1(void** state) {
  (void)state;
  window_works_on_the_regions_shadow(IBV_MW_TYPE_1);
}

static void window__type_2(void** state) {
  (void)state;
  window_works_on_the_regions_shadow(IBV_MW_TYPE_2);
}

/* ---- Shared receive queues ---- */

static void srq__receives_are_synced_as_others(void** state) {
  (void)state;
  for (unsigned char i = 0; i < 2; i++) {
    struct ibv_sge to = {.addr = (uintptr_t)theirs + 300 + 1024u * i, .length = 64, .lkey = their_mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1}, *bad;
    struct ibv_send_wr request = {.opcode = IBV_WR_SEND};
    struct ibv_sge from = segment(mine, 64);
    struct ibv_wc done[2];
    int count = 0;

    memset(mine, 7 + i, 64);
    for_device(mine, 64);
    assert_int_equal(ibv_post_srq_recv(srq, &receive, &bad), 0);
    post(&request, &from);
    for (const time_t deadline = time(NULL) + kPatienceS; count < 2 && time(NULL) < deadline;) {
      count += ibv_poll_cq(cq, 1, &done[count]);
    }
    assert_int_equal(count, 2);
    assert_int_equal(done[0].status | done[1].status, IBV_WC_SUCCESS);
    assert_int_equal(theirs[300 + 1024 * i], 0);
  }
  for_cpu(theirs + 300, 64);
  assert_true(is_all(theirs + 300, 64, 7));
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  /* The second receive. */
  assert_true(says(finding(theirs, kSize, 2, 1280, kUnsynced)));
}

/* ---- Atomics ---- */

/* The device operates on its own copy of the word; the result stays unsynced. */
static void atomic(enum ibv_wr_opcode opcode, const volatile uint64_t* word, uint64_t compare_add, uint64_t swap) {
  struct ibv_send_wr request = {.opcode = opcode};
  struct ibv_sge result = segment(mine + 64, 8);

  request.wr.atomic.remote_addr = (uintptr_t)word;
  request.wr.atomic.rkey = their_mr->rkey;
  request.wr.atomic.compare_add = compare_add;
  request.wr.atomic.swap = swap;
  post(&request, &result);
  assert_int_equal(completion(opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD),
                   IBV_WC_SUCCESS);
}

static void atomics__device_and_cpu_have_a_word_each_until_a_sync(void** state) {
  volatile uint64_t* const word = (volatile uint64_t*)(theirs + 512);
  volatile uint64_t* const result = (volatile uint64_t*)(mine + 64);

  (void)state;
  *word = 5;
  for_device(theirs + 512, 8);
  atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, word, 1, 0);
  assert_int_equal(*result, 0);
  for_cpu(mine + 64, 8);
  assert_int_equal(*result, 5);
  assert_int_equal(*word, 5);
  for_cpu(theirs + 512, 8);
  assert_int_equal(*word, 6);
  atomic(IBV_WR_ATOMIC_CMP_AND_SWP, word, 6, 100);
  for_cpu(theirs + 512, 8);
  for_cpu(mine + 64, 8);
  assert_int_equal(*word, 100);
  /* The device does not know the CPU's writes. */
  *word = 50;
  atomic(IBV_WR_ATOMIC_CMP_AND_SWP, word, 50, 51);
  for_cpu(mine + 64, 8);
  assert_int_equal(*result, 100);
  for_device(theirs + 512, 8);
  atomic(IBV_WR_ATOMIC_CMP_AND_SWP, word, 50, 51);
  for_cpu(theirs + 512, 8);
  for_cpu(mine + 64, 8);
  assert_int_equal(*word, 51);
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  assert_string_equal(said, "");
}

static void atomics__a_neighbour_that_the_cpu_changed_undoes_them(void** state) {
  volatile uint64_t* const word = (volatile uint64_t*)(theirs + 512);

  (void)state;
  word[3] = 9;
  atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, word, 1, 0);
  for_cpu(theirs + 512, 8);
  assert_int_equal(*word, 0);
  atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, word, 1, 0);
  for_cpu(mine + 64, 8);
  assert_int_equal(*(volatile uint64_t*)(mine + 64), 0);
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  assert_true(says(finding(theirs, kSize, 1, 512, kLost)));
  assert_true(says(finding(theirs, kSize, 1, 512, kUnsynced)));
  assert_int_equal(times("\n"), 2);
}

/* ---- Inline data ---- */

static void inline_data__is_what_the_cpu_sees(void** state) {
  unsigned char unregistered[kInline];

  (void)state;
  memset(mine, 7, kInline);
  write_as_it_is(mine, kInline, (uintptr_t)theirs, their_mr->rkey, 0);
  for_cpu(theirs, kInline);
  assert_true(is_all(theirs, kInline, 0)); /* it took the device's bytes */
  write_as_it_is(mine, kInline, (uintptr_t)theirs, their_mr->rkey, IBV_SEND_INLINE);
  for_cpu(theirs, kInline);
  assert_true(is_all(theirs, kInline, 7));
  memset(unregistered, 8, sizeof(unregistered));
  write_as_it_is(unregistered, kInline, (uintptr_t)theirs, their_mr->rkey, IBV_SEND_INLINE);
  for_cpu(theirs, kInline);
  assert_true(is_all(theirs, kInline, 8));
  for_device(mine, kInline);
  assert_int_equal(deregister(my_mr), 0);
  my_mr = NULL;
  assert_string_equal(said, "");
}

static void post__of_what_was_not_synced_is_named(void** state) {
  (void)state;
  memset(mine, 7, kInline);
  begin_listening();
  write_as_it_is(mine, kInline, (uintptr_t)theirs, their_mr->rkey, 0);
  end_listening();
  assert_true(
      says("64 bytes were changed by the CPU and not cleaned by a sync before the post, the first at offset 0"));
  for_device(mine, kInline);
}

static void reuse__before_the_completion_is_named(void** state) {
  struct ibv_send_wr request = {.wr_id = 0xabc, .opcode = IBV_WR_RDMA_WRITE};
  struct ibv_sge sge = segment(mine, 4096);

  (void)state;
  for_device(mine, 4096);
  request.wr.rdma.remote_addr = (uintptr_t)theirs;
  request.wr.rdma.rkey = their_mr->rkey;
  begin_listening();
  post(&request, &sge);
  mine[100] ^= 1;
  assert_int_equal(completion(IBV_WC_RDMA_WRITE), IBV_WC_SUCCESS);
  end_listening();
  assert_true(says("(wr_id 0xabc, "));
  assert_true(says("1 bytes were changed before the completion was polled, the first at offset 100"));
  for_device(mine, 4096);
}

/* ---- Changes by the CPU ---- */

static void read_theirs(size_t offset, uint32_t length) {
  struct ibv_send_wr request = {.opcode = IBV_WR_RDMA_READ};
  struct ibv_sge sge = segment(mine, length);

  request.wr.rdma.remote_addr = (uintptr_t)theirs + offset;
  request.wr.rdma.rkey = their_mr->rkey;
  post(&request, &sge);
  assert_int_equal(completion(IBV_WC_RDMA_READ), IBV_WC_SUCCESS);
  for_cpu(mine, length);
}

static void read__of_what_was_not_synced_is_named(void** state) {
  (void)state;
  memset(theirs + 200, 7, 100);
  read_theirs(200, 100);
  assert_true(is_all(mine, 100, 0));
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  assert_true(says(finding(theirs, kSize, 2, 192, kUnclean)));
  assert_int_equal(times("\n"), 1);
}

static void read__of_what_was_synced_is_not(void** state) {
  (void)state;
  memset(theirs + 200, 7, 100);
  for_device(theirs + 200, 100);
  read_theirs(200, 100);
  assert_true(is_all(mine, 100, 7));
  memset(theirs + 200, 8, 100); /* the peer no longer uses it */
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  assert_string_equal(said, "");
}

/* ---- Changes of a region in place ---- */

static void rereg__address_is_refused_and_the_region_stays(void** state) {
  (void)state;
  begin_listening();
  errno = 0;
  assert_int_equal(ibv_rereg_mr(their_mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mine, kPage, 0), IBV_REREG_MR_ERR_CMD);
  assert_int_equal(errno, EOPNOTSUPP);
  end_listening();
  assert_string_equal(said, "dapple: emulator: a change of a region's address (ibv_rereg_mr) is refused\n");
  assert_ptr_equal(their_mr->addr, theirs);
  device_writes(7, 10, (uintptr_t)theirs + 20, their_mr->rkey);
  for_cpu(theirs + 20, 10);
  assert_true(is_all(theirs + 20, 10, 7));
}

static void rereg__access_is_held_to_the_memory(void** state) {
  unsigned char* page = mmap(NULL, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct ibv_mr* mr = ibv_reg_mr(pd, page, kPage, IBV_ACCESS_REMOTE_READ);

  (void)state;
  assert_non_null(mr);
  errno = 0;
  assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, kAccess), IBV_REREG_MR_ERR_CMD);
  assert_int_equal(errno, EFAULT);
  assert_int_equal(mprotect(page, kPage, PROT_READ | PROT_WRITE), 0);
  /* Then the device decides. */
  if (ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, kAccess) == 0) {
    device_writes(7, 10, (uintptr_t)page + 20, mr->rkey);
    for_cpu(page + 20, 10);
    assert_true(is_all(page + 20, 10, 7));
  } else {
    assert_int_equal(errno, EOPNOTSUPP);
  }
  assert_int_equal(deregister(mr), 0);
  assert_string_equal(said, "");
  assert_int_equal(munmap(page, kPage), 0);
}

static void on_demand_paging__is_refused(void** state) {
  (void)state;
  begin_listening();
  errno = 0;
  assert_null(ibv_reg_mr(pd, mine, kPage, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
  assert_int_equal(errno, EOPNOTSUPP);
  end_listening();
  assert_string_equal(said, "dapple: emulator: on-demand paging is refused\n");
}

/* ---- fork() ---- */

/* Ends the process with exit(), as a program does; the exit code tells whether all was right. */
static void child_syncs_its_parents(void) {
  for_cpu(theirs + 200, 100);
  for_device(theirs, kSize);
  exit(is_all(theirs, kSize, 0xee) ? 0 : 1);
}

static void child_has_a_region_of_its_own(void) {
  /* Kept, so that a leak checker does not report them. */
  static const void* volatile parents[8];

  parents[0] = context;
  parents[1] = pd;
  parents[2] = cq;
  parents[3] = srq;
  parents[4] = qp;
  parents[5] = my_mr;
  parents[6] = their_mr;
  parents[7] = theirs;
  if (set_up(NULL) != 0 || theirs == parents[7]) exit(2);
  device_writes(9, 100, (uintptr_t)theirs + 640, their_mr->rkey);
  if (!is_all(theirs, kSize, 0)) exit(3);
  /* Lets the parent find it. */
  fprintf(stderr, "child: %p\n", (void*)theirs);
  exit(0);
}

static int run_in_child(void (*run)(void)) {
  int status = -1;
  pid_t child;

  begin_listening();
  fflush(stdout);
  child = fork();
  if (child == 0) {
    alarm(120);
    memset(theirs, 0xee, kSize);
    run();
  }
  if (child < 0 || waitpid(child, &status, 0) != child) status = -1;
  end_listening();
  return status;
}

static void fork__a_child_neither_moves_nor_reports_its_parents(void** state) {
  (void)state;
  device_writes(7, 100, (uintptr_t)theirs + 200, their_mr->rkey);
  assert_int_equal(run_in_child(child_syncs_its_parents), 0);
  /* A leak checker may say that its parent's threads are absent. */
  assert_null(strstr(said, "dapple"));
  for_cpu(theirs + 200, 100);
  assert_true(is_all(theirs + 200, 100, 7));
  device_writes(8, 100, (uintptr_t)theirs + 200, their_mr->rkey);
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  assert_true(says(finding(theirs, kSize, 2, 192, kUnsynced)));
}

static void fork__a_child_reports_its_own(void** state) {
  const char* at;
  void* childs = NULL;

  (void)state;
  device_writes(7, 100, (uintptr_t)theirs + 200, their_mr->rkey);
  assert_int_equal(run_in_child(child_has_a_region_of_its_own), 0);
  at = strstr(said, "child: ");
  assert_non_null(at);
  assert_int_equal(sscanf(at, "child: %p", &childs), 1);
  assert_true(says(finding(childs, kSize, 2, 640, kUnsynced)));
  assert_int_equal(times("never synced"), 1);
  assert_int_equal(times("syncs moved"), 1);
  assert_int_equal(deregister(their_mr), 0);
  their_mr = NULL;
  assert_true(says(finding(theirs, kSize, 2, 192, kUnsynced)));
  assert_int_equal(times("never synced"), 1);
}

#define EMULATED_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      EMULATED_TEST(write__without_a_sync_is_named),
      EMULATED_TEST(write__with_a_sync_is_not),
      EMULATED_TEST(write__synced_after_the_region_has_gone),
      EMULATED_TEST(regions__overlapping_ones_share_their_bytes),
      EMULATED_TEST(write_back__bytes_of_the_device_are_lost),
      EMULATED_TEST(window__type_1),
      EMULATED_TEST(window__type_2),
      EMULATED_TEST(srq__receives_are_synced_as_others),
      EMULATED_TEST(atomics__device_and_cpu_have_a_word_each_until_a_sync),
      EMULATED_TEST(atomics__a_neighbour_that_the_cpu_changed_undoes_them),
      EMULATED_TEST(inline_data__is_what_the_cpu_sees),
      EMULATED_TEST(post__of_what_was_not_synced_is_named),
      EMULATED_TEST(reuse__before_the_completion_is_named),
      EMULATED_TEST(read__of_what_was_not_synced_is_named),
      EMULATED_TEST(read__of_what_was_synced_is_not),
      EMULATED_TEST(rereg__address_is_refused_and_the_region_stays),
      EMULATED_TEST(rereg__access_is_held_to_the_memory),
      EMULATED_TEST(on_demand_paging__is_refused),
      EMULATED_TEST(fork__a_child_neither_moves_nor_reports_its_parents),
      EMULATED_TEST(fork__a_child_reports_its_own),
  };
  int failed;

  devices = ibv_get_device_list(NULL);
  if (!devices || !devices[0]) {
    fprintf(stderr, "there is no RDMA device here\n");
    return 1;
  }
  unsetenv("DAPPLE_COHERENCE");
  failed = cmocka_run_group_tests(tests, NULL, NULL);
  ibv_free_device_list(devices);
  return failed;
}
