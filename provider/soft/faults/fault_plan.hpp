// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DAPPLE_FAULTS: the calls and completions that fail by plan, such as "ibv_reg_mr@3=ENOMEM,completion@5=WR_FLUSH_ERR".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "provider/private_api/layout.hpp"
#include "provider/soft/faults/fault_points.hpp"
#include "roce/request.hpp"

namespace dapple::soft {

struct CallSite;

// The plan counts calls of these operations of libibverbs and of ibv_open_device(), and successful completions.
// clang-format off
#define DAPPLE_PLANNED_VERBS(X) \
  X(alloc_mw) X(alloc_pd) X(attach_mcast) X(bind_mw) X(create_ah) X(create_cq) X(create_cq_ex) X(create_qp) \
  X(create_qp_ex) X(create_srq) X(dealloc_mw) X(dealloc_pd) X(dereg_mr) X(destroy_ah) X(destroy_cq) \
  X(destroy_qp) X(destroy_srq) X(detach_mcast) X(modify_qp) X(modify_srq) X(poll_cq) X(post_recv) X(post_send) \
  X(post_srq_recv) X(query_device_ex) X(query_port) X(query_qp) X(query_srq) X(reg_dmabuf_mr) X(reg_mr) \
  X(req_notify_cq) X(rereg_mr) X(resize_cq)
// clang-format on
inline constexpr size_t kOpenDevice = provider::kMaxOperations;
inline constexpr size_t kCompletion = provider::kMaxOperations + 1;
inline constexpr size_t kEvent = provider::kMaxOperations + 2;  // counts successful completions, too
inline constexpr size_t kLink = provider::kMaxOperations + 3;   // the same
// Functions of librdmacm that give the kernel a command. The doors (provider/preload/doors/rdma_cm.cpp) count them.
// clang-format off
#define DAPPLE_PLANNED_COMMANDS(X) \
  X(accept) X(bind_addr) X(connect) X(create_id) X(disconnect) X(join_multicast) X(leave_multicast) X(listen) \
  X(reject) X(resolve_addr) X(resolve_route) X(set_option)
// clang-format on
enum class PlannedCommand : size_t {
  kBefore = kLink,
#define DAPPLE_COMMAND(name) name,
  DAPPLE_PLANNED_COMMANDS(DAPPLE_COMMAND)
#undef DAPPLE_COMMAND
      kCount
};

// Threads may count at the same time.
class FaultPlan {
 public:
  static constexpr size_t kMax = 64;

  // "NAME@N=RESULT": the N-th one fails; "NAME@N+=RESULT": it and all later ones. NAME is a verb, and RESULT an errno
  // by its name or number; or NAME is "completion", and RESULT a status of libibverbs without its prefix IBV_WC_; or
  // NAME is "event", and RESULT an asynchronous event without its prefix IBV_EVENT_, which comes with the completion.
  // Or NAME is "link", and RESULT a time such as "20ms": the port goes down for this time.
  // If RESULT is "SIGKILL", the process dies. "registered=BYTES" limits the memory that is registered at a time.
  // "NAME#HEX" counts only the verb's calls from the call site with this stack, or the completions with the opcode
  // HEX - 1. False if it is malformed, or if kMax are planned.
  bool add(std::string_view entry);
  // True after add() has refused a well-formed entry because kMax are planned.
  bool is_overfull() const { return is_overfull_; }
  // Plans one fault, for the next call or completion: NAME, and a number for RESULT, as above. A second fault for the
  // same name replaces the first until that has come. False if the name or the number is unknown.
  bool set_next(std::string_view name, int result);
  void clear_next();
  // The program will call set_next().
  void expect_next() { plans_calls_ = plans_completions_ = true; }
  // From now on calls and completions are noted in `points`.
  void record(FaultPoint* points) { points_ = points; }

  bool plans_calls() const { return plans_calls_ || points_ != nullptr; }
  bool plans_outages() const { return plans_outages_; }
  bool plans_completions() const { return plans_completions_ || points_ != nullptr; }

  // 0, or the errno with which this call fails.
  int next_call(size_t verb);
  // The same by its name; 0 for a function that the plan does not count.
  int next_call(std::string_view name);
  // The status that the program gets for a successful completion.
  roce::CompletionStatus next_completion(roce::CompletionOpcode opcode);
  // The event that comes with this completion, an ibv_event_type, or -1.
  int next_event() { return next(kEvent, 0) - 1; }
  // True if the port goes down with this completion, for the time that last_outage_ns() then is.
  bool next_outage();
  uint64_t last_outage_ns() const { return last_outage_us_.load(std::memory_order_relaxed) * 1000; }
  // False if this many more bytes would exceed the limit. Otherwise they count until unregister_bytes().
  bool register_bytes(uint64_t size);
  void unregister_bytes(uint64_t size) { registered_.fetch_sub(size, std::memory_order_relaxed); }

 private:
  struct Fault {
    size_t of = 0;
    uint64_t stack = 0;  // 0: any
    uint64_t number = 0;
    bool lasts = false;
    int result = 0;
  };

  int next(size_t of, uint64_t stack);
  void note(size_t verb, const CallSite& site);

  Fault faults_[kMax];
  size_t count_ = 0;
  bool plans_calls_ = false;
  bool plans_completions_ = false;
  bool plans_outages_ = false;
  bool needs_stack_ = false;
  bool is_overfull_ = false;
  uint64_t most_registered_ = UINT64_MAX;
  std::atomic<uint64_t> registered_{0};
  std::atomic<uint64_t> passed_[static_cast<size_t>(PlannedCommand::kCount)] = {};
  std::atomic<uint64_t> passed_there_[kMax] = {};  // of faults with a stack
  std::atomic<uint64_t> last_outage_us_{0};
  std::atomic<int> next_[kEvent + 1] = {};
  FaultPoint* points_ = nullptr;
};

// This process' plan; null if DAPPLE_FAULTS has none, or if DAPPLE_FAULTS_IN names another program. A malformed one is
// refused when the device is opened.
FaultPlan* fault_plan();

// dappledv_fault_next(3) and dappledv_fault_clear(3). EBUSY: fault_plan() was called before the first of these calls,
// so an open device may have operations that nobody counts.
int plan_next_fault(const char* name, int result);
int clear_next_faults();

}  // namespace dapple::soft
