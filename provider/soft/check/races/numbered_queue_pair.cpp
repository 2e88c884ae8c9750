// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/numbered_queue_pair.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

#include "provider/soft/faults/faults.hpp"
#include "provider/soft/transport/context.hpp"
#include "roce/packet/psn.hpp"
#include "roce/send_queue/send_queue.hpp"

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

// A packet with a part of the result of a Read, or with that of an atomic.
bool has_result(const roce::OpcodeInfo& info) {
  return info.has(roce::kResponse) && info.operation != roce::Operation::kAcknowledge;
}

// FNV-1a of the result's bytes in the packet.
uint32_t check_of(const roce::Packet& packet) {
  uint32_t hash = 0x811C9DC5;
  const auto add = [&](unsigned byte) { hash = (hash ^ byte) * 0x01000193; };
  for (const std::byte byte : packet.payload) add(std::to_integer<unsigned>(byte));
  if (!packet.info->has(roce::kHasAtomicAckEth)) return hash;
  for (unsigned i = 0; i < 8; i++) add(static_cast<unsigned>(packet.headers.atomic_original >> 8 * i) & 0xFF);
  return hash;
}

}  // namespace

void NumberedQueuePair::assert_consistent() const {
  assert_held(qp_.mutex);
  assert(state_ == engine().state());
  assert(next_psn_ <= roce::kPsnMask && reads_.size() <= kMaxReads);
}

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
  if (state() == QpState::kReset || state() == QpState::kError) {
    races_.end(qp_.qpn);
    held_.clear();
    question_.reset();
  }
  assert_consistent();
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
  assert_consistent();
  races_.post(qp_.qpn, post, memory_of(qp_.context->memory, request));
  return error;
}

// The queue pair gets its addresses after its state.
void NumberedQueuePair::locate() {
  if (std::exchange(is_located_, true)) return;
  races_.locate(qp_.qpn, {qp_.transport.path, qp_.transport.path.netdev_index});
}

// A request of UC counts as complete when it has been sent, which is wrong if a fault delivers it late.
bool NumberedQueuePair::knows_peer() const {
  if (qp_.init.qp_type == IBV_QPT_UC && program_faults().disturbs_packets()) return false;
  return is_connected();
}

void NumberedQueuePair::receive(roce::Now now, const roce::Packet& packet) {
  assert_consistent();
  locate();
  if (packet.info == nullptr) {
    // A frame of a raw packet queue pair.
    arrival_ = {qp_.qpn, 0, 0};
    return roce::QueuePairLayer::receive(now, packet);
  }
  if (takes_answer(packet)) return;
  arrival_ = {qp_.qpn, knows_peer() ? engine().attributes().destination_qpn : 0, packet.headers.psn};
  opcode_ = opcode_of(packet.info->operation);
  if (has_result(*packet.info)) {
    races_.note_result(qp_.qpn, packet.headers.psn, check_of(packet));
  } else if (packet.info->has(roce::kStarts) && !packet.info->has(roce::kResponse)) {
    races_.begin_request(arrival_);
  }
  roce::QueuePairLayer::receive(now, packet);
}

class NumberedQueuePair::Marks final : public MarkingSink {
 public:
  Marks(NumberedQueuePair& queue_pair, roce::PacketSink& below)
      : Marks(queue_pair, below, queue_pair.engine().attributes()) {}

 private:
  Marks(NumberedQueuePair& queue_pair, roce::PacketSink& below, const roce::QpAttributes& attributes)
      : MarkingSink(below, queue_pair.held_, attributes.destination_qpn, attributes.path_mtu),
        races_(queue_pair.races_),
        qpn_(queue_pair.qp_.qpn) {}

  void mark(std::span<const std::byte> bytes) override {
    roce::Packet packet;
    if (roce::parse(bytes, packet) != roce::ParseError::kNone) return;
    const roce::OpcodeInfo& info = *packet.info;
    const uint32_t psn = packet.headers.psn;
    if (!info.has(roce::kResponse)) {
      if (info.has(roce::kStarts)) put(races_.mark_of_request(qpn_, psn));
      return;
    }
    while (put(races_.mark_of_race(qpn_))) {
    }
    if (has_result(info)) put(races_.mark_of_result(qpn_, psn, info.has(roce::kHasAtomicAckEth), check_of(packet)));
  }
  bool put(const std::optional<Mark>& mark) {
    if (mark) MarkingSink::put(*mark);
    return mark.has_value();
  }

