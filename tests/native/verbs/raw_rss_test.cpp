// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Work queues, and receive side scaling over a table of them, between both ends of a veth pair. Runs under dapple-run.
#include <errno.h>
#include <infiniband/dappledv.h>
#include <string.h>

#include <utility>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/leaves_objects.hpp"  // close__with_tables_left__makes_room() does
#include "tests/native/verbs/raw_rig.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

constexpr uint16_t kPort = 4000;
constexpr uint32_t kQueues = 4;
constexpr uint64_t kUdpOverIpv4 =
    IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;

struct Scaled {
  RawEnd a, b;
  ibv_qp* sender = nullptr;
  ibv_wq* queues[kQueues] = {};
  ibv_rwq_ind_table* table = nullptr;
  ibv_qp* qp = nullptr;
  ibv_flow* flow = nullptr;
};
Scaled* scaled = nullptr;

ibv_wq* make_wq(RawEnd& end) {
  ibv_wq_init_attr attr = {};
  attr.wq_type = IBV_WQT_RQ;
  attr.max_wr = kRawSlots;
  attr.max_sge = 1;
  attr.pd = end.pd;
  attr.cq = end.cq;
  errno = 0;
  return ibv_create_wq(end.context, &attr);
}

int change_wq(ibv_wq* wq, ibv_wq_state state) {
  ibv_wq_attr attr = {};
  attr.attr_mask = IBV_WQ_ATTR_STATE;
  attr.wq_state = state;
  return ibv_modify_wq(wq, &attr);
}

int post_room(RawEnd& end, ibv_wq* wq, uint64_t id, uint32_t slot) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(end.slot(slot)), kRawSlotSize, end.mr->lkey};
  ibv_recv_wr wr = {}, *bad = nullptr;
  wr.wr_id = id;
  wr.sg_list = &segment;
  wr.num_sge = 1;
  return ibv_post_wq_recv(wq, &wr, &bad);
}

ibv_qp_init_attr_ex rss_attr(uint64_t fields, uint8_t key_size = 40) {
  static uint8_t key[40];
  for (size_t i = 0; i < sizeof key; ++i) key[i] = static_cast<uint8_t>(0x6D + 37 * i);
  ibv_qp_init_attr_ex attr = {};
  attr.qp_type = IBV_QPT_RAW_PACKET;
  attr.pd = scaled->b.pd;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  attr.rwq_ind_tbl = scaled->table;
  attr.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, key_size, key, fields};
  return attr;
}

int begin_scaled(void**) {
  scaled = new Scaled;
  if (!open_end(scaled->a, "va") || !open_end(scaled->b, "vb")) return -1;
  scaled->sender = make_raw_qp(scaled->a);
  for (ibv_wq*& each : scaled->queues) each = make_wq(scaled->b);
  ibv_rwq_ind_table_init_attr attr = {};
  attr.log_ind_tbl_size = 2;
  attr.ind_tbl = scaled->queues;
  scaled->table = ibv_create_rwq_ind_table(scaled->b.context, &attr);
  if (scaled->sender == nullptr || scaled->table == nullptr || !raw_qp_to_rts(scaled->sender)) return -1;
  ibv_qp_init_attr_ex init = rss_attr(kUdpOverIpv4);
  scaled->qp = ibv_create_qp_ex(scaled->b.context, &init);
  scaled->flow = scaled->qp == nullptr ? nullptr : make_flow(scaled->qp, udp_flow(kPort));
  return scaled->flow != nullptr ? 0 : -1;
}

void end_receivers() {
  if (scaled->flow != nullptr) ibv_destroy_flow(std::exchange(scaled->flow, nullptr));
  if (scaled->qp != nullptr) ibv_destroy_qp(std::exchange(scaled->qp, nullptr));
  if (scaled->table != nullptr) ibv_destroy_rwq_ind_table(std::exchange(scaled->table, nullptr));
  for (ibv_wq*& each : scaled->queues) {
    if (each != nullptr) ibv_destroy_wq(std::exchange(each, nullptr));
  }
}

int end_scaled(void**) {
  end_receivers();
  if (scaled->sender != nullptr) ibv_destroy_qp(scaled->sender);
  close_end(scaled->a);
  close_end(scaled->b);
  delete scaled;
  return 0;
}

