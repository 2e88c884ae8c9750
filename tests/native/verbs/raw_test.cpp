// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Raw packet queue pairs and flow steering, between both ends of a veth pair. Runs under dapple-run.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/leaves_objects.hpp"  // close__ends_what_is_left() does
#include "tests/native/verbs/raw_rig.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

constexpr uint16_t kPort = 4000, kOtherPort = 4001, kForeignPort = 4002;

RawEnd* a = nullptr;
RawEnd* b = nullptr;
ibv_qp* sender = nullptr;   // of a
ibv_qp* receivers[2] = {};  // of b

bool begin_raw() {
  a = new RawEnd;
  b = new RawEnd;
  if (!open_end(*a, "va") || !open_end(*b, "vb")) return false;
  sender = make_raw_qp(*a);
  for (ibv_qp*& qp : receivers) qp = make_raw_qp(*b);
  return sender != nullptr && receivers[0] != nullptr && receivers[1] != nullptr && raw_qp_to_rts(sender) &&
         raw_qp_to_rts(receivers[0]) && raw_qp_to_rts(receivers[1]);
}

int end_raw(void**) {
  for (ibv_qp* qp : {sender, receivers[0], receivers[1]}) {
    if (qp != nullptr) ibv_destroy_qp(qp);
  }
  for (RawEnd* end : {a, b}) {
    if (end != nullptr) close_end(*end);
    delete end;
  }
  a = b = nullptr;
  sender = receivers[0] = receivers[1] = nullptr;
  return 0;
}

