// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Lists of tags: their operations, limits and objects. Runs under dapple-run.
#include <errno.h>

#include <initializer_list>

#include "tests/native/verbs/tag_rig.hpp"

using namespace dapple::tests;

namespace {

void query__tells_what_lists_can(void**) {
  ibv_device_attr_ex attr = {};
  assert_int_equal(ibv_query_device_ex(pair->context, nullptr, &attr), 0);
  assert_int_equal(attr.tm_caps.flags, IBV_TM_CAP_RC);
  assert_int_equal(attr.tm_caps.max_rndv_hdr_size, 64);
  assert_int_equal(attr.tm_caps.max_num_tags, 127);
  assert_true(attr.tm_caps.max_ops >= kOperations);
  assert_true(attr.tm_caps.max_sge >= 1);
}

void create__with_wrong_attributes__is_refused(void**) {
  tags.cq = make_tag_cq();
  assert_non_null(tags.cq);
  const auto error_of = [](const ibv_srq_init_attr_ex& wanted) {
    ibv_srq_init_attr_ex attr = wanted;
    errno = 0;
    return ibv_create_srq_ex(pair->context, &attr) == nullptr ? errno : 0;
  };
  ibv_srq_init_attr_ex attr = tag_attributes();
  attr.comp_mask &= ~uint32_t{IBV_SRQ_INIT_ATTR_TM};
  assert_int_equal(error_of(attr), EINVAL);
  attr = tag_attributes();
  attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
  assert_int_equal(error_of(attr), EINVAL);
  attr = tag_attributes();
  attr.cq = nullptr;
  assert_int_equal(error_of(attr), EINVAL);
  attr.cq = pair->a.cq;  // not an extended one
  assert_int_equal(error_of(attr), EINVAL);
  for (const uint32_t count : {0u, 128u}) {
    attr = tag_attributes();
    attr.tm_cap.max_num_tags = count;
    assert_int_equal(error_of(attr), EINVAL);
  }
  attr = tag_attributes();
  attr.tm_cap.max_ops = 0;
  assert_int_equal(error_of(attr), EINVAL);
  attr = tag_attributes();
  attr.attr.max_wr = 0;
  assert_int_equal(error_of(attr), EINVAL);
  attr = tag_attributes();
  tags.srq = ibv_create_srq_ex(pair->context, &attr);
  assert_non_null(tags.srq);
  assert_null(make_tag_qp(tags.srq, 0, IBV_QPT_UD));
  assert_int_equal(errno, EINVAL);
  // The queue needs its completion queue.
  assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(tags.cq)), EBUSY);
}

void operations__on_another_queue__are_refused(void**) {
  ibv_srq_init_attr attr = {nullptr, {4, 1, 0}};
  tags.srq = ibv_create_srq(pair->pd, &attr);
  assert_non_null(tags.srq);
  ibv_ops_wr wr = addition(1, 1, 1, nullptr);
  assert_int_equal(operate(wr), EINVAL);
  assert_int_equal(errno, EINVAL);
}

void remove__before_and_after_a_match(void**) {
  const uint32_t first = add_tag(1, 0x11, 0, 100);
  const uint32_t second = add_tag(2, 0x22, 100, 100);
  assert_int_equal(remove_tag(50, first), 0);
  expect_message(50, IBV_WC_TM_DEL, 0);
  write_header(IBV_TMH_EAGER, 0x22);
  send_message(10, kHeader + 4);
  expect_message(2, IBV_WC_TM_RECV, kMatch | kData);
  for (const uint32_t handle : {first, second}) {
    assert_int_equal(remove_tag(51, handle), 0);
    const Message got = next_message();
    assert_int_equal(got.id, 51);
    assert_int_equal(got.status, IBV_WC_TM_ERR);
    assert_int_equal(got.opcode, IBV_WC_TM_DEL);
  }
  // The place of an entry gets another one, which the old handle does not mean.
  for (uint64_t id = 3; id < 3 + kTags; ++id) add_tag(id, id, 0, 100);
  assert_int_equal(remove_tag(52, first), 0);
  assert_int_equal(next_message().status, IBV_WC_TM_ERR);
  // The removed tag matches nothing.
  receive_untagged(90, 200, 1000);
  write_header(IBV_TMH_EAGER, 0x11);
  send_message(11, kHeader + 4);
  expect_message(90, IBV_WC_TM_RECV, 0);
}

