// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// In front of a completion queue that a program made with time stamps, or with the tags of messages. The queue pairs of
// other queues complete into the queue itself, so they pay nothing.
#pragma once

#include "provider/soft/objects/queues/completion_queue.hpp"

namespace dapple::soft {

class StampedCompletions final : public roce::CompletionSink {
 public:
  StampedCompletions(CompletionQueue& queue, StampClocks clocks) : queue_(queue), clocks_(clocks) {}

  bool complete(const roce::Completion& completion) override { return queue_.complete_stamped(completion, clocks_); }
  bool complete_match(const roce::Completion& completion, const roce::MatchedTag& tag) override {
    return queue_.complete_stamped(completion, clocks_, tag);
  }

 private:
  CompletionQueue& queue_;
  const StampClocks clocks_;
};

}  // namespace dapple::soft
