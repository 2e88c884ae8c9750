// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The verbs objects: libibverbs' structure of each, and ours behind it.
//
// provider/common/lock_ranks.def lists the locks and their order. No thread holds two queue pairs' locks. Under a queue
// pair's lock the only system calls are those that send packets, that make a socket for them, that copy bytes, or that
// bring in memory under on-demand paging. When its requests fail, the thread also waits for peers' copies, for 10 ms at
// most (QpEvents::sends_fail()).
#pragma once

#include <stdint.h>

#include <atomic>
#include <memory>
#include <utility>

#include "provider/common/mutex.hpp"
#include "provider/protocol/device_rows.hpp"
#include "provider/soft/abi/plugin.hpp"
#include "provider/soft/abi/structures.hpp"
#include "provider/soft/links/links.hpp"
#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/memory/gpu_memory.hpp"
#include "provider/soft/memory/on_demand_pages.hpp"
#include "provider/soft/objects/completion_counter.hpp"
#include "provider/soft/objects/device_memory.hpp"
#include "provider/soft/objects/gid_uses.hpp"
#include "provider/soft/objects/kept_memory.hpp"
#include "provider/soft/objects/mapped_dmabuf.hpp"
#include "provider/soft/objects/object_limits.hpp"
#include "provider/soft/objects/open_batch.hpp"
#include "provider/soft/objects/peers_packets.hpp"
#include "provider/soft/objects/qp_held.hpp"
#include "provider/soft/objects/queues/completion_queue.hpp"
#include "provider/soft/objects/queues/event_pipe.hpp"
#include "provider/soft/objects/queues/queue_allocator.hpp"
#include "provider/soft/objects/queues/receive_queue.hpp"
#include "provider/soft/objects/queues/stamped_completions.hpp"
#include "provider/soft/objects/resource_table.hpp"
#include "provider/soft/placement/pace.hpp"
#include "provider/soft/sanitizers/announced_queue.hpp"
#include "provider/soft/wire/wire.hpp"
#include "roce/core/queue_pair.hpp"

namespace dapple::soft {

class Runtime;

// The number of objects that need this one, which cannot be destroyed before them.
using Users = std::atomic<uint32_t>;

// How an object ends that contexts import: by its own dealloc, or by that of an import, when the program still has the
// original's structure.
enum class ObjectEnd : uint8_t { kNone, kByOriginal, kByImport };

// The part of an object that other contexts of its open file may import (provider/soft/imports).
template <typename Object>
struct Importing {
  Object* original = nullptr;  // of an import; null: it is none
  // Of an original. Guarded by the lock of DeviceFile.
  Object* next = nullptr;
  Object* previous = nullptr;
  uint32_t imports = 0;
  ObjectEnd end = ObjectEnd::kNone;
};

// Objects of a thread domain are used by one thread at a time.
struct Td : KeptMemory {
  ibv_td ibv = {};
  Users users{0};
};

// A protection domain, or a parent domain: then it has the number of the protection domain below it.
struct Pd : KeptMemory {
  ibv_pd ibv = {};
  Context* context = nullptr;
  uint32_t number = 0;
  Users users{0};
  Pd* below = nullptr;  // null: this is a protection domain
  Td* td = nullptr;     // of a parent domain; null if it has none
  Importing<Pd> importing;
  QueueAllocator allocator;

  // The program uses the objects of this domain in one thread at a time.
  bool is_single_threaded() const { return td != nullptr; }
  // The protection domain, which a parent domain has below it.
  const Pd& lowest() const { return below == nullptr ? *this : *below; }
  CountedObject counted_object;
  ShownObject shown;
};

// Device memory.
struct Dm : KeptMemory {
  ibv_dm ibv = {};
  Context* context = nullptr;
  // None in an import, which may copy from memory that has ended: so the memory stays as long as the structure.
  DeviceMemory memory;
  size_t length = 0;
  Users users{0};
  Importing<Dm> importing;
};

// Hints for a NIC's DMA: the CPU whose cache the bytes are for, and how they are used. The device copies with a CPU, so
// it keeps them, and they change nothing.
struct DmaHandle : KeptMemory {
  provider::DmaHandle ibv = {};
  Users users{0};
};

// What `rdma statistic show mr` shows of an on-demand region.
class ShownPages final : public PagingWatch {
 public:
  explicit ShownPages(ShownObject& shown) : shown_(shown) {}
  void count(const PagingCounts& more) override { shown_.add_pages(more.faults, more.invalidations, more.prefetched); }

