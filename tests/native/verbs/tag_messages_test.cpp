// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Messages that come to a list of tags: expected, unexpected, and without a tag. Runs under dapple-run.
#include <string.h>

#include <initializer_list>

#include "tests/native/verbs/tag_rig.hpp"

using namespace dapple::tests;

namespace {

void eager__meets_its_tag(void**) {
  add_tag(1, 0x100, 0, 4096);
  add_tag(2, 0x200, 8192, 4096);
  write_header(IBV_TMH_EAGER, 0x200, 0xABCD);
  send_message(10, kHeader + 500);
  const Message got = next_message();
  assert_int_equal(got.id, 2);
  assert_int_equal(got.status, IBV_WC_SUCCESS);
  assert_int_equal(got.opcode, IBV_WC_TM_RECV);
  assert_int_equal(got.flags, kMatch | kData);
  assert_int_equal(got.bytes, 500);
  assert_int_equal(got.tag, 0x200);
  assert_int_equal(got.priv, 0xABCD);
  assert_memory_equal(pair->b.buffer + 8192, pair->a.buffer + kHeader, 500);
  assert_int_equal(pair->b.buffer[8192 + 500], '.');
  assert_int_equal(pair->b.buffer[0], '.');
  // A header alone, and a message that fills its entry.
  write_header(IBV_TMH_EAGER, 0x100);
  send_message(11, kHeader);
  expect_message(1, IBV_WC_TM_RECV, kMatch | kData);
  add_tag(3, 0x300, 0, 1000);
  write_header(IBV_TMH_EAGER, 0x300);
  send_message(12, kHeader + 1000);
  expect_message(3, IBV_WC_TM_RECV, kMatch | kData);
  assert_memory_equal(pair->b.buffer, pair->a.buffer + kHeader, 1000);
  assert_int_equal(pair->b.buffer[1000], '.');
  assert_true(is_quiet());
}

void eager__takes_the_oldest_entry_that_matches(void**) {
  ibv_sge segments[] = {place(0, 100), place(100, 100), place(200, 100)};
  ibv_ops_wr any = addition(1, 0, 0xFF00, &segments[0]);
  ibv_ops_wr exact = addition(2, 0x0007, UINT64_MAX, &segments[1]);
  ibv_ops_wr later = addition(3, 0, 0, &segments[2]);
  any.next = &exact;
  exact.next = &later;
  assert_int_equal(operate(any), 0);
  for (uint64_t id = 1001; id <= 1003; ++id) expect_message(id, IBV_WC_TM_ADD, 0);
  write_header(IBV_TMH_EAGER, 0x0007);
  send_message(10, kHeader + 8);
  expect_message(1, IBV_WC_TM_RECV, kMatch | kData);
  send_message(11, kHeader + 8);
  expect_message(2, IBV_WC_TM_RECV, kMatch | kData);
  write_header(IBV_TMH_EAGER, UINT64_MAX);
  send_message(12, kHeader + 8);
  expect_message(3, IBV_WC_TM_RECV, kMatch | kData);
}

void eager__of_several_packets__completes_twice(void**) {
  for (const uint32_t length : {3000u, 40000u}) {
    add_tag(5, 0x55, 1000, 50000);
    write_header(IBV_TMH_EAGER, 0x55, 9);
    send_message(10, kHeader + length);
    const Message match = next_message();
    assert_int_equal(match.id, 5);
    assert_int_equal(match.flags, kMatch);
    assert_int_equal(match.tag, 0x55);
    assert_int_equal(match.priv, 9);
    const Message data = next_message();
    assert_int_equal(data.id, 5);
    assert_int_equal(data.status, IBV_WC_SUCCESS);
    assert_int_equal(data.opcode, IBV_WC_TM_RECV);
    assert_int_equal(data.flags, kData);
    assert_int_equal(data.bytes, length);
    assert_memory_equal(pair->b.buffer + 1000, pair->a.buffer + kHeader, length);
    assert_int_equal(pair->b.buffer[1000 + length], '.');
  }
}

// It goes to a receive of the queue, with its header. Tags that come then are not in effect until the program has told
// that it has read the message.
void unexpected__holds_new_tags_back(void**) {
  receive_untagged(1, 0, 1000);
  receive_untagged(2, 1000, 1000);
  add_tag(3, 0x33, 2000, 1000);
  write_header(IBV_TMH_EAGER, 0x44);
  send_message(10, kHeader + 100);
  Message got = next_message();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.opcode, IBV_WC_TM_RECV);
  assert_int_equal(got.flags, 0);
  assert_int_equal(got.bytes, kHeader + 100);
  assert_int_equal(got.tag, 0);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, kHeader + 100);
  add_tag(4, 0x44, 3000, 1000, IBV_WC_TM_SYNC_REQ);
  send_message(11, kHeader + 100);
  got = next_message();
  assert_int_equal(got.id, 2);
  assert_int_equal(got.flags, 0);
  // An older tag stays in effect.
  write_header(IBV_TMH_EAGER, 0x33);
  send_message(12, kHeader + 8);
  expect_message(3, IBV_WC_TM_RECV, kMatch | kData);
  sync_count(1, IBV_WC_TM_SYNC_REQ);
  sync_count(2, 0);
  write_header(IBV_TMH_EAGER, 0x44);
  send_message(13, kHeader + 100);
  expect_message(4, IBV_WC_TM_RECV, kMatch | kData);
  assert_memory_equal(pair->b.buffer + 3000, pair->a.buffer + kHeader, 100);
}

