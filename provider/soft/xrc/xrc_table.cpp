// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/xrc/xrc_table.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <cassert>
#include <new>
#include <utility>

#include "provider/soft/xrc/xrc_qp.hpp"
#include "provider/soft/xrc/xrc_server.hpp"
#include "provider/system/doors.hpp"

namespace dapple::soft {
namespace {

// A descriptor that only names the file. The close of any other one would drop the program's own locks of the file
// (fcntl(2), F_SETLK). Without /proc there is no such descriptor.
int name_file(int fd) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int named = open(path, O_PATH | O_CLOEXEC);
  return named >= 0 ? named : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

}  // namespace

XrcDomain::XrcDomain() = default;
XrcDomain::~XrcDomain() = default;

// One that is in no list any more. The caller holds `sharing_mutex_` if it may be shared.
void XrcTable::destroy(XrcDomain* domain) {
  if (domain == nullptr) return;
  if (domain->server != nullptr) domain->server->stop();
  domain->server.reset();
  domain->shared.reset();
  if (domain->hold.memory) domain->link->close_xrc(domain->hold);
  if (domain->fd >= 0) close_own(domain->fd);
  delete domain;
}

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

// This process has the domain open already.
XrcTable::Opened XrcTable::open_again(Xrcd& xrcd, const Opening& opening, bool& is_open) {
  const std::lock_guard lock(mutex_);
  XrcDomain* domain = domains_;
  while (domain != nullptr && (!domain->is_shared || domain->inode != opening.inode)) domain = domain->next;
  is_open = domain != nullptr;
  if (!is_open) return Opened::kMissing;
  if (opening.is_new) return Opened::kExists;
  add_opening(xrcd, *domain);
  return Opened::kDone;
}

XrcTable::Opened XrcTable::share(XrcDomain& domain, const Opening& opening, Problem& problem) {
  const uint32_t flags = (opening.creates ? kXrcCreates : 0u) | (opening.is_new ? kXrcIsNew : 0u);
  XrcOutcome outcome = XrcOutcome::kOpen;
  if (!domain.link->open_xrc(domain.hold, flags, outcome, problem)) return Opened::kFailed;
  if (outcome != XrcOutcome::kOpen) return outcome == XrcOutcome::kMissing ? Opened::kMissing : Opened::kExists;
  domain.shared = SharedXrcDomain::join(domain.hold.memory.get(), slot_, first_, problem);
  if (domain.shared == nullptr) return Opened::kFailed;
  std::unique_ptr<XrcServer> server(new (std::nothrow) XrcServer(*domain.shared, *this, domain));
  const int error = server == nullptr ? ENOMEM : server->start();
  if (error != 0) {
    problem.set(error, "no thread for the XRC domain: %s%s", strerror(error), process_remedy(error));
    return Opened::kFailed;
  }
  domain.server = std::move(server);
  return Opened::kDone;
}

XrcTable::Opened XrcTable::open_shared(Xrcd& xrcd, const Opening& opening, DaemonLink& link, Problem& problem) {
  const std::lock_guard sharing(sharing_mutex_);
  bool is_open = false;
  const Opened again = open_again(xrcd, opening, is_open);
  if (is_open) return again;
  const int own = name_file(opening.fd);
  if (own < 0) return Opened::kNoMemory;
  auto* domain = new (std::nothrow) XrcDomain;
  if (domain == nullptr) {
    close_own(own);
    return Opened::kNoMemory;
  }
  domain->is_shared = true;
  domain->inode = opening.inode;
  domain->fd = hide_own(own);
  domain->link = &link;
  domain->hold.device = opening.inode.rdma_device;
  domain->hold.file = domain->fd;
  domain->hold.inode = opening.inode.file;
  if (const Opened shared = share(*domain, opening, problem); shared != Opened::kDone) {
    destroy(domain);
    return shared;
  }
  const std::lock_guard lock(mutex_);
  make(xrcd, domain);
  return Opened::kDone;
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
    SharedXrcDomain* shared = srq.xrc.domain->shared.get();
    if (shared != nullptr && shared->owner_of(first_ + at) != SharedXrcDomain::kNobody) continue;
    taken_[at] = true;
    srq.xrc.number = first_ + at;
    Srq*& chain = chain_of(srq.xrc.number);
    srq.xrc.next = chain;
    chain = &srq;
    if (shared != nullptr) shared->publish(srq.xrc.number);
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
  if (srq.xrc.domain->shared != nullptr) srq.xrc.domain->shared->withdraw(srq.xrc.number);
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
  assert_held(mutex_);
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
  assert_held(mutex_);
  assert(srq.xrc.domain == &domain);
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

}  // namespace dapple::soft
