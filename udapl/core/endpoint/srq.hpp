// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Shared receive queue. Its receives complete in any order and on any of its EPs, so the records of its requests are a
// pool, and a completion finds its EP by the number of the queue pair.
//
// Threads: internally locked on any IA. Life cycle, query and resize under the control mutex.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/lock.hpp"
#include "udapl/core/memory/pz.hpp"
#include "udapl/core/object.hpp"
#include "udapl/core/queue/work_request_ring.hpp"

namespace dapple::udapl {

class Ep;

struct SrqAttr {
  uint32_t max_recv_dtos = 0;
  uint32_t max_recv_iov = 0;
  uint32_t low_watermark = 0;
};

struct SrqCounts {
  uint32_t available;    // receives on the queue
  uint32_t outstanding;  // those on the queue, and those whose completions the consumer has not dequeued
};

// DAT_SRQ_ASYNC_ERROR_REASON.
enum class SrqReason : uint8_t { kTransferToError = 0, kLowWatermark = 2 };

class Srq : public Object {
 public:
  static constexpr Kind kKind = Kind::kSrq;

  static Result<Srq*> create(Ia& ia, Pz& pz, const SrqAttr& attr);
  // INVALID_STATE while an EP uses it. Drops the receives that are still on it.
  static Result<> free(Srq& srq);

  Pz& pz() const { return *pz_; }
  ibv_srq* verbs_srq() const { return srq_.get(); }
  const SrqAttr& attr() const { return attr_; }
  bool failed() const { return failed_; }
  SrqCounts count();
  // INVALID_STATE for less than is outstanding or for less than the watermark. Throws std::bad_alloc.
  Result<> resize(uint32_t max_recv_dtos);
  // Asks for one event when the queue has fewer receives than this, which may be at once. 0 asks for none.
  Result<> set_low_watermark(uint32_t low_watermark);

  Result<> post_recv(std::span<const ibv_sge> segments, uint64_t cookie);

  // The EP of a queue pair. It is found from its creation until its completions are forgotten. Throws std::bad_alloc.
  void add(uint32_t qp_num, Ep& ep);
  void remove(uint32_t qp_num);

  // The EVD calls these. The first: a completion is taken off the CQ; the result is its EP. The second: the completion
  // is delivered or dropped.
  void completed(WorkRequest& request, uint32_t qp_num, bool succeeded);
  void delivered(const WorkRequest& request);
  // Called instead, if the consumer will not see the completion and may have freed the memory.
  void dropped(const WorkRequest& request);

  // From the connection manager's thread.
  void on_device_event(ibv_event_type type);

 private:
  friend class Arena<Srq>;

  struct Slot {
    WorkRequest request{};      // must be first: it is found by its address
    std::vector<ibv_sge> kept;  // on a device that is not coherent: the segments to maintain at delivery
    Slot* next_free = nullptr;
  };

  Srq(Ia& ia, Pz& pz, verbs::Srq srq, const SrqAttr& attr);
  void grow(uint32_t slots);
  // Has the device report once that fewer receives are on the queue. Returns an errno value.
  int modify_limit(uint32_t receives);
  void report_low_watermark();

  const UseOf<Pz> pz_;
  SrqAttr attr_;
  uint32_t device_length_;  // of the device's queue, in receives; not every device can shrink a queue
  verbs::Srq srq_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> watches_ = false;         // the device watches for the low watermark, and nothing has been reported
  std::atomic<bool> dropped_report_ = false;  // a report came while nothing watched; see set_low_watermark()

  SmallMutex mutex_;
  std::deque<Slot> slots_;  // a container that never moves its elements
  Slot* free_ = nullptr;
  uint32_t outstanding_ = 0;
  uint32_t available_ = 0;
  std::unordered_map<uint32_t, Ep*> eps_;
};

}  // namespace dapple::udapl
