// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Ethernet frames of raw packet queue pairs, between both ends of a veth pair. Runs under dapple-run.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/raw_pair.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

// Timers let the frames go: each one takes 0.4 ms at this rate.
void frames__with_a_rate__all_arrive(void**) {
  constexpr uint32_t kRate = 2000, kFrames = 8;
  assert_true(begin_raw());
  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  ibv_qp_rate_limit_attr limit = {};
  limit.rate_limit = kRate;
  limit.max_burst_sz = 1;
  assert_int_equal(ibv_modify_qp_rate_limit(sender, &limit), 0);
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  assert_int_equal(ibv_query_qp(sender, &attr, IBV_QP_RATE_LIMIT, &init), 0);
  assert_int_equal(attr.rate_limit, kRate);
  const size_t size = write_udp(a->slot(0), 5000, kPort, 50, 's');
  for (uint32_t i = 0; i < kFrames; ++i) {
    assert_int_equal(post_room(*b, receivers[0], i, i), 0);
    assert_int_equal(post_frame(*a, sender, i, 0, size), 0);
  }
  for (uint32_t i = 0; i < kFrames; ++i) expect(a->cq, i, IBV_WC_SUCCESS, IBV_WC_SEND);
  for (uint32_t i = 0; i < kFrames; ++i) expect_udp(i, receivers[0], 50, 's');
  attr.rate_limit = 0;
  assert_int_equal(ibv_modify_qp(sender, &attr, IBV_QP_RATE_LIMIT), 0);
  assert_int_equal(ibv_query_qp(sender, &attr, IBV_QP_RATE_LIMIT, &init), 0);
  assert_int_equal(attr.rate_limit, 0);
  assert_int_equal(ibv_destroy_flow(flow), 0);
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

int post_room(ibv_srq* srq, uint32_t slot) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(b->slot(slot)), kRawSlotSize, b->mr->lkey};
  ibv_recv_wr wr = {}, *bad = nullptr;
  wr.wr_id = slot;
  wr.sg_list = &segment;
  wr.num_sge = 1;
  return ibv_post_srq_recv(srq, &wr, &bad);
}

