// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The entry of a GID that a queue pair or an address handle uses is given to no other address. Runs under dapple-run.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

constexpr int kEntries = 16;

// The index of the GID of 10.9.9.LAST; -1 if it is not in the table.
int entry_of(uint8_t last) {
  for (int i = 0; i < kEntries; i++) {
    ibv_gid gid = {};
    if (ibv_query_gid(pair->context, 1, i, &gid) != 0) continue;
    if (gid.raw[11] == 0xFF && gid.raw[12] == 10 && gid.raw[13] == 9 && gid.raw[15] == last) return i;
  }
  return -1;
}

// An empty entry has no GID, or a zero one.
bool is_visible(int entry) {
  static const ibv_gid kNone = {};
  ibv_gid gid = {};
  return ibv_query_gid(pair->context, 1, entry, &gid) == 0 && memcmp(&gid, &kNone, sizeof gid) != 0;
}

bool address(const char* verb, uint8_t last) {
  char command[80];
  snprintf(command, sizeof command, "ip addr %s 10.9.9.%u/32 dev lo", verb, last);
  return run(command);
}

bool reset(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RESET;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0;
}

bool connect_from(int entry) {
  ibv_gid gid = {};
  if (entry < 0 || ibv_query_gid(pair->context, 1, entry, &gid) != 0) return false;
  return reset(pair->a.qp) && connect(pair->a.qp, pair->b.qp->qp_num, 10, static_cast<uint8_t>(entry), gid);
}

ibv_ah* handle_from(int entry) {
  ibv_ah_attr attr = {};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.hop_limit = 64;
  attr.grh.sgid_index = static_cast<uint8_t>(entry);
  if (entry < 0 || ibv_query_gid(pair->context, 1, entry, &attr.grh.dgid) != 0) return nullptr;
  return ibv_create_ah(pair->pd, &attr);
}

// While something uses the entry of .1. Afterwards .2 and .1 have other entries.
void expect_kept(int entry) {
  assert_true(address("del", 1));
  assert_int_equal(entry_of(1), -1);
  assert_false(is_visible(entry));
  assert_true(address("add", 2));
  assert_int_not_equal(entry_of(2), -1);
  assert_int_not_equal(entry_of(2), entry);
  assert_true(address("add", 1));
  assert_int_not_equal(entry_of(1), -1);
  assert_int_not_equal(entry_of(1), entry);
  assert_false(is_visible(entry));
}

void expect_free(int entry) {
  assert_true(address("add", 3));
  assert_int_equal(entry_of(3), entry);
}

int begin_with_address(void**) {
  if (!begin({})) return 1;
  run("for i in 1 2 3; do ip addr del 10.9.9.$i/32 dev lo 2>/dev/null; done");
  // An address that is back before the device looks keeps its entry, which need not be the first free one.
  if (entry_of(1) != -1) return 1;
  return address("add", 1) ? 0 : 1;
}

void queue_pair__its_address_goes__keeps_the_entry(void**) {
  const int entry = entry_of(1);
  assert_true(connect_from(entry));
  expect_kept(entry);
  // Reset, it keeps its address.
  assert_true(reset(pair->a.qp));
  assert_true(address("del", 2) && address("add", 2));
  assert_int_not_equal(entry_of(2), entry);
  assert_true(connect_from(entry_of(1)));
  expect_free(entry);
}

void queue_pair__destroyed__frees_the_entry(void**) {
  const int entry = entry_of(1);
  assert_true(connect_from(entry));
  assert_true(address("del", 1));
  assert_int_equal(ibv_destroy_qp(pair->a.qp), 0);
  pair->a.qp = nullptr;
  expect_free(entry);
}

void address_handle__its_address_goes__keeps_the_entry(void**) {
  const int entry = entry_of(1);
  ibv_ah* first = handle_from(entry);
  ibv_ah* second = handle_from(entry);
  assert_true(first != nullptr && second != nullptr);
  assert_int_equal(ibv_destroy_ah(first), 0);
  expect_kept(entry);
  assert_int_equal(ibv_destroy_ah(second), 0);
  expect_free(entry);
}

void empty_entry__queue_pair__is_refused(void**) {
  const int entry = entry_of(1);
  assert_true(connect_from(entry));
  assert_true(address("del", 1));
  assert_int_equal(entry_of(1), -1);
  ibv_gid gid = {};
  gid.raw[10] = gid.raw[11] = 0xFF;
  gid.raw[12] = 127;
  gid.raw[15] = 1;
  assert_true(reset(pair->b.qp));
  assert_false(connect(pair->b.qp, pair->a.qp->qp_num, 10, static_cast<uint8_t>(entry), gid));
}

void address_handle__child_of_fork_destroys_its_copy__keeps_the_entry(void**) {
  const int entry = entry_of(1);
  ibv_ah* handle = handle_from(entry);
  assert_non_null(handle);
  const pid_t child = fork();
  if (child == 0) {
    ibv_destroy_ah(handle);
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  expect_kept(entry);
  assert_int_equal(ibv_destroy_ah(handle), 0);
}

}  // namespace

int main() {
  need_new_namespace();
  if (!run("ip addr add 10.9.9.1/32 dev lo")) skip_program("no address can be added to lo");
  const CMUnitTest all[] = {
      cmocka_unit_test_setup_teardown(queue_pair__its_address_goes__keeps_the_entry, begin_with_address, finish),
      cmocka_unit_test_setup_teardown(queue_pair__destroyed__frees_the_entry, begin_with_address, finish),
      cmocka_unit_test_setup_teardown(address_handle__its_address_goes__keeps_the_entry, begin_with_address, finish),
      cmocka_unit_test_setup_teardown(empty_entry__queue_pair__is_refused, begin_with_address, finish),
      cmocka_unit_test_setup_teardown(address_handle__child_of_fork_destroys_its_copy__keeps_the_entry,
                                      begin_with_address, finish),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
