// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Receiving queue pairs of XRC, which may have several handles.
#pragma once

#include <stdint.h>

#include <atomic>

#include "provider/soft/objects/objects.hpp"
#include "provider/soft/xrc/xrc_memory.hpp"
#include "provider/soft/xrc/xrc_receives.hpp"
#include "provider/soft/xrc/xrc_table.hpp"

namespace dapple::soft {

// The parts of a receiving queue pair, or of another handle of one.
struct XrcQp {
  XrcQp(XrcTable& process, XrcDomain& of, Xrcd& opened, roce::Memory& own_memory, Qp& qp)
      : table(process),
        domain(of),
        xrcd(opened),
        context(*qp.context),
        receives(process, of, own_memory, qp.events, qp.qpn),
        memory(receives) {}
  ~XrcQp() {
    if (is_admitted) table.dismiss(*this);
  }
  XrcQp(const XrcQp&) = delete;
  XrcQp& operator=(const XrcQp&) = delete;

  XrcTable& table;
  XrcDomain& domain;
  Xrcd& xrcd;
  const Context& context;
  XrcReceives receives;
  XrcMemory memory;

  // Guarded by the table's lock.
  Qp* handles = nullptr;     // of a queue pair: the other ones
  Qp* next = nullptr;        // in the list of queue pairs, or of handles
  bool is_admitted = false;  // of a queue pair, until ended()
  bool is_silent = false;  // of a queue pair: the program is destroying the first handle, which hears of no more events
  bool is_closed = false;  // of a queue pair: the program has destroyed the first handle, which has its address
  bool is_ending = false;  // of a queue pair: a thread ends it, or is to end it
  bool has_ended = false;  // of a queue pair
  Qp* unused = nullptr;    // the queue pair itself, while it waits in XrcTable::take_unused()
  XrcQp* next_ending = nullptr;
  // Of another handle: the queue pair. Null: it has ended, or this is the queue pair itself.
  std::atomic<Qp*> target{nullptr};
  bool is_handle = false;
  // Of another handle: the member of the domain that has the queue pair; kNobody if it is in this process, or has
  // ended.
  std::atomic<uint32_t> member{SharedXrcDomain::kNobody};
  uint32_t member_generation = 0;                     // of that member's row
  uint16_t foreign_handles[kMaxXrcMembers] = {};      // of a queue pair: those in other processes, by the member
  uint32_t foreign_generations[kMaxXrcMembers] = {};  // of these members' rows
  uint32_t foreign_count = 0;                         // the sum of the handles
};

// The queue pair that a program means by one of its handles.
inline Qp& meant_by(Qp& qp) {
  if (qp.xrc == nullptr) return qp;
  Qp* target = qp.xrc->target.load(std::memory_order_acquire);
  return target == nullptr ? qp : *target;
}

// The queue pair that a handle means is in another process.
inline bool is_elsewhere(const Qp& qp) {
  return qp.xrc != nullptr && qp.xrc->member.load(std::memory_order_relaxed) != SharedXrcDomain::kNobody;
}

// The queue of the queue pair's receives: of XRC, the one that was used last.
inline const ReceiveQueue* receive_queue_of(const Qp& qp) {
  if (qp.xrc != nullptr) return qp.xrc->receives.taken_from();
  return qp.srq == nullptr ? &qp.own_receives : &qp.srq->queue;
}
// The number of the protection domain in which peers reach memory.
inline uint32_t peers_domain_of(const Qp& qp) {
  return qp.xrc != nullptr ? qp.xrc->receives.selected_pd() : qp.pd->number;
}

template <typename Tell>
void XrcTable::tell_handles(Qp& qp, Tell tell_of) {
  const std::lock_guard lock(mutex_);
  if (!qp.xrc->is_closed && !qp.xrc->is_silent) tell_of(qp);
  for (Qp* handle = qp.xrc->handles; handle != nullptr; handle = handle->xrc->next) tell_of(*handle);
}

}  // namespace dapple::soft
