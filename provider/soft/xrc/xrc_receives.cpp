// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/xrc/xrc_receives.hpp"

namespace dapple::soft {

bool XrcReceives::select(uint32_t srq, uint32_t& pd) {
  const roce::Memory* memory = nullptr;
  if (!table_.find(domain_, srq, pd, memory)) {
    if (!foreign_.has(srq)) return false;
    pd = kForeignQueue | srq;
  }
  selected_ = srq;
  is_own_memory_ = !is_foreign(pd) && memory == &memory_;
  selected_pd_ = pd;
  return true;
}

bool XrcReceives::take(roce::ReceiveRequest& request) {
  if (is_foreign(selected_pd_)) {
    if (!foreign_.take(selected_, qpn_, request)) return false;
    takes_foreign_ = true;
    taken_queue_ = nullptr;
    return true;
  }
  bool noted = false;
  const ReceiveQueue* queue = table_.take(domain_, selected_, request, noted);
  if (queue == nullptr) return false;
  takes_foreign_ = false;
  taken_from_ = selected_;
  taken_queue_ = queue;
  if (noted) events_.note_xrc();
  return true;
}

bool XrcReceives::complete(const roce::Completion& completion) {
  if (takes_foreign_) {
    foreign_.complete(completion);
  } else if (table_.complete(domain_, taken_from_, completion)) {
    events_.note_xrc();
  }
  // Another process' queue cannot tell whether it had room. The queue's own program gets an event.
  return true;
}

}  // namespace dapple::soft
