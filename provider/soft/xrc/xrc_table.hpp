// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The XRC domains of a process. A domain has shared receive queues and receiving queue pairs, and each queue pair may
// use each queue: the peer's packets name the queue by its number.
//
// A domain of a file may also have other processes as members: SharedXrcDomain is the way to them, and XrcServer the
// way back.
//
// A queue may be destroyed while a queue pair uses it. So one lock guards all domains, and whoever uses a queue looks
// its number up under this lock.
#pragma once

#include <stdint.h>

#include <atomic>
#include <bitset>
#include <memory>
#include <mutex>

#include "provider/common/mutex.hpp"
#include "provider/member/daemon_link.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/xrc/shared_domain.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

class XrcServer;

// Guarded by the table's lock, except for `shared`, which does not change.
struct XrcDomain {
  XrcDomain();
  ~XrcDomain();

  // A domain of an inode is shared by all that open the same inode on the same device.
  struct Inode {
    uint32_t rdma_device = 0;
    FileInode file;
    bool operator==(const Inode&) const = default;
  };
  bool is_shared = false;
  Inode inode;              // of a shared domain
  int fd = -1;              // keeps the inode's number from another file
  uint32_t openings = 0;    // ibv_open_xrcd() without ibv_close_xrcd()
  Qp* receivers = nullptr;  // the receiving queue pairs
  uint32_t admitted = 0;    // receiving queue pairs, with those that are not complete
  Srq* noted = nullptr;     // shared receive queues that have something to tell
  Qp* foreign = nullptr;    // handles of queue pairs of other processes
  XrcDomain* next = nullptr;
  // Of a domain of an inode.
  DaemonLink* link = nullptr;
  XrcHold hold;  // while `shared` is not null
  std::unique_ptr<SharedXrcDomain> shared;
  std::unique_ptr<XrcServer> server;
};

// What other processes do to this process' objects.
class XrcListener {
 public:
  // The queue has noted an event. Under the table's lock.
  virtual void noted(Srq& srq) = 0;
  // An ibv_event_type of a queue pair of another process, for a handle. Under the table's lock.
  virtual void raised(Qp& handle, uint32_t type) = 0;
  // No process has a handle of the queue pair any more. Ends it, and then calls ended(). No lock is held but that of
  // sharing.
  virtual void unused(Qp& qp) = 0;
  // A thread other than a domain's server is to call end_unused(). Under the table's lock.
  virtual void has_unused() = 0;

 protected:
  ~XrcListener() = default;
};

// Internally locked.
class XrcTable {
 public:
  // Shared receive queues have numbers from `first` on, as many as a large slot. Peers name a queue pair beside them,
  // so processes without a common domain may have the same ones. slot: this process' one. random: where numbers begin.
  XrcTable(uint32_t slot, uint32_t first, uint32_t random, XrcListener& listener)
      : slot_(slot), first_(first), listener_(listener), next_number_(random % kNumbers) {}

  enum class Opened : uint8_t { kDone, kMissing, kExists, kNoMemory, kFailed };
  // A domain of its own.
  Opened open_private(Xrcd& xrcd);
  // The domain of an inode, which `fd` refers to. kMissing: no process has it open, and `creates` is false; kExists:
  // one has, and `is_new` is true. With `creates` it is made if there is none. kFailed: `problem` has the reason.
  struct Opening {
    XrcDomain::Inode inode;
    int fd = -1;
    bool creates = false;
    bool is_new = false;
  };
  Opened open_shared(Xrcd& xrcd, const Opening& opening, DaemonLink& link, Problem& problem);
  void close(Xrcd& xrcd);

  // Shared receive queues; srq.xrc has their domain. add() gives the number; false: all are taken. After remove() no
  // queue pair uses the queue.
  bool add(Srq& srq);
  void remove(Srq& srq);

  // Receiving queue pairs; qp.xrc has their domain. admit() is false at the limit of a domain that processes share.
  bool admit(XrcQp& parts);
  // Of a queue pair that never became complete.
  void dismiss(XrcQp& parts);
  void add(Qp& qp);
  // Makes `handle` another handle of the domain's queue pair with this number. False if there is none.
  bool open(uint32_t qpn, Qp& handle);
  // The same of a queue pair in another process; `state` is its ibv_qp_state. kLater: that process does not answer;
  // kNoRoom: it keeps no more handles.
  SharedXrcDomain::Asked open_elsewhere(uint32_t qpn, Qp& handle, uint32_t& state);
  // The program begins to destroy the queue pair's first handle, and hears of no more of its events.
  void silence(Qp& qp);
  // The program destroys a handle, or the queue pair itself as its first handle. Returns the queue pair if no handle is
  // left, or null; the caller ends it then.
  Qp* close(Qp& handle);
  // The queue pair ends: handles that are left mean no queue pair any more.
  void end(Qp& qp);
  // The end of a queue pair that the caller got from close(), forget() or unused() is complete: nothing uses its
  // context or its domain any more.
  void ended(XrcQp& parts);
  // The program closes a device and leaves its objects: forgets them. Returns a queue pair that is left without a
  // handle, for the caller to end, or null. Call it until it returns null. Waits for the ends of the context's queue
  // pairs in other threads.
  Qp* forget(const Context& context);
  // Queue pairs whose last handle was in another process. The server does not end them: an end takes the lock of
  // receiving, and its owner may wait for another process' server. Any other thread without a lock ends them.
  bool has_unused() const { return unused_.load(std::memory_order_relaxed) != 0; }
  void end_unused();

