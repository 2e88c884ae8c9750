// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A program's connection to dappled, which is started if none answers. When dappled dies, the next call connects to the
// next dappled (or starts it) and announces the slot and devices of this link there. The slot's socket stays the same
// and continues to receive.
//
// Internally locked. Calls block for the time of a question to a process of this host, at most for some seconds.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "provider/common/mutex.hpp"
#include "provider/member/daemon_connection.hpp"
#include "provider/protocol/cm_messages.hpp"
#include "provider/protocol/device_rows.hpp"
#include "provider/protocol/gid_use_rows.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/protocol/resource_messages.hpp"
#include "provider/protocol/transport_messages.hpp"
#include "provider/protocol/tree_messages.hpp"
#include "provider/protocol/xrc_messages.hpp"
#include "provider/system/file_inode.hpp"
#include "provider/system/owned_fd.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

struct DeviceList {
  uint32_t generation = 0;  // if it differs from the last one, something has changed
  uint32_t count = 0;
  uint32_t indexes[kMaxDevices] = {};
};

// A process' share of the QP numbers and of port 4791. The descriptors belong to the link and live as long.
struct Slot {
  uint32_t number = 0;      // slot_numbers.hpp has its QPNs
  bool dual_stack = false;  // the socket is AF_INET6 and takes IPv4 as well (::ffff:a.b.c.d); else AF_INET
  int receive_socket = -1;  // only receives: never send from it, connect it or shut it down
  int lease = -1;           // bound to the slot's name
  int bundle[kBundleDescriptors] = {-1, -1};  // keeps the sockets of all slots alive; never read
  int counters_file = -1;
  SlotCounters* counters = nullptr;      // mapped as long as the process lives
  SlotDevices* devices = nullptr;        // the same
  SlotTransports* transports = nullptr;  // the same
  SlotGidUses* gid_uses = nullptr;       // the same
  SlotResources* resources = nullptr;    // the same
};

// An rdma_cm channel of this process. The descriptors stay the caller's.
struct CmChannel {
  CmChannelName name;
  int end = -1;  // dappled's
  int journal = -1;
};

// An XRC domain of a file, as this process has it open (xrc_messages.hpp).
struct XrcHold {
  uint32_t device = 0;
  int file = -1;            // names the domain; the caller's
  FileInode inode;          // of this file
  OwnedFd memory;           // which the domain's processes share
  XrcHold* next = nullptr;  // guarded by the link's lock
};

class DaemonLink {
 public:
  enum class Start { kIfNeeded, kNever };

  // Null on failure, and `problem` has the reason.
  static std::unique_ptr<DaemonLink> open(Problem& problem, Start start = Start::kIfNeeded);
  ~DaemonLink() = default;
  DaemonLink(const DaemonLink&) = delete;
  DaemonLink& operator=(const DaemonLink&) = delete;

  bool devices(DeviceList& list, Problem& problem);
  // ENODEV if its netdev is gone.
  bool device(uint32_t index, DeviceInfo& info, Problem& problem);
  // Takes a slot at the first call; later calls return the same.
  bool slot(Slot& slot, Problem& problem);
  bool status(StatusReply& status, Problem& problem);
  // The transports of one program's connections: transport_messages.hpp.
  bool transports(uint32_t slot, uint32_t first, TransportsReply& reply, Problem& problem);
  // The verbs objects and rdma_cm ids of all programs: resource_messages.hpp.
  bool resource_counts(uint32_t device, ResourceCountsReply& reply, Problem& problem);
  bool resources(uint32_t device, ResourceKind kind, uint32_t slot, uint32_t first, ResourcesReply& reply,
                 Problem& problem);
  bool cm_ids(uint32_t device, uint64_t after, CmIdsReply& reply, Problem& problem);
  bool hw_counters(uint32_t device, HwCountersReply& reply, Problem& problem);

  // The kernel's files about the devices, in a folder of dappled's (tree_messages.hpp). Another dappled has another.
  bool tree(OwnedFd& folder, char (&path)[kTreePathSize], Problem& problem);
  // Writes the file of the tree at `path` with its present contents. ESTALE: the folder has gone, so ask for the tree
  // again. `unreadable`: the kernel's read() of this entry fails with EINVAL.
  bool refresh_tree(const char* path, bool& unreadable, Problem& problem);
  // Fills an empty folder with the contents of /sys/class/infiniband, as long as this connection lasts.
  bool export_tree(int folder, Problem& problem);
  // Keeps the tree up to date without refresh_tree(), as long as this connection lasts.
  bool watch_tree(Problem& problem);

  // A channel of rdma_cm (cm_messages.hpp). `end` is dappled's end of the pair.
  bool cm_open(int end, CmChannelName& name, OwnedFd& journal, Problem& problem);
  // 0, or the errno of the program's write(). `problem` has a line if the errno is not dappled's own answer. `again`:
  // the command was sent to a second dappled, as the first died before it answered.
  int cm_command(CmCommandRequest& request, CmCommandReply& reply, bool& again, Problem& problem);
  // After a command whose reply says that events were removed.
  void cm_resume(const CmChannelName& name);
  // Called with each new connection, with the link's lock held, before any other question: passes each channel of this
  // process to restore(), until one is lost. Set it before the first channel.
  using Reconnected = void (*)(DaemonLink& link, Problem& problem);
  void when_reconnected(Reconnected reconnected) { reconnected_ = reconnected; }
  // Only for the function Reconnected. False if the connection is lost. A channel that dappled refuses is lost: the
  // program's end reads an end of file. `loss` gets a line about a channel, or a part of it, that is lost.
  bool restore(const CmChannel& channel, Problem& problem, Problem& loss);
  // As restore(), for a channel that was opened while the connection changed. Not for the function Reconnected.
  bool restore_late(const CmChannel& channel, Problem& problem, Problem& loss);

