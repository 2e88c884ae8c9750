// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/xrc/xrc_table.hpp"

#include <fcntl.h>

#include <cassert>
#include <new>

#include "provider/soft/xrc/xrc_qp.hpp"
#include "provider/system/doors.hpp"

namespace dapple::soft {

namespace {

// One that is in no list any more.
void destroy(XrcDomain* domain) {
  if (domain == nullptr) return;
  if (domain->fd >= 0) close_own(domain->fd);
  delete domain;
}

}  // namespace

void XrcTable::add_opening(Xrcd& xrcd, XrcDomain& domain) {
  assert_held(mutex_);
  xrcd.domain = &domain;
  xrcd.next = openings_;
  openings_ = &xrcd;
  domain.openings++;
}

// Returns the domain if it is the last opening: then it is in no list any more.
XrcDomain* XrcTable::remove_opening(Xrcd& xrcd) {
  assert_held(mutex_);
  Xrcd** opening = &openings_;
  while (*opening != &xrcd) opening = &(*opening)->next;
  *opening = xrcd.next;
  XrcDomain* domain = xrcd.domain;
  assert(domain->openings > 0);
  if (--domain->openings != 0) return nullptr;
  assert(domain->receivers == nullptr && domain->noted == nullptr);
  XrcDomain** at = &domains_;
  while (*at != domain) at = &(*at)->next;
  *at = domain->next;
  return domain;
}

void XrcTable::make(Xrcd& xrcd, XrcDomain* domain) {
  assert_held(mutex_);
  domain->next = domains_;
  domains_ = domain;
  add_opening(xrcd, *domain);
}

XrcTable::Opened XrcTable::open_private(Xrcd& xrcd) {
  auto* domain = new (std::nothrow) XrcDomain;
  if (domain == nullptr) return Opened::kNoMemory;
  const std::lock_guard lock(mutex_);
  make(xrcd, domain);
  return Opened::kDone;
}

XrcTable::Opened XrcTable::open_shared(Xrcd& xrcd, const XrcDomain::Inode& inode, int fd, bool creates, bool is_new) {
  const std::lock_guard lock(mutex_);
  for (XrcDomain* domain = domains_; domain != nullptr; domain = domain->next) {
    if (!domain->is_shared || domain->inode != inode) continue;
    if (is_new) return Opened::kExists;
    add_opening(xrcd, *domain);
    return Opened::kDone;
  }
  if (!creates) return Opened::kMissing;
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return Opened::kNoMemory;
  auto* domain = new (std::nothrow) XrcDomain;
  if (domain == nullptr) {
    close_own(own);
    return Opened::kNoMemory;
  }
  domain->is_shared = true;
  domain->inode = inode;
  domain->fd = hide_own(own);
  make(xrcd, domain);
  return Opened::kDone;
}

void XrcTable::close(Xrcd& xrcd) {
  XrcDomain* last = nullptr;
  {
    const std::lock_guard lock(mutex_);
    last = remove_opening(xrcd);
  }
  destroy(last);
}

// --- Shared receive queues

bool XrcTable::add(Srq& srq) {
  assert(srq.xrc.domain != nullptr && srq.xrc.cq != nullptr);
  const std::lock_guard lock(mutex_);
  for (uint32_t tried = 0; tried < kNumbers; ++tried) {
    const uint32_t at = next_number_;
    next_number_ = (next_number_ + 1) % kNumbers;
    // 0 could be a forgotten number.
    if (taken_[at] || first_ + at == 0) continue;
    taken_[at] = true;
    srq.xrc.number = first_ + at;
    Srq*& chain = chain_of(srq.xrc.number);
    srq.xrc.next = chain;
    chain = &srq;
    return true;
  }
  return false;
}

void XrcTable::unlink(Srq& srq) {
  assert_held(mutex_);
  Srq** at = &chain_of(srq.xrc.number);
  while (*at != &srq) at = &(*at)->xrc.next;
  *at = srq.xrc.next;
  taken_[srq.xrc.number - first_] = false;
  if (srq.xrc.is_noted) {
    at = &srq.xrc.domain->noted;
    while (*at != &srq) at = &(*at)->xrc.next_noted;
    *at = srq.xrc.next_noted;
  }
  srq.xrc.is_noted = false;
}

void XrcTable::remove(Srq& srq) {
  const std::lock_guard lock(mutex_);
  unlink(srq);
}

Srq* XrcTable::find_srq(const XrcDomain& domain, uint32_t number) {
  assert_held(mutex_);
  Srq* srq = chain_of(number);
  while (srq != nullptr && (srq->xrc.number != number || srq->xrc.domain != &domain)) srq = srq->xrc.next;
  return srq;
}

bool XrcTable::find(const XrcDomain& domain, uint32_t srq, uint32_t& pd, const roce::Memory*& memory) {
  const std::lock_guard lock(mutex_);
  const Srq* found = find_srq(domain, srq);
  if (found == nullptr) return false;
  pd = found->pd->number;
  memory = found->xrc.memory;
  return true;
}

// The queue with this number, if it has the protection domain, or any other one that has it.
const Srq* XrcTable::find_of_pd(const XrcDomain& domain, uint32_t number, uint32_t pd) {
  const Srq* srq = find_srq(domain, number);
  if (srq != nullptr && srq->pd->number == pd) return srq;
  for (const Srq* chain : chains_) {
    for (srq = chain; srq != nullptr; srq = srq->xrc.next) {
      if (srq->xrc.domain == &domain && srq->pd->number == pd) return srq;
    }
  }
  return nullptr;
}

// True if the queue is in the list of those that have something to tell.
bool XrcTable::note(XrcDomain& domain, Srq& srq) {
  if (!srq.xrc.cq->queue.has_notice() && !srq.queue.has_limit_notice()) return false;
  if (!srq.xrc.is_noted) {
    srq.xrc.is_noted = true;
    srq.xrc.next_noted = domain.noted;
    domain.noted = &srq;
  }
  return true;
}

const ReceiveQueue* XrcTable::take(XrcDomain& domain, uint32_t srq, roce::ReceiveRequest& request, bool& noted) {
  const std::lock_guard lock(mutex_);
  Srq* found = find_srq(domain, srq);
  if (found == nullptr || !found->queue.take(request)) return nullptr;
  noted = note(domain, *found);
  return &found->queue;
}

bool XrcTable::complete(XrcDomain& domain, uint32_t srq, const roce::Completion& completion) {
  const std::lock_guard lock(mutex_);
  Srq* found = find_srq(domain, srq);
  if (found == nullptr) return false;
  found->xrc.completions->complete(completion);
  return note(domain, *found);
}

// --- Queue pairs

void XrcTable::add(Qp& qp) {
  const std::lock_guard lock(mutex_);
  qp.xrc->next = qp.xrc->domain.receivers;
  qp.xrc->domain.receivers = &qp;
}

bool XrcTable::open(uint32_t qpn, Qp& handle) {
  const std::lock_guard lock(mutex_);
  Qp* qp = handle.xrc->domain.receivers;
  while (qp != nullptr && qp->qpn != qpn) qp = qp->xrc->next;
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

// A handle is gone: the queue pair, if it has none left.
Qp* without_handle(Qp& qp) {
  return qp.xrc->is_closed && qp.xrc->handles == nullptr ? &qp : nullptr;
}

// `handle` is another handle of a queue pair that has not ended. It means none any more.
Qp* leave(Qp& handle) {
  Qp* qp = handle.xrc->target.exchange(nullptr);
  if (qp == nullptr) return nullptr;
  take_out(qp->xrc->handles, handle);
  return without_handle(*qp);
}

}  // namespace

Qp* XrcTable::close(Qp& handle) {
  const std::lock_guard lock(mutex_);
  if (handle.xrc->is_handle) return leave(handle);
  handle.xrc->is_closed = true;
  return without_handle(handle);
}

void XrcTable::end(Qp& qp) {
  const std::lock_guard lock(mutex_);
  if (qp.xrc->has_ended) return;
  qp.xrc->has_ended = true;
  take_out(qp.xrc->domain.receivers, qp);
  while (Qp* handle = qp.xrc->handles) leave(*handle);
}

Qp* XrcTable::forget(const Context& context) {
  const std::lock_guard lock(mutex_);
  for (Srq*& chain : chains_) {
    for (Srq* srq = chain; srq != nullptr;) {
      Srq* next = srq->xrc.next;
      if (srq->context == &context) unlink(*srq);
      srq = next;
    }
  }
  for (XrcDomain* domain = domains_; domain != nullptr; domain = domain->next) {
    for (Qp* qp = domain->receivers; qp != nullptr; qp = qp->xrc->next) {
      if (qp->context == &context) qp->xrc->is_closed = true;
      for (Qp* handle = qp->xrc->handles; handle != nullptr;) {
        Qp* next = handle->xrc->next;
        if (handle->context == &context) leave(*handle);
        handle = next;
      }
      // The queue pair ends with the device that it was made on.
      if (qp->context == &context || without_handle(*qp) != nullptr) return qp;
    }
  }
  for (Xrcd* xrcd = openings_; xrcd != nullptr;) {
    Xrcd* next = xrcd->next;
    if (xrcd->context == &context) destroy(remove_opening(*xrcd));
    xrcd = next;
  }
  return nullptr;
}

}  // namespace dapple::soft
