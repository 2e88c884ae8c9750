// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The rings between this process and others of its host, network namespace and user.
//
// A process listens on the name that its slot's owner keeps bound. A process with packets for it connects there and
// passes the ring that it will write to. So each direction has a connection of its own, and no question to dappled is
// needed. The connection tells each end of the other's death, and wakes a sleeping end (link_message.hpp). If the
// writer proves that the kernel lets it reach the reader's memory (proof/challenges.hpp), the reader sends the table by
// which the writer copies there (placement/publication.hpp).
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "provider/common/mutex.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/protocol/unix_message.hpp"
#include "provider/protocol/wire_counters.hpp"
#include "provider/soft/links/link_message.hpp"
#include "provider/soft/links/transport_table.hpp"
#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/placement/peer_memory.hpp"
#include "provider/soft/placement/publication.hpp"
#include "provider/soft/same_host/ring.hpp"
#include "provider/soft/wire/wire.hpp"
#include "provider/system/owned_fd.hpp"
#include "provider/system/spare_descriptor.hpp"

namespace dapple::soft {

// The first message on a connection; the ring's file comes with it.
struct RingHello {
  uint32_t magic = kMagic;
  uint16_t version = kProtocolVersion;
  uint16_t reserved = 0;
  uint32_t slot = 0;  // the writer's
  uint32_t ring_bytes = kRingBytes;
};

// To one other process, for as long as it lives. Threads write under the lock.
class RingTo {
 public:
  explicit RingTo(uint32_t number) : writer_(memory_), number_(number) {}

  // The peer is gone: nothing reads the ring.
  bool broken() const { return broken_.load(std::memory_order_relaxed); }
  // Distinguishes this ring from the other rings of this process.
  uint32_t number() const { return number_; }
  // The reason, once the ring is broken.
  Transport end() const { return end_.load(std::memory_order_relaxed); }
  // After the writer has published these packets, without the lock: counts them, and wakes the peer if it sleeps.
  void published(uint32_t packets, Counter& sent_packets);

  RingWriter& writer() { return writer_; }
  PeerMemory& peer_memory() { return peer_memory_; }
  // Tells whether the peer fetches bytes from the process whose table has this nonce.
  bool fetches_from(uint64_t nonce) const {
    return nonce != 0 && memory_.control().fetches.load(std::memory_order_relaxed) == nonce;
  }

  BiasedMutex mutex{LockRank::kRing};
  std::atomic<bool> full{false};  // a packet has found no room

 private:
  friend class SameHostLinks;

  RingMemory memory_;
  RingWriter writer_;
  PeerMemory peer_memory_;
  const uint32_t number_;
  OwnedFd socket_;
  pid_t process_ = 0;      // the peer's; 0: of another PID namespace
  bool answered_ = false;  // the peer's challenge; under the lock of all such rings
  std::atomic<bool> broken_{false};
  std::atomic<Transport> end_{Transport::kPeerGone};
  std::atomic<uint32_t> users_{1};
  RingTo* next_ = nullptr;  // of all rings; under the lock of all such rings
};

class SameHostLinks {
 public:
  SameHostLinks() = default;
  ~SameHostLinks();
  SameHostLinks(const SameHostLinks&) = delete;
  SameHostLinks& operator=(const SameHostLinks&) = delete;

  // `own_slot`: the slot to whose name `lease` is bound. `transports` learns of rings that begin and end. `most_bytes`:
  // of all rings that this process makes. Returns kSharedMemory, or the reason why no process of this host finds this
  // one.
  Transport open(uint32_t own_slot, int lease, SameHostCounters& counters, TransportTable& transports,
                 uint64_t most_bytes);
  // Instead of open(): there are no rings, for this reason.
  void stay_closed(Transport why) { closed_ = why; }

  // From now on peers copy to and from the memory that is published, and this process to and from theirs. The
  // publication outlives this object.
  void place_by(Publication& publication) { publication_ = &publication; }

  // The ring to the owner of a slot, made if necessary; null if there is none: then packets go over UDP, and
  // `transport` has the reason. The caller returns it with put(). Both functions are internally locked and do not wait.
  RingTo* get(uint32_t slot, Transport& transport);
  void put(RingTo* ring);
  // Peers whose rings were full wake this process by fd() when there is room. False if there is room now. Internally
  // locked.
  bool wait_for_room();

