// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The XRC domains of a process. A domain has shared receive queues and receiving queue pairs, and each queue pair may
// use each queue: the peer's packets name the queue by its number.
//
// A queue may be destroyed while a queue pair uses it. So one lock guards all domains, and whoever uses a queue looks
// its number up under this lock.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <bitset>
#include <mutex>

#include "provider/common/mutex.hpp"
#include "provider/soft/objects/objects.hpp"

namespace dapple::soft {

// Guarded by the table's lock, except for `shared`.
struct XrcDomain {
  // A domain of an inode is shared by all that open the same inode on the same device.
  struct Inode {
    uint32_t rdma_device = 0;
    dev_t device = 0;
    ino_t number = 0;
    bool operator==(const Inode&) const = default;
  };
  bool is_shared = false;
  Inode inode;              // of a shared domain
  int fd = -1;              // keeps the inode's number from another file
  uint32_t openings = 0;    // ibv_open_xrcd() without ibv_close_xrcd()
  Qp* receivers = nullptr;  // the receiving queue pairs
  Srq* noted = nullptr;     // shared receive queues that have something to tell
  XrcDomain* next = nullptr;
};

// Internally locked.
class XrcTable {
 public:
  // Shared receive queues have numbers from `first` on, as many as a large slot. Peers name a queue pair beside them,
  // so other processes may have the same ones. random: where they begin.
  XrcTable(uint32_t first, uint32_t random) : first_(first), next_number_(random % kNumbers) {}

  enum class Opened : uint8_t { kDone, kMissing, kExists, kNoMemory };
  // A domain of its own.
  Opened open_private(Xrcd& xrcd);
  // The domain of an inode, which `fd` refers to. kMissing: there is none, and `creates` is false; kExists: there is
  // one, and `is_new` is true. With `creates` it is made if there is none.
  Opened open_shared(Xrcd& xrcd, const XrcDomain::Inode& inode, int fd, bool creates, bool is_new);
  void close(Xrcd& xrcd);

  // Shared receive queues; srq.xrc has their domain. add() gives the number; false: all are taken. After remove() no
  // queue pair uses the queue.
  bool add(Srq& srq);
  void remove(Srq& srq);

  // Receiving queue pairs; qp.xrc has their domain.
  void add(Qp& qp);
  // Makes `handle` another handle of the domain's queue pair with this number. False if there is none.
  bool open(uint32_t qpn, Qp& handle);
  // The program destroys a handle, or the queue pair itself as its first handle. Returns the queue pair if no handle is
  // left, or null; the caller ends it then.
  Qp* close(Qp& handle);
  // The queue pair ends: handles that are left mean no queue pair any more.
  void end(Qp& qp);
  // The program closes a device and leaves its objects: forgets them. Returns a queue pair that is left without a
  // handle, for the caller to end, or null. Call it until it returns null.
  Qp* forget(const Context& context);

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
  // Calls tell(handle) for each handle of the queue pair. Under the lock.
  template <typename Tell>
  void tell_handles(Qp& qp, Tell tell_of);

 private:
  static constexpr uint32_t kNumbers = 1 << 16;
  static constexpr uint32_t kChains = 256;

  Srq*& chain_of(uint32_t number) { return chains_[number % kChains]; }
  Srq* find_srq(const XrcDomain& domain, uint32_t number);
  const Srq* find_of_pd(const XrcDomain& domain, uint32_t number, uint32_t pd);
  static bool note(XrcDomain& domain, Srq& srq);
  void unlink(Srq& srq);
  void add_opening(Xrcd& xrcd, XrcDomain& domain);
  void make(Xrcd& xrcd, XrcDomain* domain);
  XrcDomain* remove_opening(Xrcd& xrcd);

  Mutex mutex_{LockRank::kXrc};
  XrcDomain* domains_ = nullptr;
  Xrcd* openings_ = nullptr;
  Srq* chains_[kChains] = {};  // all shared receive queues of domains, by their numbers
  const uint32_t first_;
  uint32_t next_number_;
  std::bitset<kNumbers> taken_;  // numbers
};

}  // namespace dapple::soft
