// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The server of a job: it has one region and serves one client; the job ends when the client leaves.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "fio/exposed.hpp"
#include "fio/host.hpp"
#include "fio/messages.hpp"
#include "fio/objects.hpp"

namespace dapple::fio {

// Confined to the job's thread.
class Server {
 public:
  // Maps the job's file and listens; clients wait until work(). nullptr, after a line, if that is not possible.
  [[nodiscard]] static std::unique_ptr<Server> listen(const Job& job) noexcept;
  ~Server();
  Server(const Server&) = delete;

  // kDone: the client has left. kFailed, after a line: the client is lost or cannot be served.
  enum class Outcome { kGoOn, kDone, kFailed };
  // Serves for a short while, so that fio can end the job between two calls.
  [[nodiscard]] Outcome work() noexcept;

 private:
  enum class State { kListening, kAccepting, kServing };
  // A completion is of a slot's request or of its answer.
  enum class Step : std::uint64_t { kRequest, kAnswer };
  struct SlotState {
    bool requested = false;
    bool answering = false;
  };

  explicit Server(const Job& job) noexcept : job_(job) {}
  [[nodiscard]] bool start() noexcept;
  [[nodiscard]] bool expose() noexcept;
  [[nodiscard]] bool accept() noexcept;
  [[nodiscard]] bool take(rpma_conn_req* request) noexcept;
  [[nodiscard]] bool make_offer(Offer& offer) const noexcept;
  [[nodiscard]] bool finish_accepting() noexcept;
  [[nodiscard]] Outcome look_at_client() noexcept;
  [[nodiscard]] bool answer_flushes() noexcept;
  [[nodiscard]] bool take_completions() noexcept;
  [[nodiscard]] bool advance(std::uint64_t slot, Step step) noexcept;
  [[nodiscard]] bool answer(std::uint64_t slot) noexcept;
  static const void* context_of(std::uint64_t slot, Step step) noexcept;

  const Job job_;
  ibv_context* device_ = nullptr;
  // Destroyed in reverse order: each before the members above it.
  Peer peer_;
  Exposed exposed_;
  Mapping slots_memory_;
  Region slots_region_;
  Listener listener_;
  Connection connection_;
  rpma_cq* completions_ = nullptr;
  int completions_fd_ = -1;
  int events_ = -1;
  State state_ = State::kListening;
  // For the method with messages.
  std::array<SlotState, kMaxFlushes> slots_ = {};
};

}  // namespace dapple::fio