void operations__beyond_the_limits__are_refused(void**) {
  ibv_ops_wr wr = addition(1, 1, 1, nullptr);
  wr.opcode = static_cast<ibv_ops_wr_opcode>(9);
  assert_int_equal(operate(wr), EINVAL);
  assert_int_equal(remove_tag(1, 0xFF), EINVAL);
  wr = addition(1, 1, 1, nullptr);
  wr.tm.add.num_sge = -1;
  assert_int_equal(operate(wr), EINVAL);
  ibv_sge many[64] = {};
  wr.tm.add.sg_list = many;
  wr.tm.add.num_sge = 64;
  assert_int_equal(operate(wr), EINVAL);
  for (uint64_t id = 0; id < kTags; ++id) add_tag(id, id, 0, 100);
  wr = addition(99, 99, UINT64_MAX, nullptr);
  assert_int_equal(operate(wr), ENOMEM);
  assert_int_equal(errno, ENOMEM);
  // Operations without a completion stay outstanding until that of a later one is polled.
  wr = {};
  wr.opcode = IBV_WR_TAG_SYNC;
  uint32_t posted = 0;
  for (; posted < 1000 && operate(wr) == 0; ++posted) continue;
  assert_true(posted >= kOperations && posted < 1000);
  assert_int_equal(operate(wr), ENOMEM);
}

void operations__whose_completions_are_polled__go_on(void**) {
  ibv_ops_wr wr = {};
  wr.opcode = IBV_WR_TAG_SYNC;
  for (uint32_t i = 0; i < 40 * kOperations; ++i) {
    wr.wr_id = i;
    wr.flags = i % 10 == 9 ? IBV_OPS_SIGNALED : 0;
    assert_int_equal(operate(wr), 0);
    if (wr.flags != 0) expect_message(i, IBV_WC_TM_SYNC, 0);
  }
}

void destroy__with_tags_left(void**) {
  for (uint64_t id = 0; id < kTags; ++id) add_tag(id, id, 0, 100);
  receive_untagged(90, 200, 1000);
  assert_true(to_error(tags.receiver));
  // Entries belong to the list, so the queue pair flushes none.
  assert_true(is_quiet());
}

void events__come_for_operations_and_messages(void**) {
  ibv_comp_channel* channel = ibv_create_comp_channel(pair->context);
  assert_non_null(channel);
  assert_true(begin_tags(0, channel));
  ibv_cq* const cq = ibv_cq_ex_to_cq(tags.cq);
  const auto gets_event = [&] {
    ibv_cq* got = nullptr;
    void* context = nullptr;
    if (!becomes_readable(channel->fd) || ibv_get_cq_event(channel, &got, &context) != 0) return false;
    ibv_ack_cq_events(got, 1);
    return got == cq;
  };
  assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
  ibv_sge segment = place(0, 100);
  ibv_ops_wr wr = addition(1, 7, UINT64_MAX, &segment);
  assert_int_equal(operate(wr), 0);
  assert_true(gets_event());
  expect_message(1001, IBV_WC_TM_ADD, 0);
  assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
  write_header(IBV_TMH_EAGER, 7);
  send_message(10, kHeader + 4);
  assert_true(gets_event());
  // Plain polls show the same.
  ibv_wc completion = {};
  assert_true(wait_for(cq, completion));
  assert_int_equal(completion.wr_id, 1);
  assert_int_equal(completion.opcode, IBV_WC_TM_RECV);
  assert_int_equal(completion.wc_flags, kMatch | kData);
  assert_int_equal(ibv_destroy_qp(tags.sender), 0);
  assert_int_equal(ibv_destroy_qp(tags.receiver), 0);
  assert_int_equal(ibv_destroy_srq(tags.srq), 0);
  assert_int_equal(ibv_destroy_cq(cq), 0);
  tags = {};
  assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

// The completion queue that the program has named for the queue pair's receives gets none, and stays.
void queue_pair__keeps_its_own_completion_queue(void**) {
  assert_true(tags.receiver->recv_cq == pair->a.cq);
  ibv_qp_init_attr init = {};
  ibv_qp_attr attr = {};
  assert_int_equal(ibv_query_qp(tags.receiver, &attr, IBV_QP_CAP, &init), 0);
  assert_true(init.recv_cq == pair->a.cq && init.srq == tags.srq);
  assert_int_equal(init.cap.max_send_wr, 0);
  // The send queue is the device's.
  ibv_send_wr request = {};
  request.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  assert_int_equal(ibv_post_send(tags.receiver, &request, &bad), ENOMEM);
  assert_int_equal(ibv_destroy_qp(tags.sender), 0);
  tags.sender = nullptr;
  assert_int_equal(ibv_destroy_cq(pair->a.cq), EBUSY);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(query__tells_what_lists_can, set_up_no_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(create__with_wrong_attributes__is_refused, set_up_no_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(operations__on_another_queue__are_refused, set_up_no_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(remove__before_and_after_a_match, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(operations__beyond_the_limits__are_refused, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(operations__whose_completions_are_polled__go_on, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(destroy__with_tags_left, set_up_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(events__come_for_operations_and_messages, set_up_no_tags, tear_down_tags),
      cmocka_unit_test_setup_teardown(queue_pair__keeps_its_own_completion_queue, set_up_tags, tear_down_tags),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
