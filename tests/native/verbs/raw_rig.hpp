// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For tests of raw packet queue pairs: devices on both ends of a veth pair of one network namespace, and frames of UDP.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

namespace dapple::tests {

inline constexpr uint32_t kRawSlots = 16;
inline constexpr uint32_t kRawSlotSize = 2048;
inline constexpr size_t kUdpHeaders = 42;  // Ethernet, IPv4 and UDP
inline constexpr size_t kShortFrame = 60;

// One end: a device, and memory for frames.
struct RawEnd {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  alignas(4096) unsigned char buffer[kRawSlots * kRawSlotSize] = {};

  unsigned char* slot(uint32_t number) { return buffer + number * kRawSlotSize; }
};

// Makes the interfaces va and vb in this network namespace. False on failure.
bool make_veth_ends();
// Enters a network namespace with them, or skips the test.
void need_veth_pair();

// The device of this interface, with its objects. False on failure, with errno.
bool open_end(RawEnd& end, const char* netdev);
void close_end(RawEnd& end);

// In RESET. Null on failure, with errno.
ibv_qp* make_raw_qp(RawEnd& end, ibv_srq* srq = nullptr);
bool change_raw_qp(ibv_qp* qp, ibv_qp_state state);
bool raw_qp_to_rts(ibv_qp* qp);

// A flow as programs write it: packed, with ETH, IPV4 and UDP. Null on failure, with errno.
struct [[gnu::packed, gnu::aligned(8)]] UdpFlow {
  ibv_flow_attr attr;
  ibv_flow_spec_eth eth;
  ibv_flow_spec_ipv4 ipv4;
  ibv_flow_spec_tcp_udp udp;
};
UdpFlow udp_flow(uint16_t port, uint16_t priority = 0);
ibv_flow* make_flow(ibv_qp* qp, UdpFlow flow);

// Writes a frame with this many bytes of payload, which begin with `mark`, and returns its size. Its checksums are 0.
size_t write_udp(unsigned char* to, uint16_t source_port, uint16_t destination_port, size_t payload, char mark);

int post_frame(RawEnd& end, ibv_qp* qp, uint64_t id, uint32_t slot, size_t size,
               unsigned flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM);
int post_room(RawEnd& end, ibv_qp* qp, uint64_t id, uint32_t slot, uint32_t size = kRawSlotSize);

}  // namespace dapple::tests
