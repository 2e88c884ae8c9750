// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The part that queue pairs of all types share: attributes and states, the send queue, the receive in progress, errors
// and flushes. Internal to the engine; requester and responder work on it.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>

#include "roce/core/queue_pair.hpp"
#include "roce/send_queue/send_queue.hpp"

namespace dapple::roce {

class Core : public QueuePair {
 public:
  Core(const QpConfig& config, Memory& memory, CompletionSink& send_completions, CompletionSink& receive_completions,
       ReceiveSource& receives, EventSink& events);
  bool allocate();

  bool modify(const QpAttributes& attributes, uint32_t mask) final;
  QpAttributes attributes() const final;
  PostError check_send(const SendRequest& request, uint32_t ahead) const final;
  PostError post_send(const SendRequest& request) final;
  void receives_posted() final;
  void observed_by(RequestObserver& watcher) final { observer = &watcher; }
  const QpCounters& counters() const final { return count; }
  uint64_t outstanding_sends() const final { return sends.tail() - sends.head(); }
  std::optional<SendRequest> oldest_send() const final;

  Accessor self() const { return {domain, config.qpn}; }
  uint32_t mtu() const { return values.path_mtu; }

  // Tells whether a request with these flags has a completion if it succeeds.
  bool has_completion(uint8_t flags) const { return config.signal_all || (flags & kSignaled) != 0; }
  // Tells whether nobody learns of a request with these flags if it succeeds.
  bool ends_quietly(uint8_t flags) const { return !has_completion(flags) && observer == nullptr; }
  // The oldest request of the send queue is done. With an error, the others will be flushed.
  void finish_send(CompletionStatus status);
  // Completes the whole send queue as flushed, in order.
  void flush_sends();
  // A step of a send queue whose errors stop it alone (UC, UD, raw packets).
  enum class SendStep : uint8_t {
    kDone,
    kFull,    // there is no room now; it is repeated later
    kFailed,  // the request at the head has completed with an error
    kAtRest,  // the state admits no step
  };
  // Takes steps until the queue is empty. True if there is no room for the rest now.
  template <typename Step>
  bool send_by(Step step);
  // An error that stops the queue pair. Everything that is queued is flushed.
  void enter_error();
  // An error that stops the send queue only (UC, UD).
  void enter_send_error();
  void raise(QpEvent event) { events.event(event, config.qpn); }
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  // The receive in progress. False if there is none to take.
  bool take_receive() { return has_receive || take_next_receive(receives); }
  // False if the completion is lost.
  bool finish_receive(CompletionStatus status, Completion completion = {});
  // A message is dropped.
  void drop(const DroppedMessage& message) {
    count.dropped_packets++;
    events.dropped(message);
  }
  // Parts of these two, for callers that know the types of the ports.
  template <typename Receives>
  bool take_next_receive(Receives& from);
  Completion end_receive(CompletionStatus status, Completion completion);

  const QpConfig config;
  const Transport transport;
  // The protection domain. On the receiving end of XRC both are those of the selected shared receive queue.
  uint32_t domain;
  Accessor receiver;  // uses the memory of receives
  Memory& memory;
  CompletionSink& send_completions;
  CompletionSink& receive_completions;
  ReceiveSource& receives;
  EventSink& events;
  QpAttributes values;
  QpCounters count;
  RequestObserver* observer = nullptr;
  SendQueue sends;

  ReceiveRequest receive_request;  // its segments are in receive_segments_
  bool has_receive = false;
  uint64_t receive_room = 0;  // bytes that its segments hold
  uint64_t received = 0;      // bytes of the message so far

 protected:
  // Memory that the state needs; false if there is none.
  virtual bool prepare(QpState to, const QpAttributes& next) = 0;
  // The state has changed from `from`.
  virtual void entered(QpState from) = 0;
  // Sets the PSNs that have moved on since they were given, and whether the send queue drains.
  virtual void tell_progress(QpAttributes& now) const = 0;

 private:
  void flush_receives();

  std::unique_ptr<Segment[]> receive_segments_;
};

template <typename Step>
inline bool Core::send_by(Step step) {
  while (!sends.empty()) {
    switch (step()) {
      case SendStep::kDone:
        break;
      case SendStep::kFull:
        return true;
      case SendStep::kFailed:
        enter_send_error();
        return false;
      case SendStep::kAtRest:
        return false;
    }
  }
  return false;
}

template <typename Receives>
inline bool Core::take_next_receive(Receives& from) {
  if (!from.take(receive_request)) return false;
  assert(receive_request.segment_count <= config.max_receive_segments);
  has_receive = true;
  received = 0;
  receive_room = length_of({receive_request.segments, receive_request.segment_count});
  return true;
}

inline Completion Core::end_receive(CompletionStatus status, Completion completion) {
  assert(has_receive);
  assert(status != CompletionStatus::kSuccess || received <= receive_room);
  completion.request_id = receive_request.id;
  completion.status = status;
  if (completion.opcode != CompletionOpcode::kReceiveWriteImmediate) {
    completion.opcode = CompletionOpcode::kReceive;
    completion.byte_count = static_cast<uint32_t>(received);
  }
  completion.qpn = config.qpn;
  completion.mark = receive_request.mark;
  if (observer != nullptr) [[unlikely]]
    observer->received(completion.byte_count, status);
  has_receive = false;
  return completion;
}

}  // namespace dapple::roce
