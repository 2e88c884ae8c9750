// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/numbered_queue_pair.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "provider/soft/faults/faults.hpp"
#include "provider/soft/transport/context.hpp"
#include "roce/psn.hpp"
#include "roce/send_queue.hpp"

namespace dapple::soft::check {
namespace {

using roce::QpState;
using roce::SendOpcode;

SendOpcode opcode_of(roce::Operation operation) {
  switch (operation) {
    case roce::Operation::kReadRequest:
      return SendOpcode::kRead;
    case roce::Operation::kCompareSwap:
      return SendOpcode::kCompareSwap;
    case roce::Operation::kFetchAdd:
      return SendOpcode::kFetchAdd;
    case roce::Operation::kAtomicWrite:
      return SendOpcode::kAtomicWrite;
    default:
      return SendOpcode::kWrite;
  }
}

// The memory of a request in this process.
std::vector<Races::Range> memory_of(MemoryTable& memory, const roce::SendRequest& request) {
  std::vector<Races::Range> ranges;
  if (roce::goes_inline(request) || roce::is_local(request.opcode)) return ranges;
  for (const roce::Segment& segment : request.segments) {
    RegionConfig config;
    if (segment.length == 0 || memory.region_config(segment.lkey, config) != 0) continue;
    if (config.kind != RegionKind::kPlain) continue;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(config.memory) + (segment.address - config.iova);
    ranges.push_back({begin, begin + segment.length});
  }
  return ranges;
}

}  // namespace

// Requests of other types have no order that the peer could know.
bool NumberedQueuePair::is_connected() const {
  return qp_.init.qp_type != IBV_QPT_UD && qp_.init.qp_type != IBV_QPT_RAW_PACKET;
}

bool NumberedQueuePair::modify(const roce::QpAttributes& attributes, uint32_t mask) {
  const QpState before = state();
  if (!roce::QueuePairLayer::modify(attributes, mask)) return false;
  if (state() == before || (mask & roce::kState) == 0) return true;
  const roce::QpAttributes now = engine().attributes();
  if (state() == QpState::kRtr) {
    races_.connect(qp_.qpn, is_connected() ? now.destination_qpn : 0,
                   qp_.init.qp_type == IBV_QPT_XRC_RECV ? Races::PollOrder::kAny : Races::PollOrder::kOfMessages);
    is_located_ = !is_connected();
  }
  if (before == QpState::kRtr && state() == QpState::kRts) next_psn_ = now.send_psn;
  if (state() == QpState::kReset || state() == QpState::kError) races_.end(qp_.qpn);
  return true;
}

roce::PostError NumberedQueuePair::post_send(const roce::SendRequest& request) {
  locate();
  const roce::PostError error = roce::QueuePairLayer::post_send(request);
  if (error != roce::PostError::kNone) return error;
  Races::Post post = {.id = request.id,
                      .opcode = request.opcode,
                      .is_signaled = (request.flags & roce::kSignaled) != 0 || qp_.init.sq_sig_all != 0};
  if (is_connected() && !roce::is_local(request.opcode)) {
    const bool has_bytes = request.opcode == SendOpcode::kRead || !roce::wants_response(request.opcode);
    const uint32_t mtu = engine().attributes().path_mtu;
    post.is_told = true;
    post.first_psn = next_psn_;
    post.packets = has_bytes ? roce::packets_of(roce::length_of(request.segments), mtu) : 1;
    next_psn_ = roce::psn_add(next_psn_, post.packets);
  }
  races_.post(qp_.qpn, post, memory_of(qp_.context->memory, request));
  return error;
}

// The queue pair gets its addresses after its state.
void NumberedQueuePair::locate() {
  if (std::exchange(is_located_, true)) return;
  races_.locate(qp_.qpn, qp_.transport.path);
}

// A request of UC counts as complete when it has been sent, which is wrong if a fault delivers it late.
bool NumberedQueuePair::knows_peer() const {
  if (qp_.init.qp_type == IBV_QPT_UC && program_faults().disturbs_packets()) return false;
  return is_connected();
}

void NumberedQueuePair::receive(roce::Now now, const roce::Packet& packet) {
  locate();
  arrival_ = {qp_.qpn, knows_peer() ? engine().attributes().destination_qpn : 0, packet.headers.psn};
  opcode_ = opcode_of(packet.info->operation);
  roce::QueuePairLayer::receive(now, packet);
}

std::optional<Races::Found> NumberedQueuePair::access(const roce::RemoteRange& range, uintptr_t memory,
                                                      NotedAccess::Kind kind) {
  if (kind == NotedAccess::Kind::kRead) {
    // By UDP, those whose bytes the responder may read again.
    const uint32_t remembered = std::max<uint32_t>(engine().attributes().max_dest_rd_atomic, 1);
    if (reads_.size() >= (qp_.transport.ring != nullptr ? kMostReads : remembered)) reads_.pop_front();
    reads_.push_back({range, arrival_.psn});
  }
  return races_.access(arrival_, {memory, memory + range.length}, {.kind = kind, .opcode = opcode_, .key = range.rkey});
}

void NumberedQueuePair::answer(const roce::RemoteRange& range, uintptr_t memory, NotedAccess::Kind kind) {
  const Races::Range bytes = {memory, memory + range.length};
  if (kind != NotedAccess::Kind::kRead) return races_.answer(arrival_, bytes, kind);
  const auto has_bytes = [&](const PeersRead& one) {
    return one.range.rkey == range.rkey && one.range.address <= range.address &&
           range.address - one.range.address < one.range.length;
  };
  if (qp_.transport.ring == nullptr) {
    // The bytes may be those of an answer that has been lost. Any of these Reads may get them.
    for (const PeersRead& one : reads_) {
      if (has_bytes(one)) races_.answer({qp_.qpn, 0, one.psn}, bytes, kind);
    }
    return;
  }
  const auto read = std::find_if(reads_.begin(), reads_.end(), has_bytes);
  if (read == reads_.end()) return;
  races_.answer({qp_.qpn, 0, read->psn}, bytes, kind);
  const bool is_last = range.address + range.length == read->range.address + read->range.length;
  if (is_last) reads_.erase(reads_.begin(), read + 1);
}

std::optional<Races::Found> NumberedQueuePair::fill(Races::Range range, uint64_t posted) {
  return races_.fill(arrival_, range, posted);
}

std::vector<Races::Told> NumberedQueuePair::complete(const roce::Completion& completion) {
  const bool is_good = completion.status == roce::CompletionStatus::kSuccess;
  if (completion.opcode < roce::CompletionOpcode::kReceive) return races_.sent(qp_.qpn, completion.request_id, is_good);
  if (is_good) races_.received(arrival_, completion.request_id);
  return {};
}

}  // namespace dapple::soft::check
