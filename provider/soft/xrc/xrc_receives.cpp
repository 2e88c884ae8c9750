// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/xrc/xrc_receives.hpp"

namespace dapple::soft {

bool XrcReceives::select(uint32_t srq, uint32_t& pd) {
  const roce::Memory* memory = nullptr;
  if (!table_.find(domain_, srq, pd, memory)) return false;
  selected_ = srq;
  is_own_memory_ = memory == &memory_;
  selected_pd_ = pd;
  return true;
}

bool XrcReceives::take(roce::ReceiveRequest& request) {
  bool noted = false;
  const ReceiveQueue* queue = table_.take(domain_, selected_, request, noted);
  if (queue == nullptr) return false;
  taken_from_ = selected_;
  taken_queue_ = queue;
  if (noted) events_.note_xrc();
  return true;
}

void XrcReceives::complete(const roce::Completion& completion) {
  if (table_.complete(domain_, taken_from_, completion)) events_.note_xrc();
}

}  // namespace dapple::soft