// Sends a frame to a port of UDP and waits until it has left.
void send_udp(uint16_t port, size_t payload, char mark) {
  const size_t size = write_udp(a->slot(0), 5000, port, payload, mark);
  assert_int_equal(post_frame(*a, sender, 1, 0, size), 0);
  expect(a->cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
}

// The next completion of b: a frame with this payload in the slot of its number.
void expect_udp(uint64_t id, const ibv_qp* qp, size_t payload, char mark) {
  ibv_wc completion;
  assert_true(wait_for(b->cq, completion));
  assert_int_equal(completion.status, IBV_WC_SUCCESS);
  assert_int_equal(completion.opcode, IBV_WC_RECV);
  assert_int_equal(completion.wr_id, id);
  assert_int_equal(completion.qp_num, qp->qp_num);
  const size_t size = kUdpHeaders + payload;
  assert_int_equal(completion.byte_len, size < kShortFrame ? kShortFrame : size);
  assert_int_equal(completion.wc_flags, IBV_WC_IP_CSUM_OK);
  unsigned char expected[kRawSlotSize];
  write_udp(expected, 5000, 0, payload, mark);
  assert_memory_equal(b->slot(static_cast<uint32_t>(id)) + kUdpHeaders, expected + kUdpHeaders, payload);
}

void frame__its_udp_port_selects_the_queue_pair(void**) {
  assert_true(begin_raw());
  ibv_flow* first = make_flow(receivers[0], udp_flow(kPort));
  ibv_flow* second = make_flow(receivers[1], udp_flow(kOtherPort));
  assert_non_null(first);
  assert_non_null(second);
  assert_int_equal(post_room(*b, receivers[0], 0, 0), 0);
  assert_int_equal(post_room(*b, receivers[1], 1, 1), 0);
  send_udp(kForeignPort, 100, 'x');
  send_udp(kOtherPort, 1472, 'y');
  send_udp(kPort, 3, 'z');
  expect_udp(1, receivers[1], 1472, 'y');
  expect_udp(0, receivers[0], 3, 'z');
  // Without its flow a queue pair receives nothing.
  assert_int_equal(ibv_destroy_flow(second), 0);
  assert_int_equal(post_room(*b, receivers[1], 2, 2), 0);
  assert_int_equal(post_room(*b, receivers[0], 3, 3), 0);
  send_udp(kOtherPort, 1, 'v');
  send_udp(kPort, 2, 'w');
  expect_udp(3, receivers[0], 2, 'w');
  assert_int_equal(ibv_destroy_flow(first), 0);
}

void flows__the_first_by_priority_takes_the_frame(void**) {
  assert_true(begin_raw());
  UdpFlow all = udp_flow(0, 1);
  all.udp.mask.dst_port = 0;
  ibv_flow* rest = make_flow(receivers[1], all);
  ibv_flow* one = make_flow(receivers[0], udp_flow(kPort, 0));
  assert_non_null(rest);
  assert_non_null(one);
  for (uint32_t i = 0; i < 3; ++i) {
    assert_int_equal(post_room(*b, receivers[0], i, i), 0);
    assert_int_equal(post_room(*b, receivers[1], 3 + i, 3 + i), 0);
  }
  send_udp(kPort, 10, 'a');
  expect_udp(0, receivers[0], 10, 'a');
  send_udp(kOtherPort, 10, 'b');
  expect_udp(3, receivers[1], 10, 'b');
  // Two that want the same get a copy each.
  ibv_flow* same = make_flow(receivers[1], udp_flow(kPort, 0));
  send_udp(kPort, 10, 'c');
  expect_udp(1, receivers[0], 10, 'c');
  expect_udp(4, receivers[1], 10, 'c');
  for (ibv_flow* flow : {rest, one, same}) assert_int_equal(ibv_destroy_flow(flow), 0);
}

void frame__from_pieces_inline_and_by_the_extended_interface(void**) {
  assert_true(begin_raw());
  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  for (uint32_t i = 0; i < 3; ++i) assert_int_equal(post_room(*b, receivers[0], i, i), 0);
  const size_t size = write_udp(a->slot(0), 5000, kPort, 50, 'p');
  ibv_sge pieces[2] = {{reinterpret_cast<uintptr_t>(a->slot(0)), 30, a->mr->lkey},
                       {reinterpret_cast<uintptr_t>(a->slot(0)) + 30, static_cast<uint32_t>(size) - 30, a->mr->lkey}};
  ibv_send_wr list[2] = {}, *bad = nullptr;
  list[0].sg_list = list[1].sg_list = pieces;
  list[0].num_sge = list[1].num_sge = 2;
  list[0].opcode = list[1].opcode = IBV_WR_SEND;
  list[0].send_flags = IBV_SEND_IP_CSUM;
  list[1].send_flags = IBV_SEND_IP_CSUM | IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  list[1].wr_id = 7;
  list[0].next = &list[1];
  assert_int_equal(ibv_post_send(sender, list, &bad), 0);
  expect(a->cq, 7, IBV_WC_SUCCESS, IBV_WC_SEND);
  expect_udp(0, receivers[0], 50, 'p');
  expect_udp(1, receivers[0], 50, 'p');

  ibv_qp_init_attr_ex attr = {};
  attr.qp_type = IBV_QPT_RAW_PACKET;
  attr.send_cq = attr.recv_cq = a->cq;
  attr.cap = {4, 0, 1, 0, 0};
  attr.pd = a->pd;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
  ibv_qp* extended = ibv_create_qp_ex(a->context, &attr);
  assert_non_null(extended);
  assert_true(raw_qp_to_rts(extended));
  write_udp(a->slot(0), 5000, kPort, 50, 'q');
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(extended);
  ibv_wr_start(ex);
  ex->wr_id = 8;
  ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
  ibv_wr_send(ex);
  ibv_wr_set_sge(ex, a->mr->lkey, reinterpret_cast<uintptr_t>(a->slot(0)), static_cast<uint32_t>(size));
  assert_int_equal(ibv_wr_complete(ex), 0);
  expect(a->cq, 8, IBV_WC_SUCCESS, IBV_WC_SEND);
  expect_udp(2, receivers[0], 50, 'q');
  assert_int_equal(ibv_destroy_qp(extended), 0);
  assert_int_equal(ibv_destroy_flow(flow), 0);
}

void event__comes_without_a_poll(void**) {
  assert_true(begin_raw());
  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  assert_int_equal(post_room(*b, receivers[0], 0, 0), 0);
  assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
  send_udp(kPort, 20, 'e');
  assert_true(becomes_readable(b->channel->fd));
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  assert_int_equal(ibv_get_cq_event(b->channel, &cq, &context), 0);
  assert_ptr_equal(cq, b->cq);
  ibv_ack_cq_events(cq, 1);
  expect_udp(0, receivers[0], 20, 'e');
  assert_int_equal(ibv_destroy_flow(flow), 0);
}

void frame__with_a_vlan_tag__keeps_it(void**) {
  assert_true(begin_raw());
  UdpFlow wanted = udp_flow(kPort);
  wanted.eth.val.vlan_tag = htons(5);
  wanted.eth.mask.vlan_tag = htons(0xFFF);
  ibv_flow* flow = make_flow(receivers[0], wanted);
  ibv_flow* other = make_flow(receivers[1], udp_flow(kPort, 1));
  assert_int_equal(post_room(*b, receivers[0], 0, 0), 0);
  assert_int_equal(post_room(*b, receivers[1], 1, 1), 0);
  const size_t size = write_udp(a->slot(0), 5000, kPort, 64, 't');
  constexpr unsigned char kTag[] = {0x81, 0, 0x60, 5};
  memmove(a->slot(0) + 16, a->slot(0) + 12, size - 12);
  memcpy(a->slot(0) + 12, kTag, sizeof kTag);
  assert_int_equal(post_frame(*a, sender, 1, 0, size + 4), 0);
  expect(a->cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
  ibv_wc completion;
  assert_true(wait_for(b->cq, completion));
  assert_int_equal(completion.qp_num, receivers[0]->qp_num);
  assert_int_equal(completion.byte_len, size + 4);
  assert_memory_equal(b->slot(0) + 12, kTag, sizeof kTag);
  send_udp(kPort, 30, 'u');
  expect_udp(1, receivers[1], 30, 'u');
  assert_int_equal(ibv_destroy_flow(flow), 0);
  assert_int_equal(ibv_destroy_flow(other), 0);
}

void frame__without_a_receive__is_lost(void**) {
  assert_true(begin_raw());
  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  ibv_flow* other = make_flow(receivers[1], udp_flow(kOtherPort));
  assert_int_equal(post_room(*b, receivers[1], 1, 1), 0);
  send_udp(kPort, 10, 'l');
  send_udp(kOtherPort, 10, 'm');
  expect_udp(1, receivers[1], 10, 'm');
  assert_int_equal(post_room(*b, receivers[0], 0, 0), 0);
  send_udp(kPort, 10, 'n');
  expect_udp(0, receivers[0], 10, 'n');
  assert_int_equal(ibv_destroy_flow(flow), 0);
  assert_int_equal(ibv_destroy_flow(other), 0);
}

void receive__that_is_too_small__ends_the_queue(void**) {
  assert_true(begin_raw());
  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  assert_int_equal(post_room(*b, receivers[0], 0, 0, 100), 0);
  assert_int_equal(post_room(*b, receivers[0], 1, 1), 0);
  send_udp(kPort, 200, 's');
  expect(b->cq, 0, IBV_WC_LOC_LEN_ERR, IBV_WC_RECV);
  expect(b->cq, 1, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV);
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  assert_int_equal(ibv_query_qp(receivers[0], &attr, IBV_QP_STATE, &init), 0);
  assert_int_equal(attr.qp_state, IBV_QPS_ERR);
  assert_int_equal(ibv_destroy_flow(flow), 0);
}

void send__beyond_the_mtu__stops_the_send_queue(void**) {
  assert_true(begin_raw());
  const size_t size = write_udp(a->slot(0), 5000, kPort, 1500, 'l');
  assert_int_equal(post_frame(*a, sender, 3, 0, size), 0);
  expect(a->cq, 3, IBV_WC_LOC_LEN_ERR, IBV_WC_SEND);
  assert_int_equal(post_frame(*a, sender, 4, 0, 10), 0);
  expect(a->cq, 4, IBV_WC_WR_FLUSH_ERR, IBV_WC_SEND);
  assert_true(change_raw_qp(sender, IBV_QPS_RTS));
  send_udp(kPort, 20, 'o');
}

void queue_pairs__refuse_what_the_kernel_refuses(void**) {
  assert_true(begin_raw());
  ibv_qp* fresh = make_raw_qp(*a);
  assert_non_null(fresh);
  assert_int_equal(post_room(*a, fresh, 0, 0), EINVAL);
  assert_false(change_raw_qp(fresh, IBV_QPS_RTR));
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  assert_int_equal(ibv_modify_qp(fresh, &attr, IBV_QP_STATE), EINVAL);
  assert_int_equal(ibv_modify_qp(fresh, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX), EINVAL);
  assert_true(change_raw_qp(fresh, IBV_QPS_INIT));
  assert_int_equal(post_room(*a, fresh, 0, 0), 0);
  assert_int_equal(post_frame(*a, fresh, 1, 0, 60), EINVAL);
  assert_int_equal(ibv_destroy_qp(fresh), 0);

  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = a->cq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* connection = ibv_create_qp(a->pd, &init);
  assert_null(make_flow(connection, udp_flow(kPort)));
  assert_int_equal(errno, EINVAL);
  assert_int_equal(ibv_destroy_qp(connection), 0);

  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  assert_int_equal(ibv_destroy_qp(receivers[0]), EBUSY);
  assert_int_equal(ibv_destroy_flow(flow), 0);

  ibv_qp_init_attr_ex extended = {};
  extended.qp_type = IBV_QPT_RAW_PACKET;
  extended.send_cq = extended.recv_cq = a->cq;
  extended.cap = init.cap;
  extended.pd = a->pd;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  extended.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
  assert_null(ibv_create_qp_ex(a->context, &extended));
  assert_int_equal(errno, EOPNOTSUPP);
}

// Sets or clears CAP_NET_RAW among this thread's effective capabilities.
bool set_privilege(bool has) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  constexpr uint32_t kBit = 1u << CAP_NET_RAW;
  data[0].effective = has ? data[0].effective | kBit : data[0].effective & ~kBit;
  return syscall(SYS_capset, &header, data) == 0;
}

void without_the_capability__frames_are_forbidden(void**) {
  assert_true(begin_raw());
  assert_true(set_privilege(false));
  assert_null(make_raw_qp(*a));
  assert_int_equal(errno, EPERM);
  assert_null(make_flow(receivers[0], udp_flow(kPort)));
  assert_int_equal(errno, EPERM);
  assert_true(set_privilege(true));
}

void close__ends_what_is_left(void**) {
  assert_true(begin_raw());
  assert_non_null(make_flow(receivers[0], udp_flow(kPort)));
  assert_int_equal(ibv_close_device(b->context), 0);
  send_udp(kPort, 10, 'x');
  assert_int_equal(ibv_destroy_qp(sender), 0);
  close_end(*a);
  delete a;
  a = b = nullptr;
  sender = receivers[0] = receivers[1] = nullptr;
}

// The last test: it removes the interfaces.
void flow__of_an_interface_that_is_gone__fails(void**) {
  assert_true(begin_raw());
  assert_true(run("ip link del va"));
  assert_null(make_flow(receivers[0], udp_flow(kPort)));
  assert_int_equal(errno, ENODEV);
}

}  // namespace

