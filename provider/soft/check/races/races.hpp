// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Races between programs at the memory of this one, by happens-before. The program's clock is the set of
// requests that it knows to be complete, of its own queue pairs and of others'. It grows with each completion that the
// program polls: by the request itself, by what the sender of a message knew at its post, and by what the target of a
// Read or an atomic knew. A program also learns from a Write or an atomic of another program that has arrived: it may
// look at its memory. An order that is not certain counts as known, so that no correct program is reported. Programs of
// other hosts tell of their requests by marks.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "provider/common/clock.hpp"
#include "provider/common/cm_event_notes.hpp"
#include "provider/common/mutex.hpp"
#include "provider/soft/check/races/access_history.hpp"
#include "provider/soft/check/races/changed_words.hpp"
#include "provider/soft/check/races/known_requests.hpp"
#include "provider/soft/check/races/mark.hpp"
#include "provider/soft/check/races/mark_hosts.hpp"
#include "provider/soft/check/races/peer_marks.hpp"
#include "provider/soft/check/races/told_requests.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

// Internally locked; the lock is a leaf. Threads of the program count as one.
class Races {
 public:
  // Bytes of this process.
  struct Range {
    uintptr_t begin = 0, end = 0;
  };
  struct Post {
    uint64_t id = 0;
    roce::SendOpcode opcode{};
    bool is_signaled = false;
    bool is_told = false;  // it has PSNs, and a peer that finds them
    uint32_t first_psn = 0;
    uint32_t packets = 0;
  };
  // A packet of a peer.
  struct Arrival {
    uint32_t qpn = 0;   // that it reaches
    uint32_t peer = 0;  // 0: unknown
    uint32_t psn = 0;
  };
  struct Program {
    int process = 0;                                  // 0: unknown
    std::optional<std::array<uint8_t, 16>> gid = {};  // on another host
  };
  struct Found {
    AccessHistory::Race race;
    NotedAccess access;
    Program programs[2];          // of the earlier access and of this one
    std::optional<Stack> posted;  // the earlier access, if it is the program's own
  };
  // A race of an own request at the memory of a peer, which reports it, too.
  struct Told {
    roce::SendOpcode opcode{};
    Stack posted;
    Program target;  // the peer
    uint32_t other_qpn = 0;
    int other_process = 0;
  };

  // While one exists, the posts of this thread come from there.
  class Posting {
   public:
    explicit Posting(const Stack& stack) : stack_(stack) { posting_ = &stack_; }
    ~Posting() { posting_ = nullptr; }
    Posting(const Posting&) = delete;
    Posting& operator=(const Posting&) = delete;

   private:
    const Stack stack_;
  };

  // This program's slot, and its file of counters, which stays open. `identity`: of its network namespace, if it is not
  // the system's.
  void open(int file, uint32_t slot, uint64_t identity = 0);
  // In a child of fork(), with the lock.
  void close() {
    assert_held(mutex_);
    told_.close();
  }
  // The program names a queue pair as a peer.
  void meet(uint32_t peer);

  // The order in which the program polls the receives of a queue pair. Those of XRC complete into several queues.
  enum class PollOrder : uint8_t { kOfMessages, kAny };
  // The queue pair is connected to the peer. Programs connect when they agree, in a way that nobody sees, so all
  // requests until now count as known.
  void connect(uint32_t qpn, uint32_t peer, PollOrder polls = PollOrder::kOfMessages);
  // The packets of the queue pair go there.
  void locate(uint32_t qpn, const Route& route);
  // The queue pair drops its requests, or ends. Those of its peer reach nothing any more.
  void end(uint32_t qpn);

  // The program has posted a request. `memory`: its bytes in this process. If it has got an event of librdmacm since
  // its last post, such as the end of a connection, all requests until now count as known.
  void post(uint32_t qpn, const Post& post, std::span<const Range> memory);
  // The device has the completion of a send request, or of a receive that the packet has used. The first one returns
  // the races that the peer has told of.
  std::vector<Told> sent(uint32_t qpn, uint64_t id, bool is_good);
  void received(const Arrival& arrival, uint64_t id);
  // The program has got the completion.
  void polled(uint32_t qpn, bool is_receive, uint64_t id);

  // A peer's request is going to access this memory. `access` has the kind, the opcode and the key.
  std::optional<Found> access(const Arrival& arrival, const Range& range, const NotedAccess& access);
  // The peer's Read or atomic has found a value there.
  void answer(const Arrival& arrival, const Range& range, NotedAccess::Kind kind);
  // A peer's message has filled the memory of a receive that was posted then.
  std::optional<Found> fill(const Arrival& arrival, const Range& range, uint64_t posted);

  // The program has registered the memory, or given it up.
  void forget(const Range& range);

  // The rest is about a queue pair whose peer is on another host.