 private:
  ShownObject& shown_;
};

struct Mr : KeptMemory {
  abi::Mr abi = {};
  Pd* pd = nullptr;
  Dm* dm = nullptr;                 // the region is a part of it
  DmaHandle* dma_handle = nullptr;  // null if it was registered without one
  Importing<Mr> importing;
  MappedDmabuf dmabuf;
  std::unique_ptr<OnDemandPages> pages;  // of an on-demand region
  std::unique_ptr<GpuMemory> gpu;        // of a region in a GPU
  uint32_t published = 0;                // its ticket in the publication; 0: peers send packets only
  CountedObject counted_object;
  ShownObject shown;
  ShownPages shown_pages{shown};
};

struct Mw : KeptMemory {
  ibv_mw ibv = {};
  Pd* pd = nullptr;
  CountedObject counted_object;
};

struct Ah : KeptMemory {
  ibv_ah ibv = {};
  Pd* pd = nullptr;
  const Pd* domain = nullptr;  // the protection domain
  roce::AddressVector address;
  GidHold source;
  CountedObject counted_object;
};

// As PostsBelow. These depend on whether the queue has time stamps.
struct PollsBelow {
  decltype(ibv_cq_ex::start_poll) start_poll = nullptr;
  decltype(ibv_cq_ex::next_poll) next_poll = nullptr;
  decltype(ibv_cq_ex::end_poll) end_poll = nullptr;  // only that below the layer of --hang
};

struct Cq : KeptMemory {
  abi::Cq abi = {};
  Context* context = nullptr;
  CompletionQueue queue;
  Users users{0};
  EventCount completion_events;
  EventCount asynchronous_events;
  // Between start_poll() and end_poll().
  Mutex poll_mutex{LockRank::kPolling};
  roce::Completion current;
  CompletionStamp current_stamp;
  bool single_threaded = false;
  std::unique_ptr<StampedCompletions> stamped;  // null: the program wants no time stamps
  PollsBelow below_check, below_explain, below_hang;
  std::atomic<bool> was_polled{false};  // at least once, under --hang or --check
  OpenBatch polling;
  std::atomic<uint32_t> moderation_us{0};  // the most that an event waits for others
  // Guarded by the lock of HeldEvents.
  bool holds_event = false;
  roce::Time hold_end = 0;
  Cq* next_held = nullptr;
  Pd* pd = nullptr;  // the parent domain that it was made in; null if none
  CountedObject counted_object;
  ShownObject shown;
};

struct Srq;
struct XrcDomain;
struct XrcQp;
struct RawQp;
struct TagSrq;
struct TagQp;

// An XRC domain, as one call has opened it.
struct Xrcd : KeptMemory {
  abi::Xrcd abi = {};
  Context* context = nullptr;
  XrcDomain* domain = nullptr;
  Users users{0};
  Xrcd* next = nullptr;  // guarded by XrcTable's lock
};

// The part of a shared receive queue of an XRC domain; without a domain the queue is another one.
struct XrcQueue {
  XrcDomain* domain = nullptr;
  Xrcd* xrcd = nullptr;
  Cq* cq = nullptr;
  uint32_t number = 0;
  std::unique_ptr<roce::CompletionSink> traced;  // null without a trace
  roce::CompletionSink* completions = nullptr;   // the way to `cq`
  roce::Memory* memory = nullptr;                // of its context
  // Guarded by XrcTable's lock.
  Srq* next = nullptr;
  Srq* next_noted = nullptr;
  bool is_noted = false;
};

struct Srq : KeptMemory {
  abi::Srq abi = {};
  Context* context = nullptr;
  Pd* pd = nullptr;
  ReceiveQueue queue;
  std::unique_ptr<AnnouncedQueue> announced;  // for ThreadSanitizer, if the program has it
  Users users{0};
  EventCount events;
  XrcQueue xrc;
  // Of a queue that matches tags; null for others. Its type is known to its folder alone.
  std::unique_ptr<TagSrq, void (*)(TagSrq*)> tags{nullptr, nullptr};
  CountedObject counted_object;
  ShownObject shown;
};

// Learns what fails under dapple-run --explain and --check.
class FailureSink : public roce::EventSink {
 public:
  // The plan of faults lets this completion fail.
  virtual void completion_is_planned(uint64_t id, bool is_receive, roce::CompletionStatus status) = 0;

