// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Peers, and the queries to their devices.
#include <algorithm>
#include <cerrno>

#include "tests/unit/rpma/objects.hpp"

namespace {

int set_up(void**) {
  fake::reset();
  return 0;
}

long questions() {
  return std::count(fake::state.calls.begin(), fake::state.calls.end(), "dappledv_query_device");
}

void a_device_is_asked_once_while_it_has_a_peer(void**) {
  rpma_peer* first = nullptr;
  rpma_peer* second = nullptr;
  assert_int_equal(rpma_peer_new(fake::context(), &first), 0);
  assert_int_equal(rpma_peer_new(fake::context(), &second), 0);
  assert_int_equal(questions(), 1);
  // They may be deleted in any order.
  assert_int_equal(rpma_peer_delete(&first), 0);
  assert_int_equal(rpma_peer_new(fake::context(), &first), 0);
  assert_int_equal(questions(), 1);
  assert_int_equal(rpma_peer_delete(&second), 0);
  assert_int_equal(rpma_peer_delete(&first), 0);
}

void make_and_delete() {
  rpma_peer* peer = nullptr;
  assert_int_equal(rpma_peer_new(fake::context(), &peer), 0);
  assert_int_equal(rpma_peer_delete(&peer), 0);
}

void the_answer_outlives_the_last_peer(void**) {
  make_and_delete();
  make_and_delete();
  assert_int_equal(questions(), 1);
}

// Another device's context may get the address of a closed context.
void another_device_at_the_same_address_is_asked(void**) {
  make_and_delete();
  fake::change_device();
  make_and_delete();
  assert_int_equal(questions(), 2);
}

void another_override_is_another_question(void**) {
  make_and_delete();
  setenv("DAPPLE_COHERENCE", "coherent", 1);
  make_and_delete();
  assert_int_equal(questions(), 2);
  const std::string long_list(200, 'x');
  setenv("DAPPLE_COHERENCE", long_list.c_str(), 1);
  make_and_delete();
  make_and_delete();
  unsetenv("DAPPLE_COHERENCE");
  assert_int_equal(questions(), 4);
}

void another_report_of_persistence_is_another_question(void**) {
  make_and_delete();
  setenv("DAPPLE_PERSISTENCE", "cpu_cache", 1);
  make_and_delete();
  unsetenv("DAPPLE_PERSISTENCE");
  assert_int_equal(questions(), 2);
}

void a_device_with_an_overlay_may_be_emulated_by_now(void**) {
  make_and_delete();
  fake::state.attached = true;
  make_and_delete();
  make_and_delete();
  assert_int_equal(questions(), 3);
  fake::state.attached = false;
  make_and_delete();
  make_and_delete();
  assert_int_equal(questions(), 4);
}

void a_question_that_fails_leaves_no_answer(void**) {
  rpma_peer* peer = nullptr;
  fake::state.fails_at = 3;  // after the allocations of the peer and its answers
  fake::state.error = EIO;
  assert_int_equal(rpma_peer_new(fake::context(), &peer), RPMA_E_PROVIDER);
  make_and_delete();
  assert_int_equal(questions(), 2);
}

}  // namespace

int main() {
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_device_is_asked_once_while_it_has_a_peer, set_up),
      cmocka_unit_test_setup(the_answer_outlives_the_last_peer, set_up),
      cmocka_unit_test_setup(another_device_at_the_same_address_is_asked, set_up),
      cmocka_unit_test_setup(another_override_is_another_question, set_up),
      cmocka_unit_test_setup(another_report_of_persistence_is_another_question, set_up),
      cmocka_unit_test_setup(a_device_with_an_overlay_may_be_emulated_by_now, set_up),
      cmocka_unit_test_setup(a_question_that_fails_leaves_no_answer, set_up),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
