// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/xrc/xrc_backlog.hpp"

#include <bit>
#include <cassert>
#include <new>
#include <utility>

namespace dapple::soft {

XrcBacklog::~XrcBacklog() {
  while (first_ != nullptr) delete std::exchange(first_, first_->next);
  while (spare_ != nullptr) delete std::exchange(spare_, spare_->next);
}

XrcBacklog::Entry* XrcBacklog::take_spare() {
  assert(spare_ != nullptr && spare_count_ > 0);
  spare_count_--;
  return std::exchange(spare_, spare_->next);
}

// Frees what nobody needs any more.
void XrcBacklog::put_spare(Entry* entry) {
  if (entry != nullptr) {
    entry->next = spare_;
    spare_ = entry;
    spare_count_++;
  }
  while (spare_count_ > needed_) delete take_spare();
}

void XrcBacklog::append(Entry& entry) {
  entry.next = nullptr;
  *end_ = &entry;
  end_ = &entry.next;
}

bool XrcBacklog::keep() {
  auto* entry = new (std::nothrow) Entry;
  if (entry == nullptr) return false;
  needed_++;
  put_spare(entry);
  return true;
}

void XrcBacklog::give_back() {
  assert(needed_ > 0);
  needed_--;
  put_spare(nullptr);
}

void XrcBacklog::add(const XrcNotice& notice) {
  assert(needed_ > 0);
  Entry* entry = take_spare();
  needed_--;
  entry->notice = notice;
  entry->events = 0;
  append(*entry);
}

void XrcBacklog::add_event(uint32_t qpn, uint32_t type) {
  assert(type < 32 && needed_ > 0);
  Entry* entry = first_;
  while (entry != nullptr && (entry->events == 0 || entry->notice.qpn != qpn)) entry = entry->next;
  if (entry == nullptr) {
    entry = take_spare();
    entry->notice = {.kind = XrcNoticeKind::kQpEvent, .qpn = qpn};
    entry->events = 0;
    append(*entry);
  }
  entry->events |= 1u << type;
}

XrcNotice XrcBacklog::take() {
  assert(first_ != nullptr);
  XrcNotice notice = first_->notice;
  if (first_->events != 0) {
    notice.value = static_cast<uint32_t>(std::countr_zero(first_->events));
    first_->events &= first_->events - 1;
    if (first_->events != 0) return notice;
  }
  Entry* sent = std::exchange(first_, first_->next);
  if (first_ == nullptr) end_ = &first_;
  put_spare(sent);
  return notice;
}

void XrcBacklog::clear() {
  while (first_ != nullptr) put_spare(std::exchange(first_, first_->next));
  end_ = &first_;
}

}  // namespace dapple::soft