void send_from(uint16_t source_port) {
  const size_t size = write_udp(scaled->a.slot(0), source_port, kPort, 100, 'r');
  assert_int_equal(post_frame(scaled->a, scaled->sender, 1, 0, size), 0);
  expect(scaled->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
}

// The number of the work queue that gets the next frame.
uint32_t receiving_queue() {
  ibv_wc completion;
  assert_true(wait_for(scaled->b.cq, completion));
  assert_int_equal(completion.status, IBV_WC_SUCCESS);
  assert_int_equal(completion.opcode, IBV_WC_RECV);
  for (uint32_t i = 0; i < kQueues; ++i) {
    if (completion.qp_num == scaled->queues[i]->wq_num) return i;
  }
  fail();
  return 0;
}

void frames__spread_over_the_queues_by_their_hash(void**) {
  constexpr uint16_t kFlows = 16;
  for (ibv_wq* each : scaled->queues) {
    // As some programs do: before RDY.
    assert_int_equal(post_room(scaled->b, each, 0, 0), 0);
    assert_int_equal(change_wq(each, IBV_WQS_RDY), 0);
    assert_int_equal(each->state, IBV_WQS_RDY);
  }
  uint32_t received[kQueues] = {};
  for (uint16_t i = 0; i < kFlows; ++i) {
    send_from(static_cast<uint16_t>(6000 + i));
    const uint32_t queue = receiving_queue();
    received[queue]++;
    assert_int_equal(post_room(scaled->b, scaled->queues[queue], 1, 1), 0);
    // The same flow goes to the same queue.
    send_from(static_cast<uint16_t>(6000 + i));
    assert_int_equal(receiving_queue(), queue);
    assert_int_equal(post_room(scaled->b, scaled->queues[queue], 2, 2), 0);
  }
  for (const uint32_t each : received) assert_in_range(each, 1, kFlows - kQueues);
}

void work_queue__flushes_in_error_and_forgets_in_reset(void**) {
  ibv_wq* wq = make_wq(scaled->b);
  assert_non_null(wq);
  assert_int_equal(change_wq(wq, IBV_WQS_RDY), 0);
  assert_int_equal(post_room(scaled->b, wq, 7, 0), 0);
  assert_int_equal(change_wq(wq, IBV_WQS_ERR), 0);
  expect(scaled->b.cq, 7, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV);
  assert_int_equal(change_wq(wq, IBV_WQS_RDY), EINVAL);
  assert_int_equal(change_wq(wq, IBV_WQS_RESET), 0);
  assert_int_equal(post_room(scaled->b, wq, 8, 0), 0);
  assert_int_equal(change_wq(wq, IBV_WQS_RESET), 0);
  assert_int_equal(change_wq(wq, IBV_WQS_RDY), 0);
  ibv_wc completion;
  assert_int_equal(ibv_poll_cq(scaled->b.cq, 1, &completion), 0);
  assert_int_equal(ibv_destroy_wq(wq), 0);
}

void work_queue__takes_its_unread_events_along(void**) {
  for (ibv_wq* each : scaled->queues) {
    assert_int_equal(post_room(scaled->b, each, 0, 0), 0);
    assert_int_equal(change_wq(each, IBV_WQS_RDY), 0);
  }
  assert_int_equal(dappledv_fault_next("event", IBV_EVENT_QP_ACCESS_ERR), 0);
  const size_t size = write_udp(scaled->a.slot(0), 6000, kPort, 100, 'e');
  // Without a completion of its own, so the event comes with the receive.
  assert_int_equal(post_frame(scaled->a, scaled->sender, 1, 0, size, IBV_SEND_IP_CSUM), 0);
  receiving_queue();
  assert_true(becomes_readable(scaled->b.context->async_fd));
  end_receivers();
  assert_false(readable(scaled->b.context->async_fd, 0));
}

int error_of_qp(ibv_qp_init_attr_ex attr) {
  errno = 0;
  return ibv_create_qp_ex(scaled->b.context, &attr) == nullptr ? errno : 0;
}

void objects__refuse_what_the_kernel_refuses(void**) {
  assert_int_equal(ibv_destroy_wq(scaled->queues[0]), EBUSY);
  assert_int_equal(ibv_destroy_rwq_ind_table(scaled->table), EBUSY);
  assert_int_equal(ibv_destroy_qp(scaled->qp), EBUSY);
  assert_int_equal(error_of_qp(rss_attr(kUdpOverIpv4 | IBV_RX_HASH_SRC_IPV6)), EINVAL);
  assert_int_equal(error_of_qp(rss_attr(kUdpOverIpv4 | IBV_RX_HASH_DST_PORT_TCP)), EINVAL);
  assert_int_equal(error_of_qp(rss_attr(uint64_t{1} << 31)), EOPNOTSUPP);
  assert_int_equal(error_of_qp(rss_attr(kUdpOverIpv4, 16)), EINVAL);
  assert_int_equal(error_of_qp(rss_attr(0)), EINVAL);
  ibv_qp_attr state = {};
  ibv_qp_init_attr init = {};
  state.qp_state = IBV_QPS_INIT;
  state.port_num = 1;
  assert_int_equal(ibv_modify_qp(scaled->qp, &state, IBV_QP_STATE | IBV_QP_PORT), EOPNOTSUPP);
  assert_int_equal(ibv_query_qp(scaled->qp, &state, IBV_QP_STATE, &init), EOPNOTSUPP);
  ibv_qp_init_attr_ex attr = rss_attr(kUdpOverIpv4);
  attr.send_cq = scaled->b.cq;
  assert_int_equal(error_of_qp(attr), EOPNOTSUPP);
  attr = rss_attr(kUdpOverIpv4);
  attr.qp_type = IBV_QPT_UD;
  assert_int_equal(error_of_qp(attr), EOPNOTSUPP);
  ibv_rwq_ind_table_init_attr table = {};
  table.log_ind_tbl_size = 12;
  assert_null(ibv_create_rwq_ind_table(scaled->b.context, &table));
  assert_int_equal(errno, EINVAL);
  ibv_wq_init_attr wq = {};
  wq.wq_type = IBV_WQT_RQ;
  wq.max_wr = 1;
  wq.pd = scaled->b.pd;
  wq.cq = scaled->b.cq;
  wq.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
  wq.create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
  assert_null(ibv_create_wq(scaled->b.context, &wq));
  assert_int_equal(errno, EOPNOTSUPP);
}

ibv_rwq_ind_table* make_small_table(ibv_context* context, ibv_wq* wq) {
  ibv_rwq_ind_table_init_attr attr = {};
  attr.ind_tbl = &wq;
  errno = 0;
  return ibv_create_rwq_ind_table(context, &attr);
}

// The queue pair hashes nothing, and needs a key all the same.
void queue_pair__with_a_table_of_one_entry__needs_no_fields(void**) {
  ibv_rwq_ind_table* table = make_small_table(scaled->b.context, scaled->queues[0]);
  assert_non_null(table);
  ibv_qp_init_attr_ex attr = rss_attr(0, 0);
  attr.rwq_ind_tbl = table;
  assert_int_equal(error_of_qp(attr), EINVAL);
  attr = rss_attr(0);
  attr.rwq_ind_tbl = table;
  ibv_qp* qp = ibv_create_qp_ex(scaled->b.context, &attr);
  assert_non_null(qp);
  assert_int_equal(ibv_destroy_qp(qp), 0);
  assert_int_equal(ibv_destroy_rwq_ind_table(table), 0);
}

// A table that the program leaves in a device that it closes counts no more.
void close__with_tables_left__makes_room(void**) {
  ibv_device_attr_ex attr = {};
  assert_int_equal(ibv_query_device_ex(scaled->b.context, nullptr, &attr), 0);
  RawEnd& end = *new RawEnd;
  assert_true(open_end(end, "vb"));
  ibv_wq* wq = make_wq(end);
  assert_non_null(wq);
  // The other context has one.
  for (uint32_t i = 1; i < attr.rss_caps.max_rwq_indirection_tables; ++i)
    assert_non_null(make_small_table(end.context, wq));
  assert_null(make_small_table(end.context, wq));
  assert_int_equal(errno, ENOMEM);
  assert_null(make_small_table(scaled->b.context, scaled->queues[0]));
  assert_int_equal(errno, ENOMEM);
  assert_int_equal(ibv_close_device(end.context), 0);
  ibv_rwq_ind_table* table = make_small_table(scaled->b.context, scaled->queues[0]);
  assert_non_null(table);
  assert_int_equal(ibv_destroy_rwq_ind_table(table), 0);
}

void query__shows_the_capabilities(void**) {
  ibv_device_attr_ex attr = {};
  assert_int_equal(ibv_query_device_ex(scaled->a.context, nullptr, &attr), 0);
  assert_true((attr.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING) != 0);
  assert_true((attr.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM) != 0);
  assert_int_equal(attr.raw_packet_caps, IBV_RAW_PACKET_CAP_IP_CSUM);
  assert_int_equal(attr.rss_caps.supported_qpts, 1 << IBV_QPT_RAW_PACKET);
  assert_int_equal(attr.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
  assert_int_equal(attr.rss_caps.rx_hash_fields_mask & kUdpOverIpv4, kUdpOverIpv4);
  assert_in_range(attr.rss_caps.max_rwq_indirection_table_size, 4, 1 << 16);
  assert_in_range(attr.max_wq_type_rq, 1, 1 << 24);
}

}  // namespace

int main(int argc, char**) {
  need_veth_pair();
  if (argc == 1 && dappledv_fault_clear() != 0) skip_program("no faults can be planned");
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(frames__spread_over_the_queues_by_their_hash, begin_scaled, end_scaled),
      cmocka_unit_test_setup_teardown(query__shows_the_capabilities, begin_scaled, end_scaled),
      // What --check reports as a mistake.
      cmocka_unit_test_setup_teardown(work_queue__flushes_in_error_and_forgets_in_reset, begin_scaled, end_scaled),
      cmocka_unit_test_setup_teardown(work_queue__takes_its_unread_events_along, begin_scaled, end_scaled),
      cmocka_unit_test_setup_teardown(objects__refuse_what_the_kernel_refuses, begin_scaled, end_scaled),
      cmocka_unit_test_setup_teardown(queue_pair__with_a_table_of_one_entry__needs_no_fields, begin_scaled, end_scaled),
      cmocka_unit_test_setup_teardown(close__with_tables_left__makes_room, begin_scaled, end_scaled),
  };
  constexpr size_t kWithoutMistakes = 2;
  const size_t count = argc > 1 ? kWithoutMistakes : sizeof tests / sizeof *tests;
  return _cmocka_run_group_tests("raw_rss", tests, count, nullptr, nullptr);
}
