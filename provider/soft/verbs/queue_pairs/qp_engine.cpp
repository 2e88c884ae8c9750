// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/verbs/queue_pairs/qp_engine.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <memory>
#include <new>
#include <utility>

#include "provider/network/port_mtu.hpp"
#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/explain/requests/explained_qp.hpp"
#include "provider/soft/faults/faults.hpp"
#include "provider/soft/faults/weak_order.hpp"
#include "provider/soft/planned/planned_completions.hpp"
#include "provider/soft/planned/planned_queue_pair.hpp"
#include "provider/soft/raw/raw_objects.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"
#include "provider/soft/trace/program_trace.hpp"
#include "provider/soft/trace/traced_completions.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/weak_order/weak_queue_pair.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"

namespace dapple::soft::verbs {
namespace {

static_assert(static_cast<int>(roce::QpType::kRc) == IBV_QPT_RC);
static_assert(static_cast<int>(roce::QpType::kUc) == IBV_QPT_UC);
static_assert(static_cast<int>(roce::QpType::kUd) == IBV_QPT_UD);
static_assert(static_cast<int>(roce::QpType::kRawPacket) == IBV_QPT_RAW_PACKET);
static_assert(static_cast<int>(roce::QpType::kXrcSend) == IBV_QPT_XRC_SEND);
static_assert(static_cast<int>(roce::QpType::kXrcReceive) == IBV_QPT_XRC_RECV);

// The way of completions from the engine to a queue, through a trace or a plan of faults if the environment asks for
// one. Null: no memory.
roce::CompletionSink* completion_sink(Qp& qp, Cq& cq, size_t number) {
  // The shared receive queues of XRC have traces of their own.
  roce::CompletionSink* next =
      number == 1 && qp.xrc != nullptr ? &qp.xrc->receives : traced_way(cq, qp.layers.traced_completions[number]);
  if (FaultPlan* plan = fault_plan(); next != nullptr && plan != nullptr && plan->plans_completions()) {
    qp.layers.planned_completions[number].reset(new (std::nothrow) PlannedCompletions(*plan, *next, qp.events));
    next = qp.layers.planned_completions[number].get();
  }
  return next;
}

// Each queue pair of the process has a sequence of its own.
uint64_t next_weak_seed() {
  static constinit std::atomic<uint64_t> made{0};
  return program_faults().seed + (made.fetch_add(1, std::memory_order_relaxed) << 32);
}

// The engine. Null: no memory.
std::unique_ptr<roce::QueuePair> create_engine(const roce::QpConfig& config, roce::Memory& memory,
                                               roce::CompletionSink& sent, roce::CompletionSink& received,
                                               roce::ReceiveSource& receives, roce::EventSink& events, Qp& qp) {
  RawQp* raw = qp.raw.get();
  const auto make = [&](roce::Memory& seen) {
    std::unique_ptr<roce::QueuePair> engine = roce::QueuePair::create(config, seen, sent, received, receives, events);
    return qp.tags == nullptr ? std::move(engine) : qp.tags->around(std::move(engine), config.max_message);
  };
  if (config.type == roce::QpType::kRawPacket) {
    Pacer* pacer = raw == nullptr ? nullptr : &raw->pacer;
    return RawQueuePair::create(config, memory, sent, received, receives, events, raw, pacer);
  }
  if (!has_weak_order()) return make(memory);
  const uint64_t seed = next_weak_seed();
  std::unique_ptr<WeakMemory> weak = WeakMemory::create(memory, ~seed);
  if (weak == nullptr) return nullptr;
  std::unique_ptr<roce::QueuePair> engine = make(*weak);
  if (engine == nullptr) return nullptr;
  return std::unique_ptr<roce::QueuePair>(new (std::nothrow) WeakQueuePair(std::move(engine), std::move(weak), seed));
}

roce::ReceiveSource& receives_of(Qp& qp) {
  if (qp.xrc != nullptr) return qp.xrc->receives;
  return qp.srq != nullptr ? qp.srq->queue : qp.own_receives;
}

// The send queue of a queue pair is the device's own: for the requests of rendezvous.
bool has_own_requests(const Qp& qp) {
  return qp.srq != nullptr && qp.srq->tags != nullptr && reads_by_itself(qp.init.cap);
}

// A queue pair of XRC takes receives of any shared receive queue.
uint32_t max_receive_segments_of(const Qp& qp) {
  if (qp.xrc != nullptr) return roce::kMaxSegments;
  // One segment stands for the header.
  if (qp.srq != nullptr && qp.srq->tags != nullptr) return std::max(qp.srq->queue.max_segments(), kMaxTagSegments + 1);
  return qp.srq != nullptr ? qp.srq->queue.max_segments() : qp.own_receives.max_segments();
}

}  // namespace

roce::CompletionSink* traced_way(Cq& cq, std::unique_ptr<roce::CompletionSink>& traced) {
  roce::CompletionSink* next = cq.stamped != nullptr ? static_cast<roce::CompletionSink*>(cq.stamped.get()) : &cq.queue;
  if (Trace* trace = program_trace(); trace != nullptr) {
    traced.reset(new (std::nothrow) TracedCompletions(*trace, cq, *next));
    next = traced.get();
  }
  return next;
}

bool make_engine(Qp& qp, uint32_t netdev_mtu) {
  assert(qp.engine == nullptr && qp.bare_connection == nullptr);
  if (qp.pd->allocator.alloc != nullptr) {
    qp.send_memory.reset(new (std::nothrow) SendAllocator(qp.pd->allocator));
    if (qp.send_memory == nullptr) return false;
  }
  const ibv_qp_cap& cap = qp.init.cap;
  const DeviceAttributes& limits = qp.context->attributes();
  const bool has_own = has_own_requests(qp);
  const roce::QpConfig config = {
      .qpn = qp.qpn,
      .type = static_cast<roce::QpType>(qp.init.qp_type),
      .domain = qp.pd->number,
      .receive_domain = qp.srq == nullptr ? qp.pd->number : qp.srq->pd->number,
      .send_depth = has_own ? kMaxRendezvous * kRequestsOfRendezvous : cap.max_send_wr,
      .max_send_segments = has_own ? kMaxTagSegments : cap.max_send_sge,
      .max_inline = has_own ? uint32_t{kRendezvousHeaderSize} : cap.max_inline_data,
      .max_receive_segments = max_receive_segments_of(qp),
      .signal_all = qp.init.sq_sig_all != 0,
      .shared_receives = qp.srq != nullptr || qp.xrc != nullptr,
      .datagram_mtu = roce_mtu_bytes(netdev_mtu),
      .max_message = limits.max_msg_sz,
      .refuses_too_long = limits.too_long == kTooLongRefused,
      .has_atomics = limits.atomics != kAtomicsNone,
      .has_flush = (limits.features & kFeatureFlush) != 0,
      .send_memory = qp.send_memory.get(),
  };
  roce::ReceiveSource* receives = &receives_of(qp);
  roce::CompletionSink* sent = completion_sink(qp, *qp.send_cq, 0);
  roce::CompletionSink* received = completion_sink(qp, *qp.recv_cq, 1);
  if (sent != nullptr && received != nullptr) {
    roce::Memory* memory = qp.xrc != nullptr ? &qp.xrc->memory : &qp.context->seen_memory();
    roce::EventSink* events = &qp.events;
    qp.events.shows_in(qp.shown, roce::is_reliable(config.type) ? IBV_QPS_ERR : IBV_QPS_SQE);
    explain::explain_qp(qp);
    if (check::Checker* checker = check::Checker::get(); checker != nullptr) {
      qp.layers.checked = std::make_unique<check::CheckedQp>(*checker, qp, *memory, *sent, *received, *events);
      memory = &qp.layers.checked->memory;
      sent = &qp.layers.checked->sent;
      received = &qp.layers.checked->received;
      events = &qp.layers.checked->events;
    }
    if (qp.srq != nullptr && qp.srq->tags != nullptr) {
      qp.tags = make_tag_qp(qp, *memory, *received, *events);
      if (qp.tags == nullptr) return false;
      memory = &qp.tags->memory;
      events = &qp.tags->events;
      received = &qp.tags->receives;
      receives = &qp.tags->receives;
      if (has_own) sent = &qp.tags->rendezvous;
    }
    qp.engine = create_engine(config, *memory, *sent, *received, *receives, *events, qp);
    const bool is_bare = memory == &qp.context->memory && sent == &qp.send_cq->queue && received == &qp.recv_cq->queue;
    if (is_bare && qp.engine != nullptr) qp.bare_connection = qp.engine->reliable_connection();
    if (qp.engine != nullptr && qp.layers.planned_completions[0] != nullptr)
      qp.engine.reset(new (std::nothrow) PlannedQueuePair(std::move(qp.engine), qp.events));
    if (qp.layers.checked != nullptr)
      qp.engine = qp.layers.checked->checker.late(qp.layers.checked->number(std::move(qp.engine), qp));
  }
  // Nothing stands between a bare connection and its ports.
  assert(qp.bare_connection == nullptr || (qp.layers.checked == nullptr && qp.xrc == nullptr && qp.tags == nullptr));
  return qp.engine != nullptr;
}

}  // namespace dapple::soft::verbs
