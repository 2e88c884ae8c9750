// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two queue pairs of one process that are connected over lo.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>

namespace dapple::tests {

inline constexpr size_t kBufferSize = 64 * 1024;
inline constexpr uint32_t kDepth = 63;  // the device grants as much as that
// The limit of a wait for an event that must come. A busy machine may stop a program for seconds.
inline constexpr double kPatience = 60;  // seconds
inline constexpr unsigned kPeerRights =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

struct End {
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  alignas(4096) char buffer[kBufferSize] = {};
};

// These are plain functions that return false or null on failure, so that frames with asserts hold no objects.
struct Pair {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_srq* srq = nullptr;
  ibv_comp_channel* channel = nullptr;  // of end b's queue
  End a, b;

  ~Pair();
};

// The index of ::ffff:127.0.0.1 as RoCE v2; 255 if the device lacks it. Identities with RoCE v1 have other indexes.
uint8_t index_of_loopback(ibv_context* context);

// The device whose netdev is lo, open; null if there is none.
ibv_context* open_loopback();

// Options of a test that needs more than the plain pair.
struct PairOptions {
  ibv_qp_type type = IBV_QPT_RC;
  bool srq = false;         // end b receives from an SRQ
  bool channel = false;     // end b's completions have a channel
  bool windows = false;     // memory windows may be bound to the regions
  uint64_t operations = 0;  // the extended interface's operations: IBV_QP_EX_WITH_...
  uint32_t cq_size = 2 * kDepth;
  uint32_t pieces = 4;  // of memory in a request
  uint32_t inline_bytes = 64;
  uint8_t timeout = 10;  // as in ibv_qp_attr
};

// Null on failure, with errno.
Pair* make_pair(const PairOptions& options);
// Moves through INIT and RTR to RTS, connected to the queue pair `remote`. timeout: as in ibv_qp_attr.
bool connect(ibv_qp* qp, uint32_t remote, uint8_t timeout = 10);
// The same from another address of the device, given by its index, to any address.
bool connect(ibv_qp* qp, uint32_t remote, uint8_t timeout, uint8_t source, const ibv_gid& destination);
bool to_error(ibv_qp* qp);

// Returns 0 or an errno. The segment is [offset, offset + length) of the end's buffer. `qp`: another than the end's.
int post_send(ibv_qp* qp, End& end, uint64_t id, ibv_wr_opcode opcode, size_t offset, uint32_t length,
              const End* remote = nullptr, size_t remote_offset = 0, unsigned flags = IBV_SEND_SIGNALED);
int post_send(End& end, uint64_t id, ibv_wr_opcode opcode, size_t offset, uint32_t length, const End* remote = nullptr,
              size_t remote_offset = 0, unsigned flags = IBV_SEND_SIGNALED);
int post_receive(End& end, uint64_t id, size_t offset, uint32_t length);

// For datagrams. Null on failure, with errno.
ibv_ah* make_own_address(const Pair& pair);
// Sends the first bytes of the end's buffer from one queue pair to the other, which connect() has made ready. Returns 0
// or an errno.
int post_datagram(const End& end, uint32_t length, ibv_qp* from, ibv_ah* address, const ibv_qp* to);

// Polls until there is a completion, for kPatience at most.
bool wait_for(ibv_cq* cq, ibv_wc& completion);
// The same without polling: reads a byte of memory.
bool wait_for_byte(const volatile char* byte, char value);

}  // namespace dapple::tests
