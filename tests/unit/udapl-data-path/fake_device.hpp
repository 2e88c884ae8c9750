// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A fake libibverbs and a fake librdmacm, with one device, beneath the core of uDAPL. A queue pair connects to nobody
// and completes posted requests: at once, or when the test orders it. So the data path runs without a device, at the
// speed of this machine, and in situations that no device makes on demand. Posting, arming and taking a notification
// are cancellation points, as they are when they are system calls.
//
// Threads: internally locked, as libibverbs is.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/cno.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/memory/pz.hpp"

namespace fake_device {

struct State {
  std::atomic<bool> holds = false;          // posted requests complete only when complete() is called
  std::atomic<bool> removed = false;        // see remove()
  std::atomic<bool> cancels_taker = false;  // the next thread that takes a notification is cancelled
  std::atomic<uint32_t> overflows = 0;      // completions that a CQ had no room for
  std::atomic<uint32_t> unsignalled = 0;    // requests that asked for no completion
  std::atomic<uint32_t> inlined = 0;        // requests with inline data
  std::atomic<int> channels = 0;            // completion channels that are open
  std::atomic<size_t> most_entries = 0;     // of any CQ, at any time
  std::atomic<bool> cannot_resize = false;  // a CQ or an SRQ keeps its size
  std::atomic<bool> cannot_limit = false;   // an SRQ keeps its limit
  std::atomic<bool> deaf = false;           // arming a CQ has no effect
  std::atomic<int> max_sge_rd = 0;          // of its attributes; max_sge is 16
  std::atomic<int> refuses = 0;             // the errno value with which posts are refused
  std::atomic<int> max_regions = 1 << 20;   // of its attributes, and enforced
  std::atomic<int> refuses_region = 0;      // the errno value for a region beyond those
  std::atomic<int> regions = 0;             // that are registered
  std::atomic<bool> never_flushes = false;  // requests stay on a queue pair that enters the error state
  std::atomic<bool> misses_late = false;  // receives posted in that state stay until the queue pair is put there again
  std::atomic<bool> keeps_queue_pairs = false;  // a queue pair cannot be destroyed
  std::atomic<bool> cleans_cqs = false;         // a queue pair takes its completions along when it is destroyed
  std::atomic<bool> unanswered = false;         // attempts to connect get no answer
  std::function<void()> in_post;                // called inside ibv_post_send, after the device has handled the request
  std::function<void()> in_disconnect;          // called once, inside the next rdma_disconnect
  std::function<void()> after_poll;             // called once, inside the next ibv_poll_cq that finds nothing
  std::function<void()> before_arming;          // called once, inside the next ibv_req_notify_cq
  uint32_t vendor_id = 0;
  ibv_transport_type transport = IBV_TRANSPORT_IB;
};

extern State state;

// Resets the device between tests. No IA may be open.
void reset();
// Completes the requests that the queue pair holds, with success.
void complete(uint32_t qp_num);
// The same with another status.
void fail(uint32_t qp_num, ibv_wc_status status);
// A failed completion that belongs to no request, on the CQ of the queue pair's requests.
void complete_nothing(uint32_t qp_num);
// The device reports that the SRQ has come below its limit, if it has one.
void reach_limit(const dapple::udapl::Srq& srq);
// The peer accepts the last attempt to connect that had no answer.
void answer();
// Connects an UNCONNECTED EP, and takes the event. begin_connect() does not wait.
void begin_connect(dapple::udapl::Ep& ep);
void connect(dapple::udapl::Ep& ep);
// The device is removed: arming a CQ has no effect, and every completion channel hangs up.
void remove();

inline constexpr int kLiveTable = 0;
inline constexpr int kDeadTable = 0;

// An open IA. The destructor closes it abruptly.
class Ia {
 public:
  explicit Ia(bool thread_safe);
  ~Ia();
  Ia(const Ia&) = delete;
  Ia& operator=(const Ia&) = delete;
  dapple::udapl::Ia& get() { return *ia_; }
  dapple::udapl::Pz& pz() { return *pz_; }
  dapple::udapl::Evd& evd(uint32_t qlen, uint32_t streams = dapple::udapl::kEvdDto);
  dapple::udapl::Cno& cno();
  // A connected EP. Null EVDs are replaced by new ones for all three streams.
  dapple::udapl::Ep& connected_ep(const dapple::udapl::EpEvds& evds, const dapple::udapl::EpAttr& attr,
                                  dapple::udapl::Srq* srq = nullptr);
  dapple::udapl::Lmr& lmr(void* memory, uint64_t length);

 private:
  dapple::udapl::Ia* ia_;
  dapple::udapl::Pz* pz_;
};

}  // namespace fake_device
