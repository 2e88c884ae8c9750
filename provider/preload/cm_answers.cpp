// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/cm_answers.hpp"

#include <unistd.h>

#include <cassert>

#include "provider/common/cm_event_notes.hpp"

using dapple::provider::CmAnswerNote;
using dapple::provider::CmAnswerNotes;
using dapple::provider::CmEventNotes;

extern "C" {
extern CmEventNotes dapple_cm_event_notes;
}

namespace dapple::preload {
namespace {

CmAnswerNotes& notes() {
  return dapple_cm_event_notes.unanswered;
}

}  // namespace

void note_owed_answer(const rdma_cm_event& event) {
  note_answer(event.id);
  if (event.event != RDMA_CM_EVENT_CONNECT_REQUEST && event.event != RDMA_CM_EVENT_CONNECT_RESPONSE) return;
  for (CmAnswerNote& each : notes().events) {
    const void* free = nullptr;
    if (!each.id.compare_exchange_strong(free, event.id)) continue;
    each.is_request = event.event == RDMA_CM_EVENT_CONNECT_REQUEST;
    each.process = getpid();
    each.got = provider::Stack::here();
    each.is_complete.store(true, std::memory_order_release);
    notes().count.fetch_add(1, std::memory_order_release);
    return;
  }
}

// Another thread may have got the event, but no thread uses the id before that.
void note_answer(const rdma_cm_id* id) {
  if (notes().count.load(std::memory_order_acquire) == 0 || id == nullptr) return;
  for (CmAnswerNote& each : notes().events) {
    // Two threads may give up one id.
    if (each.id.load(std::memory_order_relaxed) != id || !each.is_complete.exchange(false)) continue;
    each.id.store(nullptr);
    [[maybe_unused]] const int before = notes().count.fetch_sub(1);
    assert(before > 0);
    return;
  }
}

}  // namespace dapple::preload