  // For a receiving queue pair, under its lock. False if the domain has no such queue. `pd`: the number of its
  // protection domain; `memory`: that of its context, which may end with the queue.
  bool find(const XrcDomain& domain, uint32_t srq, uint32_t& pd, const roce::Memory*& memory);
  // Calls use(memory) with the memory of the context that has this protection domain, under the lock. `srq`: a queue
  // that may be one of it. kAccess if no queue of the domain has it.
  template <typename Use>
  roce::Fault with_memory(const XrcDomain& domain, uint32_t srq, uint32_t pd, Use use) {
    const std::lock_guard lock(mutex_);
    const Srq* found = find_of_pd(domain, srq, pd);
    return found == nullptr ? roce::Fault::kAccess : use(*found->xrc.memory);
  }
  // The same with the memory and the protection domain of this queue.
  template <typename Use>
  roce::Fault with_memory_of(const XrcDomain& domain, uint32_t srq, Use use) {
    const std::lock_guard lock(mutex_);
    const Srq* found = find_srq(domain, srq);
    return found == nullptr ? roce::Fault::kAccess : use(*found->xrc.memory, found->pd->number);
  }
  // Takes a receive, and returns its queue; null if there is none. `noted`: tell() has something to do.
  const ReceiveQueue* take(XrcDomain& domain, uint32_t srq, roce::ReceiveRequest& request, bool& noted);
  // Completes a receive of the queue. A queue that is gone drops it. True: tell() has something to do.
  bool complete(XrcDomain& domain, uint32_t srq, const roce::Completion& completion);

  // Calls tell(srq) for each queue that has noted an event since. Under the lock.
  template <typename Tell>
  void tell(XrcDomain& domain, Tell tell_of) {
    const std::lock_guard lock(mutex_);
    while (Srq* srq = domain.noted) {
      domain.noted = srq->xrc.next_noted;
      srq->xrc.is_noted = false;
      tell_of(*srq);
    }
  }
  void tell(XrcDomain& domain) {
    tell(domain, [this](Srq& srq) { listener_.noted(srq); });
  }
  // Calls tell(handle) for each handle of the queue pair. Under the lock.
  template <typename Tell>
  void tell_handles(Qp& qp, Tell tell_of);
  // Tells the other processes that have handles of it.
  void tell_elsewhere(Qp& qp, uint32_t type);

  // For the domain's server: the other processes' handles of queue pairs in this one, and this process' handles of
  // queue pairs in others.
  struct Member {
    uint32_t number = 0;
    uint32_t generation = 0;  // of its row: another process may get the row at once
  };
  XrcFound open_foreign(XrcDomain& domain, Member member, uint32_t qpn, uint32_t& state);
  void close_foreign(XrcDomain& domain, Member member, uint32_t qpn);
  void raise_foreign(XrcDomain& domain, Member member, uint32_t qpn, uint32_t type);
  bool has_foreign(const XrcDomain& domain);
  // Of members that have ended: `alive` has a bit for each other one.
  void end_foreign(XrcDomain& domain, uint64_t alive);

 private:
  static constexpr uint32_t kNumbers = kXrcNumbers;
  static constexpr uint32_t kChains = 256;

  Srq*& chain_of(uint32_t number) { return chains_[number % kChains]; }
  Srq* find_srq(const XrcDomain& domain, uint32_t number);
  const Srq* find_of_pd(const XrcDomain& domain, uint32_t number, uint32_t pd);
  bool note(XrcDomain& domain, Srq& srq);
  void unlink(Srq& srq);
  void add_opening(Xrcd& xrcd, XrcDomain& domain);
  void make(Xrcd& xrcd, XrcDomain* domain);
  XrcDomain* remove_opening(Xrcd& xrcd);
  Qp* claim(Qp& qp);
  Qp* claim_if_unheld(Qp& qp);
  void leave_if_unheld(Qp& qp);
  Qp* take_unused();
  Qp* take_unused(XrcQp& ending);
  template <typename Has>
  bool is_ending(Has has, Qp*& left);
  bool is_still_used(const Xrcd& xrcd, Qp*& left);
  bool is_still_used(const Context& context, Qp*& left);
  void forget_queues(const Context& context);
  void forget_handles(const Context& context);
  Qp* forget(const Context& context, XrcDomain*& closed, bool& waits);
  Opened open_again(Xrcd& xrcd, const Opening& opening, bool& is_open);
  Opened share(XrcDomain& domain, const Opening& opening, Problem& problem);
  void destroy(XrcDomain* domain);

  // Taken before the other one: a domain of an inode is opened, or closed, by one thread at a time.
  Mutex sharing_mutex_{LockRank::kXrcSharing};
  Mutex mutex_{LockRank::kXrc};
  XrcDomain* domains_ = nullptr;
  Xrcd* openings_ = nullptr;
  XrcQp* endings_ = nullptr;         // queue pairs that a thread ends, or is to end
  std::atomic<uint32_t> unused_{0};  // those that wait for a thread; changes under the lock
  Srq* chains_[kChains] = {};        // all shared receive queues of domains, by their numbers
  const uint32_t slot_;
  const uint32_t first_;
  XrcListener& listener_;
  uint32_t next_number_;
  std::bitset<kNumbers> taken_;  // numbers
};

}  // namespace dapple::soft
