// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A rendezvous with a list of tags: the device reads the bytes, or leaves it to the program. Runs under dapple-run.
#include <string.h>

#include <initializer_list>

#include "tests/native/verbs/tag_rig.hpp"

using namespace dapple::tests;

namespace {

// The device reads the bytes, and tells the sender.
void rendezvous__reads_from_the_sender(void**) {
  for (const uint32_t length : {20000u, 1u, 0u, 48000u}) {
    memset(pair->b.buffer, '.', kBufferSize);
    add_tag(1, 0x99, 100, 50000);
    receive_end(20, 60000);
    write_rendezvous(0x99, 64, length, pair->a.mr->rkey);
    send_message(10, kBothHeaders + 10);
    const Message match = next_message();
    assert_int_equal(match.id, 1);
    assert_int_equal(match.status, IBV_WC_SUCCESS);
    assert_int_equal(match.opcode, IBV_WC_TM_RECV);
    assert_int_equal(match.flags, kMatch);
    assert_int_equal(match.tag, 0x99);
    assert_int_equal(match.priv, 0x1234);
    expect(pair->a.cq, 20, IBV_WC_SUCCESS, IBV_WC_RECV);
    const Message data = next_message();
    assert_int_equal(data.id, 1);
    assert_int_equal(data.status, IBV_WC_SUCCESS);
    assert_int_equal(data.opcode, IBV_WC_TM_RECV);
    assert_int_equal(data.flags, kData);
    assert_int_equal(data.bytes, length);
    assert_memory_equal(pair->b.buffer + 100, pair->a.buffer + 64, length);
    assert_int_equal(pair->b.buffer[99], '.');
    assert_int_equal(pair->b.buffer[100 + length], '.');
    // The headers come back, with another operation.
    assert_int_equal(pair->a.buffer[60000], IBV_TMH_FIN);
    assert_memory_equal(pair->a.buffer + 60001, pair->a.buffer + 1, kBothHeaders - 1);
  }
}

// More than the device has under way at a time: the others come again.
void rendezvous__many__all_complete(void**) {
  constexpr uint32_t kCount = 40;
  ibv_sge segment = place(0, 1000);
  uint32_t added = 0, sent = 0, ends = 0, data = 0, told = 0;
  for (uint32_t i = 0; i < kCount; ++i) receive_end(500 + i, 50000 + i * 64);
  while (data < kCount || ends < kCount || told < kCount) {
    for (; added < kCount && added < data + kTags; ++added) {
      segment = place(added * 1000, 1000);
      ibv_ops_wr wr = addition(added, 5, UINT64_MAX, &segment);
      assert_int_equal(operate(wr), 0);
    }
    for (; sent < added; ++sent) {
      write_rendezvous(5, 2000, 1000, pair->a.mr->rkey);
      post_message(100 + sent, kBothHeaders);
    }
    const Message got = next_message();
    assert_int_equal(got.status, IBV_WC_SUCCESS);
    if (got.opcode == IBV_WC_TM_RECV && got.flags == kData) assert_int_equal(got.id, data++);
    ibv_wc completion = {};
    while (ibv_poll_cq(pair->a.cq, 1, &completion) == 1) {
      assert_int_equal(completion.status, IBV_WC_SUCCESS);
      if (completion.opcode == IBV_WC_SEND) told++;
      if (completion.opcode == IBV_WC_RECV) assert_int_equal(completion.wr_id, 500 + ends++);
    }
  }
  for (uint32_t i = 0; i < kCount; ++i) assert_memory_equal(pair->b.buffer + i * 1000, pair->a.buffer + 2000, 1000);
}

void expect_incomplete(uint64_t id, uint32_t length) {
  const Message got = next_message();
  assert_int_equal(got.id, id);
  assert_int_equal(got.status, IBV_WC_TM_RNDV_INCOMPLETE);
  assert_int_equal(got.bytes, length);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, length);
}

// The program gets the headers in the memory of the tag, and goes on by itself.
void rendezvous__too_long_for_its_entry__is_left_to_the_program(void**) {
  add_tag(1, 0x99, 0, 1000);
  write_rendezvous(0x99, 64, 1001, pair->a.mr->rkey);
  send_message(10, kBothHeaders + 5);
  expect_incomplete(1, kBothHeaders + 5);
  // A request with more bytes than the device looks at.
  add_tag(2, 0x99, 0, 1000);
  write_rendezvous(0x99, 64, 10, pair->a.mr->rkey);
  send_message(11, 65);
  expect_incomplete(2, 65);
  // The queue pair is as before.
  add_tag(3, 0x99, 0, 1000);
  write_header(IBV_TMH_EAGER, 0x99);
  send_message(12, kHeader + 7);
  expect_message(3, IBV_WC_TM_RECV, kMatch | kData);
}

