// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The features of a peer and a connection, and their reasons, compared with the requests that are then posted.
#include <cstdlib>
#include <cstring>
#include <string>

#include "rpma/common/native.hpp"
#include "tests/unit/rpma/objects.hpp"

namespace {

using namespace dapple::rpma;

constexpr int kOn = RPMA_F_COMPLETION_ALWAYS;
constexpr rpma_feature kNative[] = {RPMA_FEATURE_NATIVE_ATOMIC_WRITE, RPMA_FEATURE_NATIVE_FLUSH_VISIBILITY,
                                    RPMA_FEATURE_NATIVE_FLUSH_PERSISTENT};
const char kBytes[8] = {};

Objects o;
std::string logged;

void keep_log(rpma_log_level, const char*, const int, const char*, const char* format, ...) {
  logged = format;
}

int start(void (*prepare)()) {
  fake::reset();
  logged.clear();
  if (prepare) prepare();
  o.make();
  o.connect();
  assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(o.peer_cfg, true), 0);
  assert_int_equal(rpma_conn_apply_remote_peer_cfg(o.conn, o.peer_cfg), 0);
  return 0;
}
int set_up_plain(void**) {
  return start(nullptr);
}
int set_up_native(void**) {
  return start(fake::make_native);
}
int set_up_old_library(void**) {
  return start([] {
    fake::make_native();
    fake::state.known_send_ops = native::kQpWithAtomicWrite;
  });
}
int set_up_forbidden(void**) {
  setenv("DAPPLE_RPMA_NATIVE", "no", 1);
  return start(fake::make_native);
}

int tear_down(void**) {
  unsetenv("DAPPLE_RPMA_NATIVE");
  o.free();
  return 0;
}

// The answers end with this reason, and agree with the posted requests.
void peer_says(rpma_feature feature, bool expected, const char* why) {
  bool has = !expected;
  const char* reason = nullptr;
  assert_int_equal(rpma_peer_has_feature(o.peer, feature, &has, &reason), 0);
  assert_int_equal(has, expected);
  assert_non_null(strstr(reason, why));
  assert_int_equal(rpma_peer_has_feature(o.peer, feature, &has, nullptr), 0);
}

std::string posted_for(rpma_feature feature) {
  int error = 0;
  if (feature == RPMA_FEATURE_NATIVE_ATOMIC_WRITE) {
    error = rpma_atomic_write(o.conn, o.remote, 0, kBytes, kOn, nullptr);
  } else {
    const bool persistent = feature == RPMA_FEATURE_NATIVE_FLUSH_PERSISTENT;
    error = rpma_flush(o.conn, o.remote, 0, 8, persistent ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY,
                       kOn, nullptr);
  }
  assert_int_equal(error, 0);
  return only_posted().what;
}

void conn_says(const rpma_mr_remote* mr, rpma_feature feature, bool expected, const char* why) {
  bool has = !expected;
  const char* reason = nullptr;
  assert_int_equal(rpma_conn_has_feature(o.conn, mr, feature, &has, &reason), 0);
  assert_int_equal(has, expected);
  assert_non_null(strstr(reason, why));
  assert_true(fake::state.posted.empty());
  if (mr) assert_int_equal(posted_for(feature) != "send", expected);
}

void without_native_operations_the_device_is_why(void**) {
  for (const rpma_feature each : kNative) {
    peer_says(each, false, "the device or the kernel");
    conn_says(nullptr, each, false, "the device or the kernel");
    conn_says(o.remote, each, false, "the device or the kernel");
  }
}

void with_them_a_connection_knows_before_it_posts(void**) {
  for (const rpma_feature each : kNative) {
    peer_says(each, true, "libibverbs");
    conn_says(nullptr, each, true, "a peer's region decides");
    conn_says(o.remote, each, true, "the peer");
  }
}

void an_old_library_is_why(void**) {
  peer_says(RPMA_FEATURE_NATIVE_ATOMIC_WRITE, true, "libibverbs");
  conn_says(o.remote, RPMA_FEATURE_NATIVE_ATOMIC_WRITE, true, "the peer");
  peer_says(RPMA_FEATURE_NATIVE_FLUSH_VISIBILITY, false, "libibverbs or the driver");
  conn_says(o.remote, RPMA_FEATURE_NATIVE_FLUSH_VISIBILITY, false, "libibverbs or the driver");
}

