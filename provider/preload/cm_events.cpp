// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions of librdmacm for events. For dapple-run --hang: notes the events of librdmacm that a program has got
// and not acknowledged, since a destroy of their id waits for that without end, and those that the peer waits for an
// answer to. In other programs these functions only pass on the call.
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "provider/common/cm_event_notes.hpp"
#include "provider/common/settings.hpp"
#include "provider/preload/cm_answers.hpp"
#include "provider/preload/cm_calls.hpp"
#include "provider/preload/cm_reasons.hpp"

using dapple::provider::CmEventNote;
using dapple::provider::CmEventNotes;

#pragma GCC visibility push(default)
extern "C" {
extern CmEventNotes dapple_cm_event_notes;
constinit CmEventNotes dapple_cm_event_notes;
}
#pragma GCC visibility pop

namespace {

// --check explains hangs, too.
bool notes_events() {
  static const bool wanted =
      dapple::provider::settings().hang != nullptr || dapple::provider::settings().check_records != nullptr;
  return wanted;
}

// Without a free place the event is not noted.
void note(const rdma_cm_event& event) {
  dapple_cm_event_notes.count.fetch_add(1, std::memory_order_relaxed);
  for (CmEventNote& each : dapple_cm_event_notes.events) {
    const void* free = nullptr;
    if (!each.event.compare_exchange_strong(free, &event)) continue;
    each.id = event.id;
    each.listener = event.listen_id;
    each.type = event.event;
    each.got = dapple::provider::Stack::here();
    each.is_complete.store(true, std::memory_order_release);
    return;
  }
}

void forget(const rdma_cm_event* event) {
  for (CmEventNote& each : dapple_cm_event_notes.events) {
    if (each.event.load(std::memory_order_relaxed) != event) continue;
    each.is_complete.store(false);
    each.event.store(nullptr);
    return;
  }
}

// Names the id that this thread destroys, while it exists.
class Ending {
 public:
  // Null: does nothing.
  explicit Ending(const void* id) {
    if (id == nullptr) return;
    const auto thread = static_cast<int>(syscall(SYS_gettid));
    for (CmEventNotes::Ending& each : dapple_cm_event_notes.endings) {
      int free = 0;
      if (!each.thread.compare_exchange_strong(free, thread)) continue;
      each.id.store(id);
      own_ = &each;
      return;
    }
  }
  ~Ending() {
    if (own_ == nullptr) return;
    own_->id.store(nullptr);
    own_->thread.store(0);
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  CmEventNotes::Ending* own_ = nullptr;
};

}  // namespace

using namespace dapple::preload;

#pragma GCC visibility push(default)
extern "C" {

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  const auto real = DAPPLE_NEXT_CM(rdma_get_cm_event, "RDMACM_1.0");
  if (real == nullptr) return -1;
  const CmCall call("rdma_get_cm_event");
  const int result = real(channel, event);
  if (result == 0 && notes_events()) {
    note(**event);
    note_owed_answer(**event);
  }
  if (result == 0) call.look_for_end(**event);
  if (result != 0 && call.is_unexplained(errno)) call.report(errno, event == nullptr ? kNoEvent : kNoReason);
  return result;
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  const auto real = DAPPLE_NEXT_CM(rdma_ack_cm_event, "RDMACM_1.0");
  if (real == nullptr) return -1;
  if (notes_events()) forget(event);
  const CmCall call("rdma_ack_cm_event");
  const int result = real(event);
  if (result != 0 && call.is_unexplained(errno)) call.report(errno, event == nullptr ? kNoEvent : kNoReason);
  return result;
}

int rdma_destroy_id(rdma_cm_id* id) {
  const auto real = DAPPLE_NEXT_CM(rdma_destroy_id, "RDMACM_1.0");
  if (real == nullptr) return -1;
  const CmCall call("rdma_destroy_id");
  const Ending ending(notes_events() ? id : nullptr);
  note_answer(id);
  const int result = real(id);
  if (result != 0 && call.is_unexplained(errno)) call.report(errno, kNoReason);
  return result;
}

}  // extern "C"
#pragma GCC visibility pop
