// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For tests of shared receive queues that match tags: such a queue with its queue pair, and a sender.
#pragma once

#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/native/verbs/rig.hpp"

namespace dapple::tests {

inline constexpr uint32_t kTags = 8;
inline constexpr uint32_t kOperations = 40;
inline constexpr uint32_t kHeader = sizeof(ibv_tmh);
inline constexpr uint32_t kBothHeaders = sizeof(ibv_tmh) + sizeof(ibv_rvh);
inline constexpr unsigned kMatch = IBV_WC_TM_MATCH;
inline constexpr unsigned kData = IBV_WC_TM_DATA_VALID;

// End a's memory and completion queue belong to the sender, which also receives. The receiver's messages go to end b's
// memory and complete in `cq`.
struct Tags {
  ibv_cq_ex* cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_qp* receiver = nullptr;
  ibv_qp* sender = nullptr;
};
extern Tags tags;

// Null on failure, with errno. A queue pair with a shared receive queue has no receives of its own.
ibv_cq_ex* make_tag_cq(ibv_comp_channel* channel = nullptr);
ibv_srq_init_attr_ex tag_attributes();
ibv_qp* make_tag_qp(ibv_srq* srq, uint32_t sends, ibv_qp_type type = IBV_QPT_RC);

// Makes `tags` and connects its queue pairs. Needs a pair (begin()).
bool begin_tags(uint32_t receivers_sends = 0, ibv_comp_channel* channel = nullptr);

// Of a test: with a pair and `tags`, or with a pair alone.
int set_up_tags(void**);
int set_up_no_tags(void**);
int tear_down_tags(void** state);

// A completion of tags.cq.
struct Message {
  uint64_t id = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;
  ibv_wc_opcode opcode = IBV_WC_TM_RECV;
  unsigned flags = 0;
  uint32_t bytes = 0;
  uint64_t tag = 0;
  uint32_t priv = 0;
};
// Waits for it. The id is UINT64_MAX if none comes.
Message next_message();
bool is_quiet();
void expect_message(uint64_t id, ibv_wc_opcode opcode, unsigned flags);

// Posts to the list. Returns 0, the error, or -1 if another request than the first is named as the bad one.
int operate(ibv_ops_wr& wr);
ibv_sge place(size_t offset, uint32_t length);  // in end b's memory
// Its completion has the id plus 1000.
ibv_ops_wr addition(uint64_t id, uint64_t tag, uint64_t mask, ibv_sge* segment);
// Adds a tag with a full mask, and returns its handle.
uint32_t add_tag(uint64_t id, uint64_t tag, size_t offset, uint32_t length, unsigned flags = 0);
int remove_tag(uint64_t id, uint32_t handle, int flags = IBV_OPS_SIGNALED);
// Tells the device how many unexpected messages the program has seen.
void sync_count(uint32_t count, unsigned flags);
void receive_untagged(uint64_t id, size_t offset, uint32_t length);

// Write headers to the start of end a's memory.
void write_header(uint8_t opcode, uint64_t tag, uint32_t priv = 0x1234);
void write_rendezvous(uint64_t tag, size_t offset, uint32_t length, uint32_t rkey);
// Sends the first bytes of end a's memory; send_message also waits for the completion.
void post_message(uint64_t id, uint32_t length);
void send_message(uint64_t id, uint32_t length);
// A receive of the sender, for the end of a rendezvous.
void receive_end(uint64_t id, size_t offset);

}  // namespace dapple::tests
