// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A queue pair and its host, which is the provider in production.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "roce/core/queue_pair.hpp"
#include "tests/sim/network.hpp"
#include "tests/sim/receives.hpp"
#include "tests/sim/stream.hpp"
#include "tests/sim/tally.hpp"
#include "tests/sim/xrc_domain.hpp"

namespace dapple::sim {

// The memory of a party's node that its peer accesses.
struct Target {
  static constexpr uint32_t kWriteSize = 16 * 1024;
  static constexpr uint32_t kReadSize = 16 * 1024;
  static constexpr uint32_t kAtomics = 64;
  static constexpr uint32_t kSize = kWriteSize + kReadSize + kAtomics * 8;

  uint64_t address = 0;
  uint32_t key = 0;            // stays valid
  uint32_t revocable_key = 0;  // becomes invalid in some runs
  uint32_t read_only_key = 0;
  uint32_t foreign_key = 0;      // in another protection domain
  uint32_t window = 0;           // a memory window's key; 0 while the peer must not use it
  uint32_t other_key = 0;        // XRC: of the other protection domain that queues have
  uint32_t window_slot = 0;      // the key that it has or had; 0 while it is being bound
  bool window_is_bound = false;  // and not known to be invalidated
};

struct Node {
  uint32_t number = 0;
  std::unique_ptr<SimMemory> memory;
  std::unique_ptr<Receives> shared_receives;
  uint32_t local_key = 0;  // the key of all of its memory
  uint32_t revocable_local_key = 0;
};

class Party final : public roce::EventSink, public roce::PacketSink, public roce::ReceiveSource {
 public:
  Party(Referee& referee, Random& random, Network& network, Node& node, const roce::QpConfig& config);

  // The attributes for all transitions up to RTS.
  roce::QpAttributes attributes;
  Party* peer = nullptr;  // null on UD
  Target target;
  uint32_t life = 0;
  uint32_t sink_room = 0;  // packets that the wire takes at once; 0: any number
  roce::Time expiry_delay = 0;
  Statuses receive_excuses = 0;
  bool drained = false;  // and not resumed
  bool resume_is_planned = false;
  XrcDomain* domain = nullptr;  // of the receiving end of XRC
  uint32_t late = 0;            // in a thousand: questions to the owner of a queue that stay without an answer
  // For receivers of datagrams.
  std::vector<std::unique_ptr<Party>>* parties = nullptr;

  // observed: with an observer.
  bool create(Receives& receives, bool observed);
  void begin_stream(Statuses excuses);
  bool move(roce::QpState to);

  Node& node() { return node_; }
  const roce::QpConfig& config() const { return config_; }
  roce::QueuePair& qp() { return *qp_; }
  Stream& stream() { return *stream_; }
  // Of XRC, those of the queue that was selected last.
  Receives& receives() { return *receives_; }
  const XrcQueue* selected() const { return selected_; }
  bool is_receiver_of_xrc() const { return config_.type == roce::QpType::kXrcReceive; }
  // Its counters agree with the packets. At the end of a run.
  void check_counters() const;

  // Posts a request. A plain Send goes at once now and then.
  roce::PostError post(const roce::SendRequest& request);
  // Called after each call of the queue pair: sends its packets, and checks its state. True if it has more to send.
  bool pump();
  // The time at which expire() is called. The host may be late.
  roce::Time expiry();
  void expire();
  void arrived(const Flight& flight);

  void event(roce::QpEvent event, uint32_t qpn) override;
  std::byte* reserve(size_t size) override;
  void commit(const roce::AddressVector* to) override;
  bool take_along(const roce::Acknowledgement& acknowledgement);
  bool take(roce::ReceiveRequest& request) override;
  bool select(uint32_t srq, uint32_t& domain) override;

 private:
  class Sends final : public roce::CompletionSink {
   public:
    explicit Sends(Party& party) : party_(party) {}
    bool complete(const roce::Completion& completion) override {
      party_.send_completed(completion);
      return true;
    }

   private:
    Party& party_;
  };
  // A clock whose rough time lags behind the exact time by a random error of up to kRoughError.
  class Watch final : public roce::Clock {
   public:
    explicit Watch(Party& party) : party_(party) {}
    roce::Time exact() override { return party_.referee_.now; }
    roce::Time rough() override { return exact() - std::min(exact(), party_.random_.below(roce::kRoughError + 1)); }

   private:
    Party& party_;
  };
  class Received final : public roce::CompletionSink {
   public:
    explicit Received(Party& party) : party_(party) {}
    bool complete(const roce::Completion& completion) override {
      party_.receive_completed(completion);
      return true;
    }

   private:
    Party& party_;
  };

  void send_completed(const roce::Completion& completion);
  void receive_completed(const roce::Completion& completion);
  void receive_succeeded(const roce::Completion& completion, const roce::ReceiveRequest& request);
  void check_state();
  void open_sink();
  bool receive_at_once(const Flight& flight);
  void receive_failed(const roce::Completion& completion, const roce::ReceiveRequest& request);

  std::optional<roce::Acknowledgement> along_;  // of the next packet
  static constexpr uint32_t kNoPsn = UINT32_MAX;

  Referee& referee_;
  Random& random_;
  Network& network_;
  Node& node_;
  roce::QpConfig config_;
  Sends sends_{*this};
  Received received_{*this};
  Watch watch_{*this};
  Receives* receives_ = nullptr;
  XrcQueue* selected_ = nullptr;
  Tally tally_{referee_, config_.qpn};
  bool is_observed_ = false;
  std::unique_ptr<roce::QueuePair> qp_;
  std::unique_ptr<Stream> stream_;

  std::vector<std::byte> packet_;
  uint32_t nak_psn_ = kNoPsn;  // of a sequence error that was reported and not repaired yet
  uint32_t taken_ = 0;         // the number of receives that the queue pair has
  size_t room_left_ = 0;
  bool was_refused_ = false;
  bool reported_error_ = false;  // the NAK has left
  roce::Time seen_deadline_ = roce::kNever;
  roce::Time expiry_ = roce::kNever;
};

// A UD receive has this header before the message.
std::vector<std::byte> grh_between(uint32_t from, uint32_t to);

}  // namespace dapple::sim