  // Opens the domain of hold.device and hold.file, and sets hold.memory with XrcOutcome::kOpen. The link tells each new
  // dappled of the domain then, until close_xrc(). False without an answer.
  bool open_xrc(XrcHold& hold, uint32_t flags, XrcOutcome& outcome, Problem& problem);
  void close_xrc(XrcHold& hold);

  // dappled appends the packets of connection management to this file (capture_file.hpp), which stays the caller's, as
  // long as this connection lasts. capture_again() is for the function Reconnected.
  bool capture(int file, Problem& problem);
  bool capture_again(int file, Problem& problem);

  // Connects again if dappled is gone. Call it when fd() reports an event, or when look() returns kGone.
  bool check(Problem& problem);
  // Waits while another thread connects again.
  void await_reconnection() { const std::lock_guard lock(mutex_); }
  // Reads dappled's reports without waiting. kGone: check() has to connect again. kBusy: another thread asks dappled,
  // so look again soon.
  enum class State { kConnected, kGone, kBusy };
  State look();
  // To poll for the end of the connection and for changes (POLLIN or POLLHUP); changes with each connection. -1 if
  // there is none. Without the lock: it does not wait for a question that dappled does not answer.
  int fd() const { return connection_.fd(); }
  // Devices, addresses or links may have changed since take_changed() was called: dappled reported it, or no dappled
  // ran for some time. Any thread may call it, without the lock.
  bool changed() const { return connection_.changed(); }
  void note_change() { connection_.note_change(); }
  bool take_changed() { return connection_.take_changed(); }

  // In a child of fork(), by an atfork handler: closes what belongs to the parent, so that its death is noticed. The
  // link then has no slot, and connects again at its next use. prepare() and parent() hold the lock during the fork.
  void fork_prepare() { mutex_.lock(); }
  void fork_parent() { mutex_.unlock(); }
  void fork_child();

 private:
  explicit DaemonLink(Start start) : start_(start) {}

  using Answer = DaemonConnection::Answer;

  // Holds the lock for a question, which begins before the wait for the lock. If another thread finds dappled silent
  // during this wait, the question fails as well. Otherwise each thread would wait for dappled in its turn.
  class Question {
   public:
    explicit Question(DaemonLink& link);

   private:
    std::unique_lock<Mutex> lock_;
  };

  bool connected(Problem& problem);  // connects if needed
  bool replace_daemon();
  bool died_in_the_middle() const { return !connection_ && connection_.last_answer() == Answer::kGone; }
  bool identify(Problem& problem);
  bool open_profile(const char* identity, Problem& problem);
  bool choose_gids(Problem& problem);
  bool announce(Problem& problem);
  bool announce_gids(Problem& problem);
  bool announce_xrc(Problem& problem);
  void remember(const DeviceInfo& info);
  // One question, sent again to the next dappled if this one dies. `descriptors` is null if none come.
  template <class Request>
  bool ask(MessageKind kind, Request& request, const ReplyRoom& reply, Descriptors* descriptors, Problem& problem,
           std::span<const int> sent = {}, bool* again = nullptr) {
    return ask_sealed(kind, seal(request, static_cast<uint16_t>(kind)), reply, descriptors, problem, sent, again);
  }
  bool ask_sealed(MessageKind kind, std::span<const std::byte> request, const ReplyRoom& reply,
                  Descriptors* descriptors, Problem& problem, std::span<const int> sent, bool* again);
  // One question to this dappled, and only to this.
  template <class Request>
  Answer exchange(MessageKind kind, Request& request, const ReplyRoom& reply, Problem& problem,
                  std::span<const int> sent = {}) {
    assert_held(mutex_);
    return connection_.exchange(kind, seal(request, static_cast<uint16_t>(kind)), sent, reply, nullptr, problem);
  }

  Mutex mutex_{LockRank::kDaemonLink};
  Start start_;
  uint64_t asked_ = 0;           // when the present question began
  bool cannot_replace_ = false;  // it has failed
  DaemonConnection connection_;
  bool has_slot_ = false;
  Slot slot_;
  OwnedFd slot_fds_[kSlotDescriptors];
  uint32_t known_count_ = 0;
  AnnouncedDevice known_[kMaxDevices];                            // devices that callers have seen
  std::unique_ptr<AnnounceGidsRequest> known_gids_[kMaxDevices];  // of the same devices; null without memory
  Reconnected reconnected_ = nullptr;
  XrcHold* xrc_ = nullptr;
  OwnedFd profile_;  // the file that DAPPLE_AS names; open from the first connection on
  OwnedFd gids_;     // the file of DAPPLE_GIDS; open from the first connection on
};

}  // namespace dapple::soft
