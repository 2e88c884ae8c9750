// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Under dapple-run --check: the warning about writes to persistent memory that nothing has flushed.
#include <cstdlib>
#include <cstring>

#include "tests/unit/rpma/objects.hpp"

namespace {

constexpr int kOn = RPMA_F_COMPLETION_ALWAYS;
const char kBytes[8] = {};

Objects o;

int set_up(void**) {
  fake::reset();
  o.make();
  o.connect();
  fake::state.reports.clear();
  return 0;
}

int tear_down(void**) {
  o.free();
  return 0;
}

void write() {
  assert_int_equal(rpma_write(o.conn, o.remote, 0, o.mr, 0, 16, kOn, nullptr), 0);
}

void flush() {
  assert_int_equal(rpma_flush(o.conn, o.remote, 0, 16, RPMA_FLUSH_TYPE_VISIBILITY, kOn, nullptr), 0);
}

size_t reports_of_disconnection() {
  assert_int_equal(rpma_conn_disconnect(o.conn), 0);
  return fake::state.reports.size();
}

void disconnect__writes_without_flush__reports_their_bytes(void**) {
  write();
  write();

  assert_int_equal(reports_of_disconnection(), 1);
  assert_non_null(strstr(fake::state.reports[0].c_str(), "rpma_conn_disconnect() ends"));
  assert_non_null(strstr(fake::state.reports[0].c_str(), "has written 32 bytes into"));
  // Once.
  assert_int_equal(rpma_conn_delete(&o.conn), 0);
  assert_int_equal(fake::state.reports.size(), 1);
}

void disconnect__flushed__reports_nothing(void**) {
  write();
  flush();

  assert_int_equal(reports_of_disconnection(), 0);
}

void disconnect__write_after_the_flush__reports_it(void**) {
  write();
  flush();
  write();

  assert_int_equal(reports_of_disconnection(), 1);
  assert_non_null(strstr(fake::state.reports[0].c_str(), "has written 16 bytes into"));
}

// The peer may make the bytes persistent, as with the general-purpose method.
void disconnect__message_after_the_write__reports_nothing(void**) {
  write();
  assert_int_equal(rpma_send(o.conn, o.mr, 0, 8, kOn, nullptr), 0);
  assert_int_equal(reports_of_disconnection(), 0);
}

void disconnect__immediate_or_read_after_the_write__reports_nothing(void**) {
  write();
  assert_int_equal(rpma_write_with_imm(o.conn, o.remote, 0, o.mr, 0, 8, kOn, 1, nullptr), 0);
  assert_int_equal(reports_of_disconnection(), 0);
  write();
  assert_int_equal(rpma_read(o.conn, o.mr, 0, o.remote, 0, 8, kOn, nullptr), 0);
  assert_int_equal(reports_of_disconnection(), 0);
}

void disconnect__atomic_write__reports_it(void**) {
  assert_int_equal(rpma_atomic_write(o.conn, o.remote, 0, kBytes, kOn, nullptr), 0);

  assert_int_equal(reports_of_disconnection(), 1);
}

void disconnect__region_of_another_usage__reports_nothing(void**) {
  rpma_mr_local* other = nullptr;
  uint8_t descriptor[22];
  assert_int_equal(
      rpma_mr_reg(o.peer, o.memory, 64, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, &other), 0);
  assert_int_equal(rpma_mr_get_descriptor(other, descriptor), 0);
  o.take_remote(descriptor, sizeof descriptor);
  write();
  assert_int_equal(rpma_mr_dereg(&other), 0);

  assert_int_equal(reports_of_disconnection(), 0);
}

void disconnect__failed_connection__reports_nothing(void**) {
  write();
  fake::state.qp_state = IBV_QPS_ERR;

  assert_int_equal(reports_of_disconnection(), 0);
}

void delete__no_disconnection__reports_it(void**) {
  write();
  assert_int_equal(rpma_conn_delete(&o.conn), 0);

  assert_int_equal(fake::state.reports.size(), 1);
  assert_non_null(strstr(fake::state.reports[0].c_str(), "rpma_conn_delete() ends"));
}

void delete__peer_has_closed__reports_nothing(void**) {
  rpma_conn_event event;
  write();
  fake::state.events.push_back({RDMA_CM_EVENT_DISCONNECTED, ""});
  assert_int_equal(rpma_conn_next_event(o.conn, &event), 0);
  assert_int_equal(rpma_conn_delete(&o.conn), 0);

  assert_int_equal(fake::state.reports.size(), 0);
}

}  // namespace

int main() {
  // As under dapple-run --check.
  setenv("DAPPLE_CHECK_RECORDS", "/dev/null", 1);
  unsetenv("DAPPLE_EXPLAIN");
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(disconnect__writes_without_flush__reports_their_bytes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(disconnect__flushed__reports_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(disconnect__write_after_the_flush__reports_it, set_up, tear_down),
      cmocka_unit_test_setup_teardown(disconnect__message_after_the_write__reports_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(disconnect__immediate_or_read_after_the_write__reports_nothing, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(disconnect__atomic_write__reports_it, set_up, tear_down),
      cmocka_unit_test_setup_teardown(disconnect__region_of_another_usage__reports_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(disconnect__failed_connection__reports_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(delete__no_disconnection__reports_it, set_up, tear_down),
      cmocka_unit_test_setup_teardown(delete__peer_has_closed__reports_nothing, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
