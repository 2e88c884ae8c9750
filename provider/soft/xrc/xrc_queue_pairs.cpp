// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The queue pairs of XrcTable, and their handles in this process and in others.
#include <bit>
#include <cassert>
#include <utility>

#include "provider/soft/xrc/xrc_qp.hpp"
#include "provider/soft/xrc/xrc_table.hpp"

namespace dapple::soft {

bool XrcTable::admit(XrcQp& parts) {
  const std::lock_guard lock(mutex_);
  if (parts.domain.shared != nullptr && parts.domain.admitted == kMaxXrcGuests) return false;
  parts.domain.admitted++;
  parts.is_admitted = true;
  return true;
}

void XrcTable::dismiss(XrcQp& parts) {
  const std::lock_guard lock(mutex_);
  parts.domain.admitted--;
  parts.is_admitted = false;
}

void XrcTable::add(Qp& qp) {
  const std::lock_guard lock(mutex_);
  qp.xrc->next = qp.xrc->domain.receivers;
  qp.xrc->domain.receivers = &qp;
}

bool XrcTable::open(uint32_t qpn, Qp& handle) {
  const std::lock_guard lock(mutex_);
  Qp* qp = handle.xrc->domain.receivers;
  while (qp != nullptr && (qp->qpn != qpn || qp->xrc->is_ending)) qp = qp->xrc->next;
  if (qp == nullptr) return false;
  handle.xrc->is_handle = true;
  handle.xrc->target.store(qp, std::memory_order_release);
  handle.xrc->next = qp->xrc->handles;
  qp->xrc->handles = &handle;
  return true;
}

namespace {

void take_out(Qp*& first, const Qp& qp) {
  Qp** at = &first;
  while (*at != nullptr && *at != &qp) at = &(*at)->xrc->next;
  if (*at != nullptr) *at = qp.xrc->next;
}

// `handle` is another handle of a queue pair that has not ended. It means none any more. Returns the queue pair.
Qp& leave(Qp& handle) {
  Qp* qp = handle.xrc->target.exchange(nullptr);
  assert(qp != nullptr);
  take_out(qp->xrc->handles, handle);
  return *qp;
}

void tell_closed(SharedXrcDomain& shared, uint32_t member, uint32_t qpn) {
  shared.tell(member, {.kind = XrcNoticeKind::kCloseQp, .qpn = qpn});
}

// The same of a queue pair in another process, which hears of it.
void leave_foreign(Qp& handle) {
  take_out(handle.xrc->domain.foreign, handle);
  const uint32_t member = handle.xrc->member.exchange(SharedXrcDomain::kNobody);
  if (member != SharedXrcDomain::kNobody) tell_closed(*handle.xrc->domain.shared, member, handle.qpn);
}

// The members that have handles of the queue pair.
uint64_t members_with(const Qp& qp) {
  uint64_t members = 0;
  for (uint32_t member = 0; member < kMaxXrcMembers && qp.xrc->foreign_count != 0; ++member) {
    if (qp.xrc->foreign_handles[member] != 0) members |= uint64_t{1} << member;
  }
  return members;
}

// The member's handles are gone, and with them the notice that was kept for the queue pair's events.
void forget_member(Qp& qp, uint32_t member) {
  const uint16_t handles = std::exchange(qp.xrc->foreign_handles[member], uint16_t{0});
  qp.xrc->foreign_count -= handles;
  if (handles != 0) qp.xrc->domain.shared->drop_notice(member);
}

void tell_members(const Qp& qp, uint32_t type) {
  for (uint64_t members = members_with(qp); members != 0; members &= members - 1)
    qp.xrc->domain.shared->tell_event(static_cast<uint32_t>(std::countr_zero(members)), qp.qpn, type);
}

}  // namespace

void XrcTable::silence(Qp& qp) {
  const std::lock_guard lock(mutex_);
  qp.xrc->is_silent = true;
}

Qp* XrcTable::close(Qp& handle) {
  const std::lock_guard lock(mutex_);
  if (!handle.xrc->is_handle) {
    handle.xrc->is_closed = true;
    return claim_if_unheld(handle);
  }
  if (handle.xrc->target.load(std::memory_order_relaxed) != nullptr) return claim_if_unheld(leave(handle));
  leave_foreign(handle);
  return nullptr;
}

void XrcTable::end(Qp& qp) {
  const std::lock_guard lock(mutex_);
  if (qp.xrc->has_ended) return;
  qp.xrc->has_ended = true;
  take_out(qp.xrc->domain.receivers, qp);
  while (Qp* handle = qp.xrc->handles) leave(*handle);
  tell_members(qp, static_cast<uint32_t>(roce::QpEvent::kFatal));
  for (uint32_t member = 0; qp.xrc->foreign_count != 0; ++member) forget_member(qp, member);
}

// The context's handles mean nothing any more.
void XrcTable::forget_handles(const Context& context) {
  assert_held(mutex_);
  for (XrcDomain* domain = domains_; domain != nullptr; domain = domain->next) {
    for (Qp* qp = domain->receivers; qp != nullptr; qp = qp->xrc->next) {
      if (qp->context == &context) qp->xrc->is_closed = true;
      for (Qp* handle = qp->xrc->handles; handle != nullptr;) {
        Qp* next = handle->xrc->next;
        if (handle->context == &context) leave(*handle);
        handle = next;
      }
    }
    for (Qp* handle = domain->foreign; handle != nullptr;) {
      Qp* next = handle->xrc->next;
      if (handle->context == &context) leave_foreign(*handle);
      handle = next;
    }
  }
}

// --- Queue pairs and handles in other processes

SharedXrcDomain::Asked XrcTable::open_elsewhere(uint32_t qpn, Qp& handle, uint32_t& state) {
  using Asked = SharedXrcDomain::Asked;
  XrcDomain& domain = handle.xrc->domain;
  const uint32_t member = domain.shared == nullptr ? SharedXrcDomain::kNobody : domain.shared->owner_of_qp(qpn);
  if (member == SharedXrcDomain::kNobody) return Asked::kGone;
  const uint32_t generation = domain.shared->generation_of(member);
  if (!domain.shared->keep_notice(member)) return Asked::kNoMemory;
  XrcQuestion question = {.operation = XrcOperation::kOpenQp, .sequence = next_question(), .qpn = qpn};
  XrcAnswer answer;
  const Asked asked = domain.shared->ask(member, question, nullptr, answer, nullptr);
  // That process may still open it for a handle which is never there.
  if (asked == Asked::kLater) tell_closed(*domain.shared, member, qpn);
  if (asked == Asked::kLater) return asked;
  if (asked != Asked::kAnswered || answer.found != kXrcFound) {
    domain.shared->drop_notice(member);
    if (asked == Asked::kBusy) return Asked::kLater;
    return asked == Asked::kAnswered && answer.found == kXrcNoRoom ? Asked::kNoRoom : Asked::kGone;
  }
  state = answer.state;
  {
    const std::lock_guard lock(mutex_);
    handle.xrc->is_handle = true;
    handle.xrc->member = member;
    handle.xrc->member_generation = generation;
    handle.xrc->next = domain.foreign;
    domain.foreign = &handle;
  }
  // The server watches the life of the other process from now on.
  domain.shared->wake_self();
  return asked;
}

void XrcTable::tell_elsewhere(Qp& qp, uint32_t type) {
  const std::lock_guard lock(mutex_);
  tell_members(qp, type);
}

XrcFound XrcTable::open_foreign(XrcDomain& domain, Member member, uint32_t qpn, uint32_t& state) {
  const std::lock_guard lock(mutex_);
  Qp* qp = domain.receivers;
  while (qp != nullptr && (qp->qpn != qpn || qp->xrc->is_ending)) qp = qp->xrc->next;
  if (qp == nullptr) return kXrcMissing;
  if (std::exchange(qp->xrc->foreign_generations[member.number], member.generation) != member.generation)
    forget_member(*qp, member.number);
  uint16_t& handles = qp->xrc->foreign_handles[member.number];
  if (handles == UINT16_MAX || (handles == 0 && !domain.shared->keep_notice(member.number))) return kXrcNoRoom;
  handles++;
  qp->xrc->foreign_count++;
  state = static_cast<uint32_t>(qp->state.load());
  return kXrcFound;
}

void XrcTable::close_foreign(XrcDomain& domain, Member member, uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  Qp* qp = domain.receivers;
  while (qp != nullptr && qp->qpn != qpn) qp = qp->xrc->next;
  if (qp == nullptr || qp->xrc->foreign_handles[member.number] == 0) return;
  if (qp->xrc->foreign_generations[member.number] != member.generation) return;
  qp->xrc->foreign_count--;
  if (--qp->xrc->foreign_handles[member.number] == 0) domain.shared->drop_notice(member.number);
  leave_if_unheld(*qp);
}

void XrcTable::raise_foreign(XrcDomain& domain, Member member, uint32_t qpn, uint32_t type) {
  constexpr uint32_t kLast = static_cast<uint32_t>(roce::QpEvent::kLastRequestReached);
  if (type != kLast && (type == 0 || type > static_cast<uint32_t>(roce::QpEvent::kSendQueueDrained))) return;
  const std::lock_guard lock(mutex_);
  for (Qp* handle = domain.foreign; handle != nullptr; handle = handle->xrc->next) {
    const bool is_of_member =
        handle->xrc->member == member.number && handle->xrc->member_generation == member.generation;
    if (is_of_member && handle->qpn == qpn) listener_.raised(*handle, type);
  }
}

bool XrcTable::has_foreign(const XrcDomain& domain) {
  const std::lock_guard lock(mutex_);
  if (domain.foreign != nullptr) return true;
  const Qp* qp = domain.receivers;
  while (qp != nullptr && qp->xrc->foreign_count == 0) qp = qp->xrc->next;
  return qp != nullptr;
}

void XrcTable::end_foreign(XrcDomain& domain, uint64_t alive) {
  const auto is_left = [&](uint32_t member, uint32_t generation) {
    return (alive >> member & 1) != 0 && domain.shared->generation_of(member) == generation;
  };
  const std::lock_guard lock(mutex_);
  for (Qp* handle = domain.foreign; handle != nullptr; handle = handle->xrc->next) {
    const uint32_t member = handle->xrc->member;
    if (member == SharedXrcDomain::kNobody || is_left(member, handle->xrc->member_generation)) continue;
    handle->xrc->member = SharedXrcDomain::kNobody;
    domain.shared->drop_notice(member);
    listener_.raised(*handle, static_cast<uint32_t>(roce::QpEvent::kFatal));
  }
  for (Qp* qp = domain.receivers; qp != nullptr; qp = qp->xrc->next) {
    bool has_gone = false;
    for (uint64_t members = members_with(*qp); members != 0; members &= members - 1) {
      const auto member = static_cast<uint32_t>(std::countr_zero(members));
      if (is_left(member, qp->xrc->foreign_generations[member])) continue;
      forget_member(*qp, member);
      has_gone = true;
    }
    if (has_gone) leave_if_unheld(*qp);
  }
}

}  // namespace dapple::soft