  Races& races_;
  const uint32_t qpn_;
};

// A request of UC counts as complete when it has been sent, which is wrong if the network delivers it late.
bool NumberedQueuePair::may_mark() const {
  const bool is_open = state() == QpState::kRtr || state() == QpState::kRts || state() == QpState::kSqd;
  return is_open && is_connected() && qp_.init.qp_type != IBV_QPT_UC && qp_.transport.ring == nullptr;
}

bool NumberedQueuePair::transmit(roce::Now now, roce::PacketSink& sink) {
  assert_consistent();
  // The engine counts these as sent, whatever its state is now.
  if (!held_.empty() && !Marks(*this, sink).send_held()) return true;
  if (!may_mark()) return roce::QueuePairLayer::transmit(now, sink);
  locate();
  if (!ask(now, sink)) return true;
  if (!races_.gives_marks(qp_.qpn)) return roce::QueuePairLayer::transmit(now, sink);
  Marks marks(*this, sink);
  return roce::QueuePairLayer::transmit(now, marks) || !held_.empty();
}

// False if the sink takes no more now.
bool NumberedQueuePair::ask(roce::Now now, roce::PacketSink& sink) {
  take_question(now);
  if (!question_) return true;
  roce::Headers headers;
  headers.opcode = roce::opcode_of(roce::Transport::kUd, roce::Operation::kSendOnly);
  headers.destination_qpn = kMarkQuestionQpn;
  headers.deth = {.qkey = kMarkQuestionQkey, .source_qpn = qp_.qpn};
  std::byte front[roce::kMaxHeaderSize];
  const size_t size = roce::write_headers(headers, front);
  const MarkMad mad = make_mark_question(*question_);
  std::byte* const packet = sink.reserve(size + mad.size());
  if (packet == nullptr) return false;
  memcpy(packet, front, size);
  memcpy(packet + size, mad.data(), mad.size());
  sink.commit(nullptr);
  question_.reset();
  return true;
}

// A kernel sends the question back as refused.
bool NumberedQueuePair::takes_answer(const roce::Packet& packet) {
  if (packet.info->transport != roce::Transport::kUd || !may_mark()) return false;
  if (packet.headers.deth.source_qpn != kMarkQuestionQpn || packet.headers.deth.qkey != kMarkQuestionQkey) return false;
  const std::optional<MarkAnswer> answer = read_mark_answer(packet.payload);
  if (answer) races_.answered(qp_.qpn, *answer);
  return true;
}

void NumberedQueuePair::receive_for_host(const roce::Packet& packet) {
  if (!may_mark()) return;
  locate();
  if (const std::optional<Mark> mark = read_mark(packet.payload); mark) races_.take(qp_.qpn, *mark);
}

roce::Time NumberedQueuePair::deadline() const {
  const roce::Time next = roce::QueuePairLayer::deadline();
  return may_mark() && !question_ ? std::min(next, races_.question_time(qp_.qpn)) : next;
}

// From now on the question waits for transmit(), which may be a while.
void NumberedQueuePair::expire(roce::Now now) {
  if (may_mark()) take_question(now);
  roce::QueuePairLayer::expire(now);
}

void NumberedQueuePair::take_question(roce::Now now) {
  if (!question_) question_ = races_.question(qp_.qpn, now.exact());
}

std::optional<Races::Found> NumberedQueuePair::access(const roce::RemoteRange& range, uintptr_t memory,
                                                      NotedAccess::Kind kind) {
  if (kind == NotedAccess::Kind::kRead) {
    // By UDP, those whose bytes the responder may read again.
    const uint32_t remembered = std::max<uint32_t>(engine().attributes().max_dest_rd_atomic, 1);
    if (reads_.size() >= (qp_.transport.ring != nullptr ? kMaxReads : remembered)) reads_.pop_front();
    reads_.push_back({range, arrival_.psn});
  }
  return races_.access(arrival_, {memory, memory + range.length}, {.kind = kind, .opcode = opcode_, .key = range.rkey});
}

void NumberedQueuePair::answer(const roce::RemoteRange& range, uintptr_t memory, NotedAccess::Kind kind) {
  assert_held(qp_.mutex);
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