// Without an entry and without a receive it waits, and is counted once.
void unexpected__waits_for_a_receive(void**) {
  write_header(IBV_TMH_EAGER, 0x44);
  post_message(10, kHeader + 100);
  assert_true(is_quiet());
  receive_untagged(1, 0, 1000);
  expect(pair->a.cq, 10, IBV_WC_SUCCESS, IBV_WC_SEND);
  expect_message(1, IBV_WC_TM_RECV, 0);
  sync_count(1, 0);
}

void message__without_a_tag__is_a_receive(void**) {
  ibv_sge segment = place(30000, 100);
  ibv_ops_wr any = addition(9, 0, 0, &segment);
  assert_int_equal(operate(any), 0);
  expect_message(1009, IBV_WC_TM_ADD, 0);
  for (uint64_t id = 1; id <= 6; ++id) receive_untagged(id, id * 1000, 1000);
  write_header(IBV_TMH_NO_TAG, 0);
  send_message(10, 300);
  const Message got = next_message();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.opcode, IBV_WC_TM_NO_TAG);
  assert_int_equal(got.bytes, 300);
  assert_memory_equal(pair->b.buffer + 1000, pair->a.buffer, 300);
  // The end of a rendezvous, an unknown operation, and messages without a whole header.
  write_header(IBV_TMH_FIN, 0);
  send_message(11, kBothHeaders);
  expect_message(2, IBV_WC_TM_NO_TAG, 0);
  write_header(200, 0);
  send_message(12, 100);
  expect_message(3, IBV_WC_TM_NO_TAG, 0);
  write_header(IBV_TMH_EAGER, 0);
  send_message(13, kHeader - 1);
  expect_message(4, IBV_WC_TM_NO_TAG, 0);
  write_rendezvous(0, 0, 8, pair->a.mr->rkey);
  send_message(14, kBothHeaders - 1);
  expect_message(5, IBV_WC_TM_NO_TAG, 0);
  send_message(15, 0);
  expect_message(6, IBV_WC_TM_NO_TAG, 0);
  sync_count(0, 0);  // none of them counts
}

void write_with_immediate__takes_a_receive(void**) {
  receive_untagged(1, 0, 0);
  assert_int_equal(post_send(tags.sender, pair->a, 10, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 64, &pair->b), 0);
  expect(pair->a.cq, 10, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  expect_message(1, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM);
}

void eager__too_long_for_its_entry__fails(void**) {
  add_tag(1, 0x11, 0, 99);
  write_header(IBV_TMH_EAGER, 0x11);
  post_message(10, kHeader + 100);
  expect(pair->a.cq, 10, IBV_WC_REM_INV_REQ_ERR, IBV_WC_SEND);
  const Message got = next_message();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.status, IBV_WC_LOC_LEN_ERR);
  for (size_t i = 0; i < 200; ++i) assert_int_equal(pair->b.buffer[i], '.');
}

}  // namespace

int main(int argc, char**) {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(eager__meets_its_tag, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(eager__takes_the_oldest_entry_that_matches, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(eager__of_several_packets__completes_twice, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(unexpected__holds_new_tags_back, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(unexpected__waits_for_a_receive, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(message__without_a_tag__is_a_receive, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(write_with_immediate__takes_a_receive, set_up_tags, tear_down_tags),
  };
  // --check reports what the program does wrong in this one.
  const CMUnitTest mistakes[] = {
      cmocka_unit_test_setup_teardown(eager__too_long_for_its_entry__fails, set_up_tags, tear_down_tags),
  };
  const int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
  return argc > 1 ? failed : failed + cmocka_run_group_tests(mistakes, nullptr, nullptr);
}