 protected:
  ~FailureSink() = default;
};

// Notes events until the queue pair's lock is released.
class QpEvents final : public roce::EventSink {
 public:
  void event(roce::QpEvent event, uint32_t qpn) override {
    pending_.fetch_or(1u << static_cast<unsigned>(event), std::memory_order_release);
    if (shown_ != nullptr && event <= roce::QpEvent::kAccessError) shown_->show_failure(kErrorState);
    if (explained_ != nullptr) [[unlikely]]
      explained_->event(event, qpn);
  }
  void refused(uint32_t access) override {
    if (explained_ != nullptr) explained_->refused(access);
  }
  void denied(const roce::RemoteRange& range, uint32_t rights) override {
    if (explained_ != nullptr) explained_->denied(range, rights);
  }
  void cannot_invalidate(uint32_t rkey) override {
    if (explained_ != nullptr) explained_->cannot_invalidate(rkey);
  }
  void send_fails(const roce::SendRequest& request, roce::CompletionStatus status) override {
    if (explained_ != nullptr) explained_->send_fails(request, status);
  }
  void receive_fails(const roce::ReceiveRequest& request, roce::CompletionStatus status) override {
    if (explained_ != nullptr) explained_->receive_fails(request, status);
  }
  void read_fails(const roce::SendRequest& request, roce::CompletionStatus status) override {
    if (explained_ != nullptr) explained_->read_fails(request, status);
  }
  void dropped(const roce::DroppedMessage& message) override {
    if (explained_ != nullptr) explained_->dropped(message);
  }
  // Under dapple-run --explain and --check. Before the queue pair has its engine.
  void explained_by(FailureSink* explained) { explained_ = explained; }
  // From now on no peer begins to copy for the queue pair, or counts a copy that it has begun. Writes that have begun
  // are over, unless the peer is stopped. Only the first of the requests that fail waits for that.
  void sends_fail() override {
    if (Publication* publication = std::exchange(publication_, nullptr)) publication->stop_qp(published_);
    if (shown_ != nullptr) shown_->show_failure(failed_state_);
  }
  // The row that shows the state. Before the queue pair has its engine.
  void shows_in(ShownObject& shown, uint32_t failed_state) {
    shown_ = &shown;
    failed_state_ = failed_state;
  }
  // The queue pair's ticket in the publication; null if it is not published. Under `lock`, the queue pair's.
  void shown_as(const BiasedMutex& lock, Publication* publication, uint32_t ticket) {
    assert_held(lock);
    publication_ = publication;
    published_ = ticket;
  }
  // The completion with this id fails by plan: the queue pair must go into error before its lock is released
  // (planned_queue_pair.hpp).
  void plan_error(uint64_t id, bool is_receive, roce::CompletionStatus status) {
    pending_.fetch_or(kPlannedError, std::memory_order_release);
    if (explained_ != nullptr) explained_->completion_is_planned(id, is_receive, status);
  }
  static constexpr uint32_t kPlannedError = 1u << 31;
  bool take_planned_error() {
    return (pending_.load(std::memory_order_relaxed) & kPlannedError) != 0 &&
           (pending_.fetch_and(~kPlannedError, std::memory_order_acq_rel) & kPlannedError) != 0;
  }
  // The queue pair's port must go down then.
  void plan_outage() { pending_.fetch_or(kPlannedOutage, std::memory_order_release); }
  static constexpr uint32_t kPlannedOutage = 1u << 30;
  // A shared receive queue of the queue pair's XRC domain has something to tell.
  void note_xrc() { pending_.fetch_or(kXrcNoted, std::memory_order_release); }
  static constexpr uint32_t kXrcNoted = 1u << 29;
  // The bits that are no events.
  static constexpr uint32_t kMarks = kPlannedOutage | kXrcNoted;
  // An ibv_event_type, of the queue pair, one of its completion queues, or the device.
  void plan_event(int type) { pending_.fetch_or(1u << type, std::memory_order_release); }
  bool any() const { return pending_.load(std::memory_order_relaxed) != 0; }
  uint32_t take() {
    return pending_.load(std::memory_order_relaxed) == 0 ? 0 : pending_.exchange(0, std::memory_order_acq_rel);
  }