void shared_receives__serve_each_queue_pair_in_turn(void**) {
  assert_true(begin_raw());
  ibv_srq_init_attr attr = {};
  attr.attr = {kRawSlots, 1, 0};
  ibv_srq* srq = ibv_create_srq(b->pd, &attr);
  assert_non_null(srq);
  ibv_qp* sharing[2];
  ibv_flow* flows[2];
  for (uint32_t i = 0; i < 2; ++i) {
    sharing[i] = make_raw_qp(*b, srq);
    assert_true(sharing[i] != nullptr && raw_qp_to_rts(sharing[i]));
    flows[i] = make_flow(sharing[i], udp_flow(i == 0 ? kPort : kOtherPort));
    assert_int_equal(post_room(srq, i), 0);
  }
  send_udp(kOtherPort, 40, 's');
  send_udp(kPort, 50, 't');
  expect_udp(0, sharing[1], 40, 's');
  expect_udp(1, sharing[0], 50, 't');
  assert_true(change_raw_qp(sharing[0], IBV_QPS_ERR));
  assert_true(becomes_readable(b->context->async_fd));
  ibv_async_event event;
  assert_int_equal(ibv_get_async_event(b->context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  assert_ptr_equal(event.element.qp, sharing[0]);
  ibv_ack_async_event(&event);
  for (uint32_t i = 0; i < 2; ++i) {
    assert_int_equal(ibv_destroy_flow(flows[i]), 0);
    assert_int_equal(ibv_destroy_qp(sharing[i]), 0);
  }
  assert_int_equal(ibv_destroy_srq(srq), 0);
}

void mtu__raised_later__admits_longer_frames(void**) {
  assert_true(begin_raw());
  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  for (uint32_t i = 0; i < 2; ++i) assert_int_equal(post_room(*b, receivers[0], i, i), 0);
  send_udp(kPort, 1400, 'i');
  expect_udp(0, receivers[0], 1400, 'i');
  assert_true(run("for each in va vb; do ip link set $each mtu 9000 || exit 1; done"));
  send_udp(kPort, 1900, 'j');
  expect_udp(1, receivers[0], 1900, 'j');
  assert_true(run("for each in va vb; do ip link set $each mtu 1500 || exit 1; done"));
  assert_int_equal(ibv_destroy_flow(flow), 0);
}

// The work on a packet that the kernel leaves to a NIC, as virtio_net_hdr.
struct Offloads {
  uint8_t flags;
  uint8_t gso_type;
  uint16_t header_size, segment_size, checksum_start, checksum_offset;
};
constexpr uint8_t kNeedsChecksum = 1, kTcpOverIpv4 = 1;

// Sends the packet from va as the kernel does.
bool send_by_kernel(const Offloads& offloads, const unsigned char* bytes, size_t size) {
  unsigned char packet[sizeof offloads + kRawSlotSize];
  memcpy(packet, &offloads, sizeof offloads);
  memcpy(packet + sizeof offloads, bytes, size);
  const int one = 1;
  sockaddr_ll to = {};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = static_cast<int>(if_nametoindex("va"));
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  const bool sent =
      setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) == 0 &&
      sendto(fd, packet, sizeof offloads + size, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) > 0;
  close(fd);
  return sent;
}

// Two segments of TCP as one packet, which a NIC would cut.
bool send_merged_tcp() {
  constexpr uint16_t kSegment = 50;
  unsigned char frame[kRawSlotSize];
  const size_t size = write_udp(frame, 5000, kPort, 12 + 2 * kSegment, 'T');
  frame[23] = IPPROTO_TCP;
  memset(frame + 38, 0, 16);
  frame[46] = 5 << 4;  // the TCP header has five words
  return send_by_kernel({kNeedsChecksum, kTcpOverIpv4, 54, kSegment, 34, 16}, frame, size);
}

void packet__that_the_kernel_has_merged__is_no_frame(void**) {
  assert_true(begin_raw());
  UdpFlow tcp = udp_flow(kPort);
  tcp.udp.type = IBV_FLOW_SPEC_TCP;
  ibv_flow* merged = make_flow(receivers[0], tcp);
  ibv_flow* flow = make_flow(receivers[1], udp_flow(kPort));
  assert_int_equal(post_room(*b, receivers[0], 0, 0), 0);
  assert_int_equal(post_room(*b, receivers[1], 1, 1), 0);
  assert_true(send_merged_tcp());
  send_udp(kPort, 30, 'g');
  expect_udp(1, receivers[1], 30, 'g');
  assert_int_equal(ibv_destroy_flow(merged), 0);
  assert_int_equal(ibv_destroy_flow(flow), 0);
}

// As VXLAN: the outer UDP has no checksum, and the kernel leaves that of the inner packet open.
void checksum__of_an_inner_packet__is_completed(void**) {
  constexpr uint16_t kInner = kUdpHeaders + 50, kField = 6;
  assert_true(begin_raw());
  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  assert_int_equal(post_room(*b, receivers[0], 0, 0), 0);
  unsigned char frame[kRawSlotSize];
  const size_t size = write_udp(frame, 5000, kPort, 100, 'i');
  uint32_t sum = 0;
  for (size_t at = kInner; at < size; at += 2) sum += static_cast<uint32_t>(frame[at] << 8 | frame[at + 1]);
  sum = ~((sum & 0xFFFF) + (sum >> 16));
  assert_true(send_by_kernel({kNeedsChecksum, 0, 0, 0, kInner, kField}, frame, size));
  frame[kInner + kField] = static_cast<unsigned char>(sum >> 8);
  frame[kInner + kField + 1] = static_cast<unsigned char>(sum);
  expect(b->cq, 0, IBV_WC_SUCCESS, IBV_WC_RECV);
  assert_memory_equal(b->slot(0), frame, size);
  assert_int_equal(ibv_destroy_flow(flow), 0);
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

}  // namespace

int main(int argc, char**) {
  need_veth_pair();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(frames__with_a_rate__all_arrive, end_raw),
      cmocka_unit_test_teardown(frame__from_pieces_inline_and_by_the_extended_interface, end_raw),
      cmocka_unit_test_teardown(event__comes_without_a_poll, end_raw),
      cmocka_unit_test_teardown(frame__with_a_vlan_tag__keeps_it, end_raw),
      cmocka_unit_test_teardown(shared_receives__serve_each_queue_pair_in_turn, end_raw),
      cmocka_unit_test_teardown(mtu__raised_later__admits_longer_frames, end_raw),
      cmocka_unit_test_teardown(packet__that_the_kernel_has_merged__is_no_frame, end_raw),
      cmocka_unit_test_teardown(checksum__of_an_inner_packet__is_completed, end_raw),
      // What --check reports as a mistake.
      cmocka_unit_test_teardown(frame__without_a_receive__is_lost, end_raw),
      cmocka_unit_test_teardown(receive__that_is_too_small__ends_the_queue, end_raw),
      cmocka_unit_test_teardown(send__beyond_the_mtu__stops_the_send_queue, end_raw),
  };
  constexpr size_t kWithoutMistakes = 8;
  const size_t count = argc > 1 ? kWithoutMistakes : sizeof tests / sizeof *tests;
  return _cmocka_run_group_tests("raw", tests, count, nullptr, nullptr);
}
