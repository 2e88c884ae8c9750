// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/unanswered.hpp"

#include <unistd.h>

#include "provider/soft/hang/notes/cm_notes.hpp"

namespace dapple::soft::hang {

std::vector<check::Report> unanswered_events() {
  constexpr size_t kMax = 4;
  std::vector<check::Report> found;
  const provider::CmEventNotes* notes = cm_notes();
  if (notes == nullptr) return found;
  for (const provider::CmAnswerNote& note : notes->unanswered.events) {
    if (!note.is_complete.load(std::memory_order_acquire) || note.process != getpid()) continue;
    if (found.size() == kMax) break;
    const bool is_request = note.is_request;
    found.push_back(
        {.level = check::Level::kWarning,
         .kind = "missing-call",
         .text = is_request ? "The program has got a request for a connection (RDMA_CM_EVENT_CONNECT_REQUEST), and has "
                              "called neither rdma_accept() nor rdma_reject() for its id. The peer waits for that."
                            : "The program has got the answer to its request for a connection "
                              "(RDMA_CM_EVENT_CONNECT_RESPONSE), and has not called rdma_establish() for the id, which "
                              "has no queue pair of rdma_create_qp(). The peer waits for that.",
         .remedy = is_request ? "Call rdma_accept() or rdma_reject() for the id of each request."
                              : "Change the queue pair to IBV_QPS_RTS, and call rdma_establish().",
         .places = {{"the event was got by rdma_get_cm_event", note.got}}});
  }
  return found;
}

}  // namespace dapple::soft::hang
