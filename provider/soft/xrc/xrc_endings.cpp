// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ends of XrcTable's queue pairs, and of all that the program leaves in a device that it closes. One thread claims
// a queue pair and ends it. Until ended(), its domain and its context do not end.
#include <sched.h>

#include <cassert>
#include <utility>

#include "provider/soft/xrc/xrc_qp.hpp"
#include "provider/soft/xrc/xrc_table.hpp"

namespace dapple::soft {
namespace {

bool is_held(const Qp& qp) {
  return !qp.xrc->is_closed || qp.xrc->handles != nullptr || qp.xrc->foreign_count != 0;
}

}  // namespace

// The caller is to end the queue pair, unless another thread does so: then null.
Qp* XrcTable::claim(Qp& qp) {
  assert_held(mutex_);
  if (std::exchange(qp.xrc->is_ending, true)) return nullptr;
  qp.xrc->next_ending = endings_;
  endings_ = qp.xrc.get();
  return &qp;
}

Qp* XrcTable::claim_if_unheld(Qp& qp) {
  assert_held(mutex_);
  return is_held(qp) ? nullptr : claim(qp);
}

// The same, for another thread.
void XrcTable::leave_if_unheld(Qp& qp) {
  assert_held(mutex_);
  if (claim_if_unheld(qp) == nullptr) return;
  qp.xrc->unused = &qp;
  unused_.fetch_add(1, std::memory_order_relaxed);
  listener_.has_unused();
}

// From now on the caller is to end the queue pair, if it waits for a thread.
Qp* XrcTable::take_unused(XrcQp& ending) {
  assert_held(mutex_);
  assert(ending.unused == nullptr || (ending.is_ending && has_unused()));
  if (ending.unused != nullptr) unused_.fetch_sub(1, std::memory_order_relaxed);
  return std::exchange(ending.unused, nullptr);
}

Qp* XrcTable::take_unused() {
  const std::lock_guard lock(mutex_);
  Qp* taken = nullptr;
  for (XrcQp* ending = endings_; ending != nullptr && taken == nullptr; ending = ending->next_ending)
    taken = take_unused(*ending);
  return taken;
}

void XrcTable::end_unused() {
  while (Qp* qp = take_unused()) listener_.unused(*qp);
}

void XrcTable::ended(XrcQp& parts) {
  const std::lock_guard lock(mutex_);
  assert(parts.has_ended && parts.unused == nullptr);
  XrcQp** at = &endings_;
  while (*at != &parts) at = &(*at)->next_ending;
  *at = parts.next_ending;
  if (std::exchange(parts.is_admitted, false)) parts.domain.admitted--;
}

// True if a queue pair that a thread ends has these; `left`: one of them that waits for a thread.
template <typename Has>
bool XrcTable::is_ending(Has has, Qp*& left) {
  assert_held(mutex_);
  bool any = false;
  for (XrcQp* ending = endings_; ending != nullptr && left == nullptr; ending = ending->next_ending) {
    if (!has(*ending)) continue;
    any = true;
    left = take_unused(*ending);
  }
  return any;
}

// The last opening of a domain with queue pairs. They end before it: `left`, unless another thread ends them.
bool XrcTable::is_still_used(const Xrcd& xrcd, Qp*& left) {
  assert_held(mutex_);
  const XrcDomain& domain = *xrcd.domain;
  if (domain.openings != 1) return false;
  for (Qp* qp = domain.receivers; qp != nullptr && left == nullptr; qp = qp->xrc->next) left = claim(*qp);
  if (left != nullptr) return true;
  return is_ending([&](const XrcQp& ending) { return &ending.domain == &domain; }, left);
}

// A queue pair ends with the device that it was made on, or with its last handle.
bool XrcTable::is_still_used(const Context& context, Qp*& left) {
  assert_held(mutex_);
  for (XrcDomain* domain = domains_; domain != nullptr; domain = domain->next) {
    for (Qp* qp = domain->receivers; qp != nullptr && left == nullptr; qp = qp->xrc->next)
      left = qp->context == &context ? claim(*qp) : claim_if_unheld(*qp);
  }
  if (left != nullptr) return true;
  return is_ending([&](const XrcQp& ending) { return &ending.context == &context; }, left);
}

void XrcTable::forget_queues(const Context& context) {
  assert_held(mutex_);
  for (Srq*& chain : chains_) {
    for (Srq* srq = chain; srq != nullptr;) {
      Srq* next = srq->xrc.next;
      if (srq->context == &context) unlink(*srq);
      srq = next;
    }
  }
}

// `closed`: the domains that nobody has open any more. `waits`: other threads end queue pairs, call again.
Qp* XrcTable::forget(const Context& context, XrcDomain*& closed, bool& waits) {
  assert_held(mutex_);
  forget_queues(context);
  forget_handles(context);
  Qp* left = nullptr;
  waits = is_still_used(context, left);
  for (Xrcd* xrcd = openings_; xrcd != nullptr && left == nullptr;) {
    Xrcd* next = xrcd->next;
    if (xrcd->context == &context && is_still_used(*xrcd, left)) {
      waits = true;
    } else if (xrcd->context == &context) {
      if (XrcDomain* last = remove_opening(*xrcd); last != nullptr) {
        last->next = closed;
        closed = last;
      }
    }
    xrcd = next;
  }
  return left;
}

Qp* XrcTable::forget(const Context& context) {
  const std::lock_guard sharing(sharing_mutex_);
  for (;;) {
    XrcDomain* closed = nullptr;
    Qp* left = nullptr;
    bool waits = false;
    {
      const std::lock_guard lock(mutex_);
      left = forget(context, closed, waits);
    }
    while (closed != nullptr) destroy(std::exchange(closed, closed->next));
    if (left != nullptr || !waits) return left;
    sched_yield();
  }
}

void XrcTable::close(Xrcd& xrcd) {
  const std::lock_guard sharing(sharing_mutex_);
  for (;;) {
    XrcDomain* last = nullptr;
    Qp* left = nullptr;
    bool waits = false;
    {
      const std::lock_guard lock(mutex_);
      waits = is_still_used(xrcd, left);
      if (!waits) last = remove_opening(xrcd);
    }
    if (!waits) return destroy(last);
    if (left != nullptr) {
      listener_.unused(*left);
    } else {
      sched_yield();
    }
  }
}

}  // namespace dapple::soft