  // The functions from here on: one thread at a time.
  //
  // Passes on the waiting packets of all rings to this process, at most some dozens of each; returns their number.
  size_t receive(ArrivalSink& sink);
  bool empty() const;
  // Tells whether there is a ring to this process. Any thread may call it.
  bool any() const { return rings_.load(std::memory_order_relaxed) != 0; }
  // From now on peers wake this process by fd(). Look at empty() afterwards.
  void sleep();
  void stay_awake();
  // To poll: new connections, wake-ups, ends of peers. -1 if there is none. attend() looks after them.
  int fd() const { return epoll_.get(); }
  void attend();

  // Around a fork(): no connection is made, accepted or ended meanwhile, so the child knows the descriptors of all. The
  // child closes them.
  void fork_prepare();
  void fork_parent();
  void fork_child();
  // As a process that ends.
  void close_in_child();

 private:
  struct RingFrom final : Placer {
    enum class State : uint8_t {
      kConnected,  // its hello, with the ring, is still to come
      kOpen,
      kRefused,  // its packets are of no use; it may still be copying
    };

    RingFrom() : reader(memory) {}
    RingReader reader;
    uint32_t slot = 0;  // the writer's
    Right right = Right::kNone;
    State state() const { return state_; }
    bool has_ring() const { return state_ != State::kConnected; }
    bool has_packets() const { return state_ == State::kOpen && !reader.empty(); }
    // A connection that is refused before its hello, or whose writer may not copy, ends at once.
    void enter(State next) {
      assert(next == (state_ == State::kConnected ? State::kOpen : State::kRefused) && state_ != State::kRefused);
      state_ = next;
      assert_consistent();
    }
    void assert_consistent() const {
      assert(has_ring() == memory.is_mapped());
      assert(has_ring() || (right == Right::kNone && challenge == 0));
      assert((challenge != 0) == (right == Right::kAsked));
      assert(state_ != State::kRefused || right == Right::kGranted);
    }

   private:
    State state_ = State::kConnected;
  };
  struct LetGo {
    void operator()(RingFrom* from) const { from->let_go(); }
  };
  static constexpr uint32_t kMaxFrom = kMaxSlots;

  // Asserts the conditions that hold between two calls. The second function needs to_mutex_.
  void assert_consistent() const;
  void assert_consistent_to(uint32_t slot) const;
  Transport prepare(int lease);
  // False: there is no room for it, and errno has the reason.
  bool watch(int fd, uint64_t key);
  void accept_all();
  void refuse_one();
  void begin_pause();
  void end_pause();
  size_t receive_from(uint32_t index, ArrivalSink& sink);
  void release(RingFrom& from);
  void attend_from(uint32_t index);
  void attend_to(uint32_t slot);
  void drop(uint32_t index);
  void refuse(uint32_t index, Transport why);
  Transport greet(RingFrom& from, ssize_t size, const RingHello& hello, const Descriptors& files);
  void ask(RingFrom& from);
  void note_right(RingFrom& from, Right right);
  void look_for_answer(RingFrom& from);
  void answer(RingTo& ring, uint32_t slot);
  void take_table(RingTo& ring, uint32_t slot, OwnedFd table);
  static void invite(const RingFrom& from, const RingTo& to);
  RingTo* connect(uint32_t slot, Transport& transport);
  static bool let_go(RingTo& ring);
  void end(RingTo& ring);
  void forget(uint32_t slot, Transport why);

  uint32_t own_slot_ = 0;
  int lease_ = -1;
  SameHostCounters* counters_ = nullptr;
  TransportTable* transports_ = nullptr;
  Transport closed_ = Transport::kNoMemory;  // the reason if there is no epoll_
  Publication* publication_ = nullptr;
  OwnedFd epoll_;
  SpareDescriptor spare_;
  OwnedFd pause_;  // a timer: until it ends, no connection is accepted, because spare_ is lost

  Mutex to_mutex_{LockRank::kLinks};
  RingTo* to_[kMaxSlots] = {};
  RingTo* made_ = nullptr;  // all rings, those included that are forgotten and still have users
  uint64_t most_bytes_ = 0;
  std::atomic<uint64_t> bytes_{0};  // in rings, until the last user of a broken ring is gone; grows under to_mutex_
  uint32_t rings_made_ = 0;

  Mutex from_mutex_{LockRank::kLinksFrom};  // around all changes of from_: a fork() must not meet them halfway
  std::unique_ptr<RingFrom, LetGo> from_[kMaxFrom];
  uint32_t from_end_ = 0;  // places in use are below
  std::atomic<uint32_t> rings_{0};
};

}  // namespace dapple::soft
