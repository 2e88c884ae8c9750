// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The state of all queues at one time, with what the program has done with them. It stays valid after the objects.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "provider/soft/explain/failures.hpp"
#include "provider/soft/hang/notes/notes.hpp"

namespace dapple::soft::hang {

struct CqView {
  const ibv_cq* cq = nullptr;
  CqNote note;
  std::string device;
  int channel = -1;       // the descriptor; -1: none
  bool unread = false;    // an event waits in the channel, of this queue or another one
  uint32_t there = 0;     // completions
  uint32_t received = 0;  // of these, those of receives
  CompletionQueue::Armed armed = CompletionQueue::Armed::kNo;
  // Events that the program has got; negative: it has acknowledged more than that.
  int32_t not_acknowledged = 0;
  int32_t errors_not_acknowledged = 0;  // IBV_EVENT_CQ_ERR
};

struct QpView {
  QpNote note;
  std::string device;
  uint32_t qpn = 0;
  uint32_t peer = 0;
  roce::QpState state = roce::QpState::kReset;
  const ibv_cq* send_cq = nullptr;
  const ibv_cq* recv_cq = nullptr;
  uint64_t outstanding = 0;  // send requests
  uint64_t receives = 0;     // that wait, those of a shared receive queue included
  bool is_patient = false;   // its timeout is 0
  explain::Reason silence;   // why the peer does not answer, if there are outstanding requests; only of look()
  uint64_t naks = 0;         // RNR NAKs that it has sent
  bool was_written = false;  // by a Write or an atomic of its peer, under the check
  // The time of now_ns() since which a message has found no receive, under the check. 0: none waits.
  uint64_t unready_since_ns = 0;
  uint8_t min_rnr_timer = 0;
  bool has_unpolled_receives = false;  // if a message has found none: its queue has completions of receives
  int32_t not_acknowledged = 0;
};

struct SrqView {
  SrqNote note;
  std::string device;
  int events = -1;  // the descriptor of asynchronous events
  uint32_t limit = 0;
  uint32_t receives = 0;
  int32_t not_acknowledged = 0;
};

struct View {
  std::vector<CqView> cqs;
  std::vector<QpView> qps;
  std::vector<SrqView> srqs;
  std::map<int, Poller> pollers;
  size_t threads = 0;         // of the program, if they are known
  bool owes_answers = false;  // unanswered_events() has some

  const CqView* find(const ibv_cq* cq) const {
    for (const CqView& each : cqs) {
      if (each.cq == cq) return &each;
    }
    return nullptr;
  }
};

// While no thread is stopped: it takes the objects' locks. `is_quiet`: the process has made no progress for a while, so
// an object whose destroy waits stays.
View look(Notes& notes, bool is_quiet);
// The state of one queue pair, which the caller may use. Empty if it belongs to the parent of this process.
View look_at(Notes& notes, Qp& qp);

}  // namespace dapple::soft::hang
