// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The parts of a shared receive queue that matches tags, and of its queue pairs.
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#include <memory>

#include "provider/soft/objects/objects.hpp"
#include "provider/soft/tag_matching/operation_queue.hpp"
#include "provider/soft/tag_matching/rendezvous.hpp"
#include "provider/soft/tag_matching/tag_events.hpp"
#include "provider/soft/tag_matching/tag_list.hpp"
#include "provider/soft/tag_matching/tag_memory.hpp"
#include "provider/soft/tag_matching/tag_receives.hpp"

namespace dapple::soft {

// Learns of entries that the program removes. Called with the list's lock.
class TagWatch {
 public:
  virtual ~TagWatch() = default;
  virtual void removed(uint32_t handle) = 0;
};

struct TagSrq {
  explicit TagSrq(Cq& of) : cq(of) {}

  TagList list;
  Cq& cq;
  OperationQueue operations;                     // guarded by the list's lock
  std::unique_ptr<roce::CompletionSink> traced;  // null without a trace
  roce::CompletionSink* completions = nullptr;   // the way of operations to `cq`
  std::unique_ptr<TagWatch> watch;               // under dapple-run --check; else null
};

// A completion that belongs to an entry of a list.
inline bool is_of_tag(const roce::Completion& completion) {
  return (completion.flags & (roce::kTagMatch | roce::kTagDataValid)) != 0;
}
// Another one with the bytes follows.
inline bool is_match_alone(uint32_t status, uint32_t flags) {
  return status == IBV_WC_SUCCESS && (flags & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)) == IBV_WC_TM_MATCH;
}

struct TagQp {
  // `memory_below` and the others: those that the engine would have otherwise.
  TagQp(TagSrq& srq, ReceiveQueue& queue, uint32_t qpn, bool does_read, roce::Memory& memory_below,
        roce::CompletionSink& received_below, roce::EventSink& events_below)
      : reads(does_read),
        rendezvous(srq.list, received_below, qpn),
        receives(srq.list, queue, rendezvous, received_below, qpn),
        memory(memory_below, receives),
        events(events_below, receives, rendezvous, does_read) {}

  // The engine with a layer around it. Null: no memory.
  std::unique_ptr<roce::QueuePair> around(std::unique_ptr<roce::QueuePair> engine, uint64_t max_message);
  // No packet comes any more: gives the entries of messages in progress back.
  void end();

  const bool reads;  // the send queue is the device's own
  Rendezvous rendezvous;
  TagReceives receives;
  TagMemory memory;
  TagEvents events;
};

// The list of tags that a queue pair's messages meet; null if there is none.
inline const void* list_of(const Qp& qp) {
  return qp.srq == nullptr || qp.srq->tags == nullptr ? nullptr : &qp.srq->tags->list;
}

// The device reads the bytes of rendezvous if the program has no requests of its own, as mlx5.
inline bool reads_by_itself(const ibv_qp_cap& cap) {
  return cap.max_send_wr == 0;
}

// Null: no memory. `error` has the reason, EINVAL or ENOMEM.
std::unique_ptr<TagSrq, void (*)(TagSrq*)> make_tag_srq(Cq& cq, const ibv_tm_cap& cap, int& error);
std::unique_ptr<TagQp, void (*)(TagQp*)> make_tag_qp(const Qp& qp, roce::Memory& memory, roce::CompletionSink& received,
                                                     roce::EventSink& events);

}  // namespace dapple::soft