int main(int argc, char**) {
  need_veth_pair();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(frame__its_udp_port_selects_the_queue_pair, end_raw),
      cmocka_unit_test_teardown(flows__the_first_by_priority_takes_the_frame, end_raw),
      cmocka_unit_test_teardown(frame__from_pieces_inline_and_by_the_extended_interface, end_raw),
      cmocka_unit_test_teardown(event__comes_without_a_poll, end_raw),
      cmocka_unit_test_teardown(frame__with_a_vlan_tag__keeps_it, end_raw),
      // What --check reports as a mistake.
      cmocka_unit_test_teardown(frame__without_a_receive__is_lost, end_raw),
      cmocka_unit_test_teardown(receive__that_is_too_small__ends_the_queue, end_raw),
      cmocka_unit_test_teardown(send__beyond_the_mtu__stops_the_send_queue, end_raw),
      cmocka_unit_test_teardown(queue_pairs__refuse_what_the_kernel_refuses, end_raw),
      cmocka_unit_test_teardown(without_the_capability__frames_are_forbidden, end_raw),
      cmocka_unit_test_teardown(close__ends_what_is_left, end_raw),
      cmocka_unit_test_teardown(flow__of_an_interface_that_is_gone__fails, end_raw),
  };
  constexpr size_t kWithoutMistakes = 5;
  const size_t count = argc > 1 ? kWithoutMistakes : sizeof tests / sizeof *tests;
  return _cmocka_run_group_tests("raw", tests, count, nullptr, nullptr);
}
