// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/party.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "roce/at_once.hpp"

namespace dapple::sim {

using roce::CompletionStatus;
using roce::QpState;
using roce::QpType;

constexpr uint8_t kSequenceNak = 0x60;
// In a thousand.
constexpr uint32_t kOften = 700, kSeldom = 100;

std::vector<std::byte> grh_between(uint32_t from, uint32_t to) {
  std::vector<std::byte> grh(roce::kGrhSize, std::byte{0x60});
  grh[23] = static_cast<std::byte>(from);
  grh[39] = static_cast<std::byte>(to);
  return grh;
}

Party::Party(Referee& referee, Random& random, Network& network, Node& node, const roce::QpConfig& config)
    : referee_(referee), random_(random), network_(network), node_(node), config_(config) {}

bool Party::create(Receives& receives, bool observed) {
  receives_ = &receives;
  qp_ = roce::QueuePair::create(config_, *node_.memory, sends_, received_, *this, *this);
  if (qp_ == nullptr) return false;
  is_observed_ = observed;
  if (observed) qp_->observed_by(tally_);
  return true;
}

void Party::begin_stream(Statuses excuses) {
  stream_ = std::make_unique<Stream>(referee_, config_.type, config_.qpn);
  stream_->excuses = excuses;
  stream_->is_observed = is_observed_;
  nak_psn_ = kNoPsn;
  tally_.own = stream_.get();
  tally_.begin(attributes.send_psn);
  if (peer == nullptr) return;
  // Both ends begin their streams, one after the other.
  stream_->peer_is_observed = peer->is_observed_;
  peer->tally_.peers = stream_.get();
}

void Party::check_counters() const {
  if (roce::is_reliable(config_.type)) tally_.check(qp_->counters(), sink_room != 0);
}

bool Party::move(QpState to) {
  using namespace roce;
  uint32_t mask = kState;
  const bool has_requester = config_.type == QpType::kRc || config_.type == QpType::kXrcSend;
  const bool has_responder = config_.type == QpType::kRc || config_.type == QpType::kXrcReceive;
  const bool is_ud = config_.type == QpType::kUd;
  const QpState from = qp_->state();
  if (to == QpState::kInit) mask |= kPkeyIndex | kPort | (is_ud ? kQkey : kAccessFlags);
  if (to == QpState::kRtr && !is_ud) mask |= kAddress | kPathMtu | kDestinationQpn | kReceivePsn;
  if (to == QpState::kRtr && has_responder) mask |= kMaxDestRdAtomic | kMinRnrTimer;
  if (to == QpState::kRts && from == QpState::kRtr) mask |= kSendPsn;
  if (to == QpState::kRts && from == QpState::kRtr && has_requester)
    mask |= kTimeout | kRetryCount | kRnrRetry | kMaxRdAtomic;
  if (to == QpState::kRts && from == QpState::kRtr && config_.type == QpType::kXrcReceive) mask |= kTimeout;
  if (to == QpState::kSqd) mask |= kNotifyDrained;
  QpAttributes changes = attributes;
  changes.state = to;
  changes.notify_drained = true;
  if (to == QpState::kError) stream_->is_broken = true;
  if (to == QpState::kReset) {
    taken_ = 0;
    reported_error_ = false;
  }
  if (to == QpState::kReset && !receives_->is_shared()) receives_->clear();
  if (to != QpState::kSqd) drained = false;
  referee_.note("modify", config_.qpn, static_cast<uint64_t>(to));
  if (!qp_->modify(changes, mask)) {
    referee_.fail("QP %#x: modify from state %u to %u was refused", config_.qpn, static_cast<unsigned>(from),
                  static_cast<unsigned>(to));
    return false;
  }
  return true;
}

// --- Packets

std::byte* Party::reserve(size_t size) {
  if (room_left_ == 0) {
    was_refused_ = true;
    return nullptr;
  }
  packet_.assign(size, std::byte{0xEE});
  return packet_.data();
}

void Party::commit(const roce::AddressVector* to) {
  --room_left_;
  roce::Packet packet;
  const roce::ParseError error = roce::parse(packet_, packet);
  if (error != roce::ParseError::kNone)
    return referee_.fail("QP %#x sent a packet that cannot be parsed: %u", config_.qpn, static_cast<unsigned>(error));
  const uint32_t mtu = config_.type == QpType::kUd ? config_.datagram_mtu : attributes.path_mtu;
  tally_.sent_packet(packet, mtu);
  if (packet.payload.size() > mtu) referee_.fail("QP %#x sent more than its MTU", config_.qpn);
  if ((to == nullptr) == (config_.type == QpType::kUd))
    referee_.fail("QP %#x: wrong address for its type", config_.qpn);
  // IBTA 9.9.2.4.2: an error stops everything but the NAK that reports it, and the answers to the requests before it.
  const bool in_error = qp_->state() == QpState::kError;
  if (in_error && (!packet.info->has(roce::kResponse) || reported_error_))
    referee_.fail("QP %#x sent opcode %#x in the error state", config_.qpn, packet.headers.opcode);
  reported_error_ = in_error && packet.info->operation == roce::Operation::kAcknowledge;
  // IBTA 9.7.5.2.8: one NAK for a gap.
  if (packet.info->operation == roce::Operation::kAcknowledge && packet.headers.aeth.syndrome == kSequenceNak) {
    if (packet.headers.psn == nak_psn_) referee_.fail("QP %#x sent a second NAK for PSN %#x", config_.qpn, nak_psn_);
    nak_psn_ = packet.headers.psn;
  }
  // IBTA 10.3.1.5.
  if (drained && !packet.info->has(roce::kResponse))
    referee_.fail("QP %#x sent a request after it was drained", config_.qpn);
  if (to == nullptr && packet.headers.destination_qpn != attributes.destination_qpn)
    referee_.fail("QP %#x sent to a stranger", config_.qpn);
  const uint32_t node = to != nullptr ? to->destination_gid[15] : peer->node().number;
  network_.send(node_.number, node, life, packet_, along_);
  along_.reset();
}

bool Party::take_along(const roce::Acknowledgement& acknowledgement) {
  if (random_.in_thousand(kSeldom)) return false;
  along_ = acknowledgement;
  return true;
}

void Party::open_sink() {
  room_left_ = sink_room == 0 ? SIZE_MAX : random_.between(1, sink_room);
  was_refused_ = false;
  along_.reset();
}

roce::PostError Party::post(const roce::SendRequest& request) {
  const bool is_plain = request.opcode == roce::SendOpcode::kSend && (request.flags & roce::kFence) == 0;
  open_sink();
  const roce::PlainSend plain = {.id = request.id, .flags = request.flags, .segments = request.segments};
  roce::ReliableConnection* connection = qp_->reliable_connection();
  if (is_plain && connection != nullptr && random_.in_thousand(kOften) &&
      connection->send_at_once(watch_, plain, *this, *node_.memory))
    return roce::PostError::kNone;
  return qp_->post_send(request);
}

bool Party::pump() {
  open_sink();
  const bool has_more = qp_->transmit(watch_, *this);
  if (has_more != was_refused_) referee_.fail("QP %#x: transmit() gave %d", config_.qpn, has_more);
  check_state();
  return has_more;
}

void Party::check_state() {
  const QpState state = qp_->state();
  if (state != QpState::kError && state != QpState::kSqe) return;
  stream_->is_broken = true;
  if (stream_->open_count() > 0 &&
      std::any_of(stream_->operations().begin(), stream_->operations().end(),
                  [](const Operation& each) { return !each.completed && each.is_signaled; }))
    referee_.fail("QP %#x is in an error and has requests that were not flushed", config_.qpn);
  if (state == QpState::kError && taken_ > 0)
    referee_.fail("QP %#x is in the error state and keeps a receive", config_.qpn);
  if (state == QpState::kError && !receives_->is_shared() && receives_->taken_count() + receives_->posted_count() > 0)
    referee_.fail("QP %#x is in the error state and has receives that were not flushed", config_.qpn);
}

bool Party::take(roce::ReceiveRequest& request) {
  const bool is_gone = selected_ != nullptr && selected_->is_destroyed;
  const bool is_late = late > 0 && random_.in_thousand(late);
  if (is_gone || is_late || !receives_->take(request)) {
    if (qp_->state() != QpState::kError) tally_.found_no_receive();
    return false;
  }
  if (++taken_ > 1) referee_.fail("QP %#x took a receive while it had one", config_.qpn);
  return true;
}

bool Party::select(uint32_t srq, uint32_t& queues_domain) {
  XrcQueue* queue = domain == nullptr ? nullptr : domain->find(srq);
  if (queue == nullptr) return false;
  selected_ = queue;
  receives_ = &queue->receives;
  queues_domain = queue->domain;
  return true;
}

bool Party::receive_at_once(const Flight& flight) {
  roce::PlainPacket packet;
  if (!random_.in_thousand(kOften) || !roce::parse_plain(flight.transport, flight.transport, packet)) return false;
  if (flight.along) packet.acknowledgement = &*flight.along;
  roce::ReliableConnection* connection = qp_->reliable_connection();
  if (connection == nullptr || !connection->receive_at_once(watch_, packet, *node_.memory, *this, received_))
    return false;
  if (packet.psn == nak_psn_) nak_psn_ = kNoPsn;
  return true;
}

void Party::arrived(const Flight& flight) {
  // The packet is in a block of its own size, so that AddressSanitizer detects an access to the first byte after it.
  roce::Packet packet;
  if (roce::parse(flight.transport, packet) != roce::ParseError::kNone) return;
  std::vector<std::byte> grh;
  if (config_.type == QpType::kUd) {
    grh = grh_between(flight.from, flight.to);
    packet.grh = grh;
  } else if (flight.from != peer->node().number || flight.life != life) {
    return;
  }
  const uint32_t psn = packet.headers.psn;
  const uint32_t expected = qp_->attributes().receive_psn;
  const QpState state = qp_->state();
  const bool is_request = !packet.info->has(roce::kResponse) && state >= QpState::kRtr && state <= QpState::kSqd;
  if (is_request) tally_.coming(psn, expected);
  if (receive_at_once(flight)) return;
  if (flight.along) packet.acknowledgement = &*flight.along;
  if (!packet.info->has(roce::kResponse) && psn == nak_psn_) nak_psn_ = kNoPsn;
  qp_->receive(watch_, packet);
  if (is_request) tally_.came(psn, expected, qp_->attributes().receive_psn, qp_->state() == QpState::kError);
}

// --- Time

roce::Time Party::expiry() {
  const roce::Time deadline = qp_->deadline();
  if (deadline == roce::kNever) {
    seen_deadline_ = expiry_ = roce::kNever;
    return roce::kNever;
  }
  if (deadline != seen_deadline_) {
    seen_deadline_ = deadline;
    expiry_ = deadline + (expiry_delay == 0 ? 0 : random_.below(expiry_delay));
  }
  return std::max(expiry_, referee_.now);
}

void Party::expire() {
  referee_.note("expire", config_.qpn);
  tally_.expired();
  qp_->expire(watch_);
}

void Party::event(roce::QpEvent event, uint32_t qpn) {
  referee_.note("event", qpn, static_cast<uint64_t>(event));
  if (qpn != config_.qpn) referee_.fail("QP %#x raised an event of QP %#x", config_.qpn, qpn);
  if (event == roce::QpEvent::kSendQueueDrained) {
    if (drained || qp_->state() != QpState::kSqd) referee_.fail("QP %#x is drained again", config_.qpn);
    drained = true;
  }
  if (event == roce::QpEvent::kFatal || (event == roce::QpEvent::kLastRequestReached && !config_.shared_receives))
    referee_.fail("QP %#x raised event %u", config_.qpn, static_cast<unsigned>(event));
}

// --- Completions

void Party::send_completed(const roce::Completion& completion) {
  referee_.note("send completion", config_.qpn, completion.request_id, static_cast<uint64_t>(completion.status));
  if (completion.qpn != config_.qpn) referee_.fail("QP %#x: completion of QP %#x", config_.qpn, completion.qpn);
  if (qp_->state() == QpState::kError || qp_->state() == QpState::kSqe) stream_->is_broken = true;
  Operation* operation =
      stream_->completed(completion, *node_.memory, peer == nullptr ? nullptr : peer->node().memory.get());
  if (operation == nullptr || completion.status != CompletionStatus::kSuccess) return;
  stream_->check_result(*operation, *node_.memory);
  // The owner may use the buffer again.
  for (const roce::Segment& segment : operation->segments)
    std::memset(node_.memory->at(segment.address), 0xDD, segment.length);
  if (peer == nullptr) return;
  if (operation->opcode() == roce::SendOpcode::kLocalInvalidate) target.window_is_bound = false;
  if (operation->opcode() != roce::SendOpcode::kBindWindow) return;
  target.window = target.window_slot = operation->request.bind.new_rkey;
  target.window_is_bound = true;
}

void Party::receive_completed(const roce::Completion& completion) {
  referee_.note("receive completion", config_.qpn, completion.request_id, static_cast<uint64_t>(completion.status),
                completion.byte_count);
  if (completion.qpn != config_.qpn) referee_.fail("QP %#x: completion of QP %#x", config_.qpn, completion.qpn);
  if (is_observed_) tally_.received_one(completion.byte_count, completion.status);
  roce::WholeReceiveRequest request;
  if (selected_ != nullptr && selected_->is_destroyed) {
    --taken_;
    // Its sender would take the message for one that the program has got.
    if (completion.status == CompletionStatus::kSuccess)
      referee_.fail("QP %#x received a message for queue %#x, which was destroyed", config_.qpn, selected_->number);
    return;
  }
  if (!receives_->completed(completion.request_id, request)) return;
  --taken_;
  if (completion.status == CompletionStatus::kSuccess) return receive_succeeded(completion, request);
  receive_failed(completion, request);
}

void Party::receive_failed(const roce::Completion& completion, const roce::ReceiveRequest& request) {
  const bool is_flush = completion.status == CompletionStatus::kFlushed;
  if (is_flush && qp_->state() != QpState::kError)
    return referee_.fail("QP %#x flushed a receive while it works", config_.qpn);
  const Key* key = node_.memory->find(request.segments[0].lkey);
  Statuses excuses = receive_excuses | (receives_->had_short ? status_bit(CompletionStatus::kLocalLength) : 0U);
  if (key == nullptr || key->died) excuses |= status_bit(CompletionStatus::kLocalProtection);
  if (!is_flush && !(excuses & status_bit(completion.status)))
    referee_.fail("QP %#x: a receive failed with status %u without a reason", config_.qpn,
                  static_cast<unsigned>(completion.status));
}

void Party::receive_succeeded(const roce::Completion& completion, const roce::ReceiveRequest& request) {
  if (qp_->state() == QpState::kError)
    return referee_.fail("QP %#x received a message in the error state", config_.qpn);
  roce::Completion message = completion;
  const bool is_write = completion.opcode == roce::CompletionOpcode::kReceiveWriteImmediate;
  std::vector<std::byte> bytes = receives_->bytes(request, is_write ? 0 : completion.byte_count);
  if (bytes.size() != (is_write ? 0 : completion.byte_count))
    return referee_.fail("QP %#x received more than the buffer holds", config_.qpn);
  Stream* stream = peer == nullptr ? nullptr : peer->stream_.get();
  if (peer == nullptr) {
    const auto sender = std::find_if(parties->begin(), parties->end(), [&completion](const auto& each) {
      return each->config_.qpn == completion.source_qpn;
    });
    if (sender == parties->end() || !(completion.flags & roce::kWithGrh) || bytes.size() < roce::kGrhSize)
      return referee_.fail("QP %#x: a datagram without its sender or its GRH", config_.qpn);
    const std::vector<std::byte> grh = grh_between((*sender)->node().number, node_.number);
    if (!std::equal(grh.begin(), grh.end(), bytes.begin()))
      referee_.fail("QP %#x: a datagram's GRH is wrong", config_.qpn);
    bytes.erase(bytes.begin(), bytes.begin() + roce::kGrhSize);
    message.byte_count -= roce::kGrhSize;
    stream = (*sender)->stream_.get();
  }
  uint64_t id = 0;
  if (!stream->message_arrived(message, bytes, selected_ == nullptr ? 0 : selected_->number, id))
    return referee_.fail("QP %#x received %u bytes that are not the message to come (request %#" PRIx64 ")",
                         config_.qpn, completion.byte_count, id);
  if (!(completion.flags & roce::kWithInvalidate)) return;
  const Key* key = node_.memory->find(completion.immediate_or_rkey);
  if (key == nullptr || key->live)
    referee_.fail("QP %#x: key %#x was not invalidated", config_.qpn, completion.immediate_or_rkey);
  target.window_is_bound = false;
}

}  // namespace dapple::sim
