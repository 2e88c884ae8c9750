// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What a queue pair knew when a request or a receive of it failed. The program polls the completion later, maybe after
// the queue pair is gone.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "provider/common/mutex.hpp"
#include "provider/soft/explain/kept_until_taken.hpp"
#include "provider/soft/transport/context.hpp"
#include "roce/core/queue_pair.hpp"
#include "roce/host/request.hpp"

namespace dapple::soft::explain {

// A clause, and a sentence.
struct Reason {
  std::string text;
  std::string remedy;
};

struct Failure {
  Context* context = nullptr;
  uint32_t qpn = 0;
  ibv_qp_type type = IBV_QPT_RC;
  uint64_t id = 0;
  roce::CompletionStatus status = roce::CompletionStatus::kSuccess;
  // Of a send request.
  roce::SendOpcode opcode = roce::SendOpcode::kSend;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  uint64_t length = 0;  // or the room of a receive
  Reason detail;        // the obstacle, if it was in this process; empty if it is not known
  bool is_planned = false;
  bool is_told = false;  // dapple-run --check had reported the reason by then
  roce::QpAttributes attributes;
  uint8_t own[16] = {};   // the GID of this end
  uint8_t peer[16] = {};  // and of the other one
  uint8_t hop_limit = 0;  // of this end's packets
  bool same_host = false;
  PeersPackets packets;
};

// Internally locked; the lock is a leaf.
class Failures {
 public:
  // Lives as long as the process.
  static Failures& get();

  void keep(const Failure& failure, bool is_receive);
  // The reason why this queue pair refuses a request of the queue pair `peer`, which may be in this process.
  void keep_refusal(uint32_t qpn, uint32_t peer, const Reason& reason);
  // Then it is forgotten. Empty if there is none.
  Reason take_refusal(uint32_t qpn, uint32_t peer);
  // The failure of this request, or receive; then it is forgotten.
  std::optional<Failure> take(uint32_t qpn, bool is_receive, uint64_t id, roce::CompletionStatus status);

  Mutex& mutex() { return mutex_; }

 private:
  // A program may never poll.
  static constexpr size_t kMax = 4096;

  using Key = std::tuple<uint32_t, bool, uint64_t>;  // the queue pair, whether it is a receive, and its id

  Mutex mutex_{LockRank::kFailures};
  KeptUntilTaken<Key, Failure> failures_{kMax};
  KeptUntilTaken<std::pair<uint32_t, uint32_t>, Reason> refusals_{kMax};  // of each queue pair and its peer
};

}  // namespace dapple::soft::explain