 private:
  std::atomic<uint32_t> pending_{0};
  Publication* publication_ = nullptr;
  uint32_t published_ = 0;
  ShownObject* shown_ = nullptr;
  uint32_t failed_state_ = 0;
  FailureSink* explained_ = nullptr;
};

struct ExtendedPost;
struct Qp;
namespace check {
struct CheckedQp;
}
namespace explain {
class ExplainedQp;
}

// The way of a queue pair's packets and bytes to its peer. Guarded by the queue pair's lock.
struct QpTransport {
  Path path;               // to the peer (RC, UC)
  RingTo* ring = nullptr;  // shared-memory ring to the peer; null for UDP; holds one reference
  uint32_t row = 0;        // in the table of transports
  uint32_t published = 0;  // its ticket in the publication; 0: peers send packets only
  Pace pace;
};

// The part of the threads that make progress. Guarded by the queue pair's lock, unless a line says otherwise.
struct QpScheduling {
  std::atomic<bool> open{false};                    // packets may find it
  std::atomic<uint32_t> pins{0};                    // threads that use it without being the application
  std::atomic<roce::Time> scheduled{roce::kNever};  // when the timers look at it
  uint32_t heap_index = 0;                          // guarded by the timers' lock
  Qp* next_ready = nullptr;                         // guarded by the lock of Ready
  bool ready = false;                               // it waits for a turn to send
  bool stuck = false;                               // in its last turn it could send nothing
  bool ends = false;                                // it is neither scheduled nor made ready any more
  bool touched = false;                             // packets have changed it; guarded by the lock of receiving, too
};

// What stands between the engine and the program or its ports if a tool looks on; without one, all are null. The engine
// needs them. They are set once, and what peers_packets has seen is guarded by the queue pair's lock.
struct QpLayers {
  std::unique_ptr<AnnouncedQueue> announced_receives;  // for ThreadSanitizer, if the program has it
  std::unique_ptr<AnnouncedQueue> announced_sends;
  std::unique_ptr<check::CheckedQp> checked;  // under dapple-run --check
  // Under dapple-run --explain and --check. Shared, because its type is known to its folder alone.
  std::shared_ptr<explain::ExplainedQp> explained;
  std::unique_ptr<PeersPackets> peers_packets;  // under dapple-run --explain and --check, if it has a peer
  // Under a trace or a plan. Completions of the send queue pass through the first of each, and those of the receive
  // queue through the second.
  std::unique_ptr<roce::CompletionSink> traced_completions[2];
  std::unique_ptr<roce::CompletionSink> planned_completions[2];
};

// What ibv_modify_qp() was told and the engine does not keep. Guarded by the queue pair's lock, unless a line says
// otherwise.
struct QpAddress {
  GidHold source;  // of `vector`; guarded by `modifying`
  ibv_ah_attr vector = {};
  uint16_t pkey_index = 0;
  uint8_t port = 0;
};

struct Qp : KeptMemory {
  abi::Qp abi = {};
  Context* context = nullptr;
  Runtime* runtime = nullptr;
  DeviceTraffic* traffic = &no_device;
  Pd* pd = nullptr;
  const Pd* domain = nullptr;  // the protection domain
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;
  ReceiveQueue own_receives;
  QpEvents events;
  EventCount event_count;
  ibv_qp_init_attr init = {};
  uint32_t qpn = 0;
  std::atomic<uint32_t> multicast_groups{0};
  std::atomic<bool> was_in_group{false};

  CountedObject counted_object;
  ShownObject shown;

  Mutex modifying{LockRank::kModifying};  // calls of ibv_modify_qp() follow each other; taken before the lock
  QpLayers layers;
  std::unique_ptr<SendAllocator> send_memory;  // of a parent domain with allocators; else null. The engine needs it

  // The rest is guarded by the lock, except for the atomics.
  BiasedMutex mutex{LockRank::kQueuePair};
  std::unique_ptr<roce::QueuePair> engine;
  // The engine, if it is a reliable connection, and its ports are the memory table, the queues and nothing between
  // them. Null otherwise. Set once.
  roce::ReliableConnection* bare_connection = nullptr;
  std::unique_ptr<AttachedCounters> counters;  // null: none was ever attached
  QpTransport transport;
  QpScheduling scheduling;
  QpHeld held;
  QpAddress address;
  roce::QpCounters counted;  // the engine's counters, as far as the slot's counters have them
  // The engine's state after its last call, for threads that post receives.
  std::atomic<roce::QpState> state{roce::QpState::kReset};
  std::unique_ptr<ExtendedPost> extended;
  // Of a receiving queue pair of XRC; null for others. Its type is known to its folder alone.
  std::unique_ptr<XrcQp, void (*)(XrcQp*)> xrc{nullptr, nullptr};
  // The same of a raw packet queue pair.
  std::unique_ptr<RawQp, void (*)(RawQp*)> raw{nullptr, nullptr};
  // Of a queue pair whose shared receive queue matches tags.
  std::unique_ptr<TagQp, void (*)(TagQp*)> tags{nullptr, nullptr};
};

// libibverbs' objects begin ours.
template <typename Object, typename Ibv>
Object* ours(Ibv* ibv) {
  return reinterpret_cast<Object*>(ibv);
}

// The same; of an import, the object that it stands for.
template <typename Object, typename Ibv>
Object* original_of(Ibv* ibv) {
  Object* object = ours<Object>(ibv);
  return object->importing.original == nullptr ? object : object->importing.original;
}

}  // namespace dapple::soft
