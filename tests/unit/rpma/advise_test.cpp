// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// rpma_mr_advise(): regions of any size, and failures.
#include <cerrno>
#include <cstring>

#include "tests/unit/rpma/objects.hpp"

namespace {

constexpr size_t kGiB = size_t{1} << 30;
constexpr size_t kSize = 9 * kGiB;
constexpr int kAdvice = IBV_ADVISE_MR_ADVICE_PREFETCH;

Objects o;
int lines;

void count(rpma_log_level level, const char*, const int, const char* function, const char* format, ...) {
  if (level == RPMA_LOG_LEVEL_ERROR && !strcmp(function, "advise_failed") && strstr(format, "failed")) ++lines;
}

// A region whose memory is never read.
int set_up(void**) {
  fake::reset();
  lines = 0;
  rpma_log_set_function(count);
  if (rpma_peer_new(fake::context(), &o.peer)) return -1;
  return rpma_mr_reg(o.peer, o.memory, kSize, RPMA_MR_USAGE_READ_SRC, &o.mr);
}

int tear_down(void**) {
  o.free();
  return rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
}

void covers(size_t offset, size_t len) {
  fake::state.advised.clear();
  assert_int_equal(rpma_mr_advise(o.mr, offset, len, kAdvice, 0), 0);
  assert_false(fake::state.advised.empty());
  uint64_t next = reinterpret_cast<uintptr_t>(o.memory) + offset;
  for (const ibv_sge& piece : fake::state.advised) {
    assert_int_equal(piece.addr, next);
    assert_int_equal(piece.lkey, 0x11);
    next += piece.length;
  }
  assert_int_equal(next, reinterpret_cast<uintptr_t>(o.memory) + offset + len);
}

void any_part_of_a_large_region_is_advised_whole(void**) {
  covers(0, 64);
  assert_int_equal(fake::state.advised.size(), 1);
  covers(0, kSize);
  covers(0, 4 * kGiB - 1);
  covers(0, 4 * kGiB);
  covers(4096, 4 * kGiB + 1);
  covers(kSize - 1, 1);
  covers(8, 0);
}

void a_part_that_leaves_the_region_is_refused(void**) {
  assert_int_equal(rpma_mr_advise(o.mr, 1, kSize, kAdvice, 0), RPMA_E_INVAL);
  assert_int_equal(rpma_mr_advise(o.mr, kSize + 1, 0, kAdvice, 0), RPMA_E_INVAL);
  assert_true(fake::state.advised.empty());
}

// Programs continue if the device takes no advice, and give up after other errors.
void each_failure_has_the_originals_error_and_line(void**) {
  const struct {
    int error;
    int expected;
  } rows[] = {{EOPNOTSUPP, RPMA_E_NOSUPP}, {EFAULT, RPMA_E_INVAL}, {EINVAL, RPMA_E_INVAL}, {ENOENT, RPMA_E_PROVIDER}};
  for (const auto& row : rows) {
    lines = 0;
    fake::state.fails_at = static_cast<int>(fake::state.calls.size()) + 1;
    fake::state.error = row.error;
    assert_int_equal(rpma_mr_advise(o.mr, 0, kSize, kAdvice, 0), row.expected);
    assert_int_equal(lines, 1);
  }
}

void a_later_piece_fails_as_the_first_does(void**) {
  fake::state.fails_at = static_cast<int>(fake::state.calls.size()) + 3;
  fake::state.error = EOPNOTSUPP;
  assert_int_equal(rpma_mr_advise(o.mr, 0, kSize, kAdvice, 0), RPMA_E_NOSUPP);
  assert_int_equal(fake::state.advised.size(), 2);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(any_part_of_a_large_region_is_advised_whole, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_part_that_leaves_the_region_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(each_failure_has_the_originals_error_and_line, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_later_piece_fails_as_the_first_does, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