  // The question to QP 1 of the peer's host that is to be sent now, if one is due.
  std::optional<MarkQuestion> question(uint32_t qpn, uint64_t now);
  // When to call it again; roce::kNever: not.
  uint64_t question_time(uint32_t qpn);
  void answered(uint32_t qpn, const MarkAnswer& answer);
  // Tells whether the peer takes marks.
  bool gives_marks(uint32_t qpn);
  // The mark to send ahead of a packet of a request; ahead of a packet with the result of a Read or an atomic, which
  // has this check; ahead of a response. None if there is nothing to tell.
  std::optional<Mark> mark_of_request(uint32_t qpn, uint32_t psn);
  std::optional<Mark> mark_of_result(uint32_t qpn, uint32_t psn, bool is_atomic, uint32_t check);
  std::optional<Mark> mark_of_race(uint32_t qpn);
  // The peer has sent it.
  void take(uint32_t qpn, const Mark& mark);
  // A packet of the peer begins a request, or has a part of the result of an own request.
  void begin_request(const Arrival& arrival) {
    const std::lock_guard lock(mutex_);
    (void)told(arrival);
  }
  void note_result(uint32_t qpn, uint32_t psn, uint32_t check);

  Mutex& mutex() { return mutex_; }

  // If there are more, the oldest are forgotten.
  static constexpr size_t kMaxRequests = 4096;
  static constexpr size_t kMaxCompletions = 512;
  static constexpr size_t kMaxStacks = 64;  // of each queue pair

 private:
  // A stamp is now_ns() at the post, which the programs of a host can compare.
  struct Request : Post {
    uint64_t stamp = 0;
  };
  struct PostedAt {
    uint64_t stamp = 0;
    roce::SendOpcode opcode{};
    Stack stack;
  };
  // What the program learns when it polls a completion.
  struct Lesson {
    uint64_t id = 0;
    QueuePairName name = 0;  // 0: no request
    uint64_t stamp = 0;
    KnownRequests known;
  };
  struct QueuePair {
    Connection connection;
    uint32_t netdev_index = 0;
    PollOrder polls = PollOrder::kOfMessages;
    uint64_t last_stamp = 0;
    std::deque<Request> requests;  // that the device has not completed
    std::deque<Lesson> sent, received;
    std::deque<PostedAt> stacks;  // of the last posts
    uint32_t told_races = 0;
    ToldRequest last_told;              // the last request of the peer; a stamp of 0: none
    PeerMarks marks;                    // of a peer on another host
    bool has_asked_again = false;       // its host, because the answer was another one's
    std::deque<RaceRow> races_to_tell;  // to such a peer

    Route route() const { return {connection.addresses, netdev_index}; }
    const PostedAt* find_post(uint64_t stamp) const;  // null: forgotten
    // Asserts the conditions that hold between two calls.
    void assert_consistent() const;
  };

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  void leave(const Route& route);
  uint64_t host_of_peer(const QueuePair& queue_pair) const;
  QueuePairName name_of_peer(const QueuePair& queue_pair) const {
    return name_of(host_of_peer(queue_pair), queue_pair.connection.peer);
  }
  Program program_of_peer(const QueuePair& queue_pair) const;
  Program program_of(const NotedAccess& access) const;
  Mark make_mark(Mark::Kind kind, uint64_t stamp) const;
  std::vector<Told> told_races(QueuePair& queue_pair);
  // To the program of the first one.
  void tell_race(const NotedAccess& one, const NotedAccess& other);
  const ToldRequest* told(const Arrival& arrival);
  std::optional<Found> add(const Arrival& arrival, const Range& range, NotedAccess access, uint64_t posted);
  void learn(const Lesson& lesson);
  void see(QueuePairName name, uint64_t stamp, const KnownRequests& known);
  bool is_own(uint32_t qpn, uint32_t peer) const;
  void assume_all();
  bool got_cm_event();

  static inline thread_local constinit const Stack* posting_ = nullptr;

  Mutex mutex_{LockRank::kRaces};
  const provider::CmEventNotes* cm_notes_ = nullptr;  // null: none are made
  uint64_t cm_events_ = 0;                            // at the last post
  ToldRequests told_;
  uint64_t host_ = kThisHost;  // the number of this one in marks; kThisHost: it gives and takes none
  // How long this host had been suspended before open(), at least: CLOCK_MONOTONIC stands still then.
  uint64_t slept_before_ = 0;
  MarkHosts hosts_;
  std::map<uint32_t, QueuePair> queue_pairs_;
  KnownRequests polled_;  // by completions
  KnownRequests seen_;    // by arrived Writes and atomics, too
  uint64_t version_ = 1;  // of seen_
  AccessHistory history_;
  ChangedWords words_;
};

}  // namespace dapple::soft::check