void a_peer_that_offers_nothing_is_why(void**) {
  uint8_t descriptor[22];
  assert_int_equal(rpma_mr_get_descriptor(o.mr, descriptor), 0);
  o.take_remote(descriptor, 21);
  for (const rpma_feature each : kNative) conn_says(o.remote, each, false, "does not offer it");
}

void an_odd_address_is_why(void**) {
  uint8_t descriptor[22];
  assert_int_equal(rpma_mr_get_descriptor(o.mr, descriptor), 0);
  ++descriptor[0];
  o.take_remote(descriptor, sizeof descriptor);
  conn_says(o.remote, RPMA_FEATURE_NATIVE_ATOMIC_WRITE, false, "multiple of 8");
  conn_says(o.remote, RPMA_FEATURE_NATIVE_FLUSH_VISIBILITY, true, "the peer");
}

void the_environment_forbids_native_operations(void**) {
  uint8_t descriptor[22];
  assert_int_equal(fake::state.created_extended, 0);
  assert_int_equal(rpma_mr_get_descriptor(o.mr, descriptor), 0);
  assert_int_equal(descriptor[21], 0xd0);  // nor are they offered
  for (const rpma_feature each : kNative) {
    peer_says(each, false, "DAPPLE_RPMA_NATIVE=no");
    conn_says(o.remote, each, false, "DAPPLE_RPMA_NATIVE=no");
  }
}

void another_word_is_said_to_be_none(void**) {
  o.free();
  setenv("DAPPLE_RPMA_NATIVE", "maybe", 1);
  rpma_log_set_function(keep_log);
  o.make();
  rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
  assert_non_null(strstr(logged.c_str(), "DAPPLE_RPMA_NATIVE"));
  peer_says(RPMA_FEATURE_NATIVE_ATOMIC_WRITE, true, "libibverbs");
}

// A peer's configuration from its machine's report.
void platform_says(dappledv_answer caches, bool expected, const char* why) {
  bool direct = !expected;
  o.free();
  fake::reset();
  fake::state.attr.caches_persistent = static_cast<uint8_t>(caches);
  o.make();
  peer_says(RPMA_FEATURE_DIRECT_WRITE_TO_PMEM, expected, why);
  assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(o.peer_cfg, !expected), 0);
  assert_int_equal(rpma_peer_cfg_set_from_platform(o.peer_cfg, o.peer), 0);
  assert_int_equal(rpma_peer_cfg_get_direct_write_to_pmem(o.peer_cfg, &direct), 0);
  assert_int_equal(direct, expected);
}

void direct_write_is_what_the_platform_says(void**) {
  platform_says(DAPPLEDV_ANSWER_YES, true, "eADR");
  platform_says(DAPPLEDV_ANSWER_NO, false, "DDIO");
  platform_says(DAPPLEDV_ANSWER_UNKNOWN, false, "no persistence domain");
}

void of_a_connection_it_is_the_peers_word(void**) {
  bool has = false;
  assert_int_equal(rpma_conn_has_feature(o.conn, nullptr, RPMA_FEATURE_DIRECT_WRITE_TO_PMEM, &has, nullptr), 0);
  assert_true(has);
  assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(o.peer_cfg, false), 0);
  assert_int_equal(rpma_conn_apply_remote_peer_cfg(o.conn, o.peer_cfg), 0);
  assert_int_equal(rpma_conn_has_feature(o.conn, nullptr, RPMA_FEATURE_DIRECT_WRITE_TO_PMEM, &has, nullptr), 0);
  assert_false(has);
}

}  // namespace

#define WITH(test, set_up) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main() {
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED);
  const CMUnitTest tests[] = {
      WITH(without_native_operations_the_device_is_why, set_up_plain),
      WITH(with_them_a_connection_knows_before_it_posts, set_up_native),
      WITH(an_old_library_is_why, set_up_old_library),
      WITH(a_peer_that_offers_nothing_is_why, set_up_native),
      WITH(an_odd_address_is_why, set_up_native),
      WITH(the_environment_forbids_native_operations, set_up_forbidden),
      WITH(another_word_is_said_to_be_none, set_up_native),
      WITH(direct_write_is_what_the_platform_says, set_up_plain),
      WITH(of_a_connection_it_is_the_peers_word, set_up_plain),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
