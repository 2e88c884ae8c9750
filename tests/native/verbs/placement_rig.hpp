// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two processes of one host: a sender, which a test describes, and a target that obeys it. Both map the memory that the
// sender reaches, so the sender sees every byte.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "tests/native/kills/watcher.hpp"

namespace dapple::tests {

inline constexpr size_t kReached = 4 * 1024 * 1024;
inline constexpr uint32_t kRequests = 64;        // places of each queue
inline constexpr double kMomentOfPatience = 60;  // seconds

enum class Order : uint32_t {
  kReconnect,  // resets the queue pair and connects it again
  kRegister,   // the memory, again
  kRegisterReadOnly,
  kDeregister,
  kReregister,     // moves the region to other memory, or back
  kToError,        // the queue pair
  kReceive,        // posts a receive
  kReceiveAll,     // the same, of the whole memory
  kReceiveHalves,  // two, of a half each
  kFork,           // a child that stays
  kExecute,        // another program, in this process
};

struct PlacementStage {
  // The number of orders that were given and obeyed.
  std::atomic<uint32_t> given{0};
  std::atomic<uint32_t> obeyed{0};
  std::atomic<Order> order{Order::kReconnect};
  std::atomic<uint32_t> qpn[2];
  std::atomic<uint32_t> rkey{0};
  std::atomic<pid_t> target{0};
  std::atomic<pid_t> sender{0};
  std::atomic<uint64_t> address{0};
  alignas(4096) char reached[kReached];
};

extern PlacementStage* placement_stage;

// One process' end.
class PlacementEnd {
 public:
  // number: 0 for the sender, 1 for the target.
  explicit PlacementEnd(int number) : number_(number) {}
  bool open();
  bool register_memory(void* memory, size_t size, unsigned access);
  bool deregister();
  bool move_region(void* memory);
  bool connect(uint8_t timeout);
  bool post_receive(size_t size = 4096, size_t offset = 0);
  ibv_qp* qp() const { return qp_; }
  ibv_mr* mr() const { return mr_; }

  // The sender's. The bytes are at `offset` of the reached memory, and at `local` of `buffer`.
  bool post(ibv_wr_opcode opcode, size_t offset, uint32_t length, uint32_t rkey, size_t local);
  // The status of the next completion; IBV_WC_GENERAL_ERR if none comes.
  ibv_wc_status complete();
  // Both together, with the target's present key, and the same offset on both sides.
  ibv_wc_status transfer(ibv_wr_opcode opcode, size_t offset, uint32_t length);

  char* buffer = nullptr;  // kReached bytes

 private:
  const int number_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

// Gives an order to the target, without and with a wait for its end.
void give(Order order);
bool order(Order order);
// Connects both ends anew.
bool reconnect(PlacementEnd& sender);
// Transfers of all processes that went without packets.
uint64_t placed();
// With ThreadSanitizer there is no guard page, and AddressSanitizer sees each store. So one call fetches the bytes of
// one Send there.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kFetchesAhead = false;
#else
inline constexpr bool kFetchesAhead = true;
#endif
// Parts of Sends that the receivers have fetched.
uint64_t fetched();
// Of these: together with the message before.
uint64_t fetched_ahead();
// Sends until one has been fetched. False if none is.
bool await_fetch(PlacementEnd& sender);
// Writes until one has gone without packets. False if none does.
bool await_placement(PlacementEnd& sender);

struct PlacementOptions {
  const char* sender_off = nullptr;  // an environment variable that is "off" in this process
  const char* target_off = nullptr;
  uint8_t timeout = 20;
  // Called in this process first. False: the test is skipped. The target has the device before the sender is confined,
  // and the sender before a target that is confined alone.
  bool (*confine_sender)() = nullptr;
  bool (*confine_target)() = nullptr;
};

// Runs both processes. `body` is the sender's, and reports by failed().
void run_placement(const char* name, void (*body)(PlacementEnd& sender), const PlacementOptions& options = {});

}  // namespace dapple::tests