void rendezvous__without_a_match__is_unexpected(void**) {
  receive_untagged(1, 0, 1000);
  write_rendezvous(0x99, 64, 1000, pair->a.mr->rkey);
  send_message(10, kBothHeaders + 4);
  const Message got = next_message();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.flags, 0);
  assert_int_equal(got.bytes, kBothHeaders + 4);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, kBothHeaders + 4);
  sync_count(1, 0);
}

// A queue pair with requests of the program has no room for the device's.
void rendezvous__to_a_queue_pair_that_sends__is_left_to_the_program(void**) {
  assert_true(begin_tags(4));
  add_tag(1, 0x99, 0, 1000);
  write_rendezvous(0x99, 64, 500, pair->a.mr->rkey);
  send_message(10, kBothHeaders);
  expect_incomplete(1, kBothHeaders);
  // The program's own Read of the bytes.
  assert_int_equal(post_send(tags.receiver, pair->b, 30, IBV_WR_RDMA_READ, 0, 500, &pair->a, 64), 0);
  expect(pair->a.cq, 30, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
  assert_memory_equal(pair->b.buffer, pair->a.buffer + 64, 500);
}

void rendezvous__with_a_wrong_key__fails(void**) {
  add_tag(1, 0x99, 0, 1000);
  write_rendezvous(0x99, 64, 1000, pair->a.mr->rkey ^ 0x5500);
  post_message(10, kBothHeaders);
  expect_message(1, IBV_WC_TM_RECV, kMatch);
  const Message got = next_message();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.status, IBV_WC_REM_ACCESS_ERR);
  for (size_t i = 0; i < 1000; ++i) assert_int_equal(pair->b.buffer[i], '.');
}

// The peer's number leads nowhere, so the Read has no answer.
void rendezvous__of_a_peer_that_ends__fails(void**) {
  assert_int_equal(ibv_destroy_qp(tags.receiver), 0);
  tags.receiver = make_tag_qp(tags.srq, 0);
  assert_non_null(tags.receiver);
  ibv_qp* gone = make_tag_qp(nullptr, 1);
  assert_non_null(gone);
  assert_true(connect(tags.receiver, gone->qp_num, 8));
  assert_int_equal(ibv_destroy_qp(gone), 0);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RESET;
  assert_int_equal(ibv_modify_qp(tags.sender, &attr, IBV_QP_STATE), 0);
  assert_true(connect(tags.sender, tags.receiver->qp_num));
  add_tag(1, 0x99, 0, 1000);
  write_rendezvous(0x99, 64, 1000, pair->a.mr->rkey);
  post_message(10, kBothHeaders);
  expect_message(1, IBV_WC_TM_RECV, kMatch);
  const Message got = next_message();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.status, IBV_WC_RETRY_EXC_ERR);
}

// A message in progress gives its entry back, and the queue goes on.
void reset__in_a_rendezvous__frees_the_entry(void**) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RESET;
  for (int round = 0; round < 3 * static_cast<int>(kTags); ++round) {
    add_tag(1, 0x99, 0, 1000);
    write_rendezvous(0x99, 64, 1000, pair->a.mr->rkey);
    post_message(10, kBothHeaders);  // the end finds no receive
    expect_message(1, IBV_WC_TM_RECV, kMatch);
    assert_int_equal(ibv_modify_qp(tags.receiver, &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_modify_qp(tags.sender, &attr, IBV_QP_STATE), 0);
    assert_true(connect(tags.receiver, tags.sender->qp_num) && connect(tags.sender, tags.receiver->qp_num));
  }
  add_tag(2, 0x99, 0, 1000);
  write_header(IBV_TMH_EAGER, 0x99);
  send_message(11, kHeader + 4);
  expect_message(2, IBV_WC_TM_RECV, kMatch | kData);
}

}  // namespace

int main(int argc, char**) {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(rendezvous__reads_from_the_sender, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(rendezvous__many__all_complete, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(rendezvous__too_long_for_its_entry__is_left_to_the_program, set_up_tags,
                                      tear_down_tags),
      cmocka_unit_test_setup_teardown(rendezvous__without_a_match__is_unexpected, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(rendezvous__to_a_queue_pair_that_sends__is_left_to_the_program, set_up_no_tags,
                                      tear_down_tags),
      cmocka_unit_test_setup_teardown(rendezvous__of_a_peer_that_ends__fails, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(reset__in_a_rendezvous__frees_the_entry, set_up_tags, tear_down_tags),
  };
  // --check reports what the program does wrong in this one.
  const CMUnitTest mistakes[] = {
      cmocka_unit_test_setup_teardown(rendezvous__with_a_wrong_key__fails, set_up_tags, tear_down_tags),
  };
  const int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
  return argc > 1 ? failed : failed + cmocka_run_group_tests(mistakes, nullptr, nullptr);
}
