// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/core/core.hpp"

#include <cassert>
#include <new>

#include "roce/core/transitions.hpp"

namespace dapple::roce {
namespace {

// The queue keeps a copy of inline bytes and no segments. The sink gets one segment, so that it knows the length.
void tell_failure(EventSink& events, const SendQueue& sends, const SendEntry& entry, CompletionStatus status) {
  SendRequest request = sends.request_of(entry);
  const Segment copied = {reinterpret_cast<uintptr_t>(sends.inline_bytes(entry)), entry.length, 0};
  if (entry.is_inline()) request.segments = {&copied, 1};
  events.send_fails(request, status);
}

}  // namespace

Core::Core(const QpConfig& qp_config, Memory& qp_memory, CompletionSink& qp_send_completions,
           CompletionSink& qp_receive_completions, ReceiveSource& qp_receives, EventSink& qp_events)
    : config(qp_config),
      transport(config.type == QpType::kXrcSend || config.type == QpType::kXrcReceive ? Transport::kXrc
                                                                                      : Transport::kRc),
      domain(config.domain),
      receiver{config.receive_domain.value_or(config.domain), config.qpn},
      memory(qp_memory),
      send_completions(qp_send_completions),
      receive_completions(qp_receive_completions),
      receives(qp_receives),
      events(qp_events) {
  // A datagram has no path, so its size is the port's.
  values.path_mtu = config.datagram_mtu;
}

bool Core::allocate() {
  receive_segments_.reset(new (std::nothrow) Segment[config.max_receive_segments]);
  receive_request.segments = receive_segments_.get();
  return receive_segments_ != nullptr && sends.create(config);
}

std::optional<SendRequest> Core::oldest_send() const {
  if (sends.empty()) return std::nullopt;
  return sends.request_of(sends.front());
}

bool Core::modify(const QpAttributes& attributes, uint32_t mask) {
  const QpState from = state_;
  const QpState to = (mask & kState) ? attributes.state : from;
  if ((mask & kCurrentState) && attributes.current_state != from) return false;
  if (!transition_allowed(config.type, from, to, mask) || !values_possible(attributes, mask)) return false;

  if (to == QpState::kError) {
    enter_error();
    assert_consistent();
    return true;
  }
  QpAttributes next = to == QpState::kReset ? QpAttributes{} : values;
  if (to == QpState::kReset) next.path_mtu = config.datagram_mtu;
  if (from == QpState::kRts && to == QpState::kSqd) next.notify_drained = false;  // each time it is asked for anew
  apply(next, attributes, mask);
  if ((to != from || (mask & (kMaxDestRdAtomic | kMaxRdAtomic))) && !prepare(to, next)) return false;
  values = next;
  state_ = to;
  if (to == QpState::kReset) {
    sends.clear();
    has_receive = false;
  }
  if (to != from) entered(from);
  assert_consistent();
  return true;
}

void Core::assert_consistent() const {
  sends.assert_consistent();
  assert(values.path_mtu > 0);
  // Requests are accepted from RTS on, and an error flushes all.
  assert((state_ >= QpState::kRts && state_ < QpState::kSqe) || sends.empty());
  // Peers reach a queue pair from RTR on, and an error flushes the receive in progress, too.
  assert((state_ >= QpState::kRtr && state_ < QpState::kError) || !has_receive);
  assert(state_ != QpState::kSqe || !is_reliable(config.type));
  assert(!has_receive || receive_request.segment_count <= config.max_receive_segments);
}

QpAttributes Core::attributes() const {
  QpAttributes now = values;
  now.state = now.current_state = state_;
  tell_progress(now);
  return now;
}

PostError Core::check_send(const SendRequest& request, uint32_t ahead) const {
  if (state_ < QpState::kRts) return PostError::kState;
  return sends.check(request, ahead);
}

PostError Core::post_send(const SendRequest& request) {
  // IBTA 10.8.2.1: a request is accepted from RTS on, and in an error completed as flushed.
  if (state_ < QpState::kRts) return PostError::kState;
  const PostError error = sends.push(request);
  if (error == PostError::kNone && (state_ == QpState::kError || state_ == QpState::kSqe)) flush_sends();
  assert_consistent();
  return error;
}

void Core::receives_posted() {
  if (state_ == QpState::kError) flush_receives();
}

void Core::finish_send(CompletionStatus status) {
  const SendEntry& entry = sends.front();
  if (status != CompletionStatus::kSuccess) {
    if (status != CompletionStatus::kFlushed) tell_failure(events, sends, entry, status);
    events.sends_fail();
  }
  if (observer != nullptr) [[unlikely]]
    observer->sent(entry.opcode, entry.length, status);
  if (status != CompletionStatus::kSuccess || has_completion(entry.flags)) {
    Completion completion;
    completion.request_id = entry.id;
    completion.status = status;
    completion.opcode = completion_opcode(entry.opcode);
    completion.byte_count = entry.length;
    completion.qpn = config.qpn;
    completion.mark = entry.mark;
    send_completions.complete(completion);
  }
  sends.pop();
}

void Core::flush_sends() {
  while (!sends.empty()) finish_send(CompletionStatus::kFlushed);
}

void Core::flush_receives() {
  if (config.shared_receives) return;
  while (take_receive()) finish_receive(CompletionStatus::kFlushed);
}

void Core::enter_error() {
  if (state_ == QpState::kError) return;
  const QpState from = state_;
  state_ = QpState::kError;
  flush_sends();
  if (has_receive) finish_receive(CompletionStatus::kFlushed);
  flush_receives();
  // IBTA 11.6.3.3: from now on nothing is taken from the shared queue for it.
  if (config.shared_receives && from != QpState::kReset) raise(QpEvent::kLastRequestReached);
  entered(from);
}

void Core::enter_send_error() {
  // IBTA table 91: a reliable connection has no such state, because its errors stop both halves.
  assert(!is_reliable(config.type) && state_ >= QpState::kRts);
  if (state_ == QpState::kError || state_ == QpState::kSqe) return;
  const QpState from = state_;
  state_ = QpState::kSqe;
  flush_sends();
  entered(from);
}

bool Core::finish_receive(CompletionStatus status, Completion completion) {
  if (status != CompletionStatus::kSuccess && status != CompletionStatus::kFlushed)
    events.receive_fails(receive_request, status);
  return receive_completions.complete(end_receive(status, completion));
}

}  // namespace dapple::roce
