// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/operations/checking_completions.hpp"

#include <cassert>

#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/check/loan_findings.hpp"
#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/check/race_findings.hpp"
#include "provider/soft/check/request_findings.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"

namespace dapple::soft::check {

bool CheckingCompletions::complete(const roce::Completion& completion) {
  return pass(completion, [&] { return below_.complete(completion); });
}

bool CheckingCompletions::complete_match(const roce::Completion& completion, const roce::MatchedTag& tag) {
  if (is_match_alone(static_cast<uint32_t>(completion.status), completion.flags))
    return below_.complete_match(completion, tag);
  return pass(completion, [&] { return below_.complete_match(completion, tag); });
}

template <typename Next>
bool CheckingCompletions::pass(const roce::Completion& completion, Next next) {
  assert_held(qp_.mutex);
  if (completion.opcode >= roce::CompletionOpcode::kReceive) end_receive(completion);
  if (checker_.reporter.options().notes) checker_.writes.clear();
  if (completion.status == roce::CompletionStatus::kRnrRetryExceeded) report_not_ready();
  if (qp_.layers.checked->numbered != nullptr)
    report_own_races(checker_, qp_, qp_.layers.checked->numbered->complete(completion));
  // The receives of XRC complete into queues of their own.
  if (queue_.context == nullptr) return next();
  const bool had_overrun = queue_.queue.has_overrun();
  note_withheld(completion);
  if (completion.opcode < roce::CompletionOpcode::kReceive) checker_.lent.completed(qp_.qpn, completion.request_id);
  const bool is_kept = next();
  // The program never gets a completion that is lost. A queue that has lost one may lose more.
  if (queue_.queue.has_overrun()) {
    checker_.withheld.end(qp_.qpn, receives(completion));
    checker_.lent.forget(qp_.qpn);
  }
  report_if_beyond(checker_, *queue_.context, &queue_, queue_.queue.count(), queue_.queue.size(),
                   "completions in a completion queue", 0, &queue_);
  // The end of a queue pair may flush more requests than the program wants to know of.
  const bool is_flush = completion.status == roce::CompletionStatus::kFlushed;
  if (!had_overrun && !is_flush && !queue_.queue.ignores_overruns() && queue_.queue.has_overrun()) report_overrun();
  return is_kept;
}

const void* CheckingCompletions::receives(const roce::Completion& completion) const {
  return is_of_tag(completion) ? static_cast<const void*>(&qp_.srq->tags->list) : receive_queue_of(qp_);
}

// After an error the queue pair takes no more bytes.
void CheckingCompletions::note_withheld(const roce::Completion& completion) {
  // Of an incomplete rendezvous the program reads what has come.
  const bool is_good = completion.status == roce::CompletionStatus::kSuccess ||
                       completion.status == roce::CompletionStatus::kRendezvousIncomplete;
  if (!is_good) {
    checker_.withheld.end(qp_.qpn, receives(completion));
  } else if (completion.opcode >= roce::CompletionOpcode::kReceive) {
    // A Write with immediate data has no bytes in the memory of the receive.
    const bool is_write = completion.opcode == roce::CompletionOpcode::kReceiveWriteImmediate;
    const size_t size = is_write ? 0 : completion.byte_count;
    checker_.withheld.receive_completes(receives(completion), completion.request_id, qp_.qpn, size);
  }
}

void CheckingCompletions::end_receive(const roce::Completion& completion) {
  const std::optional<PostedReceive> receive = checker_.receives.take(receives(completion), completion.request_id);
  if (completion.status != roce::CompletionStatus::kFlushed) qp_.layers.checked->events.forget_unready();
  if (completion.status != roce::CompletionStatus::kLocalLength) return;
  checker_.told.add(qp_.qpn, ToldFailures::kPeersRequest);
  std::vector<ReportedStack> places;
  if (receive) places.push_back({"posted", receive->stack});
  checker_.reporter.show(
      {.kind = "small-receive",
       .text = format(
           "A message to queue pair 0x%x of %s is longer than its receive, which has %llu bytes (wr_id 0x%llx).",
           qp_.qpn, qp_.context->ibv->device->name, static_cast<unsigned long long>(receive ? receive->length() : 0),
           static_cast<unsigned long long>(completion.request_id)),
       .remedy = "Post receives that are as long as the longest message of the peer.",
       .places = places});
}

void CheckingCompletions::report_not_ready() {
  checker_.told.add(qp_.qpn, ToldFailures::kOwnRequest);
  std::vector<ReportedStack> places;
  if (const std::optional<ReportedStack> made = checker_.objects.made(&qp_)) places.push_back(*made);
  checker_.reporter.show(
      {.kind = "receiver-not-ready",
       .text = format("Queue pair 0x%x of %s gives up a message, because its peer has had no receive for it, and is in "
                      "error now: rnr_retry is %u.",
                      qp_.qpn, qp_.context->ibv->device->name, qp_.engine->attributes().rnr_retry),
       .remedy = "Post receives at the peer before the program sends, or set rnr_retry to 7, which waits for ever.",
       .places = places});
}

void CheckingCompletions::report_overrun() {
  std::vector<ReportedStack> places;
  if (const std::optional<ReportedStack> made = checker_.objects.made(&queue_)) places.push_back(*made);
  checker_.reporter.show(
      {.kind = "cq-overrun",
       .text =
           format("A completion of queue pair 0x%x of %s is lost: its completion queue is full, with %u completions.",
                  qp_.qpn, qp_.context->ibv->device->name, queue_.queue.size()),
       .remedy = "Make the completion queue as large as all requests that can complete before the program polls.",
       .places = places});
}

bool ForeignReceives::complete(const roce::Completion& completion) {
  assert(srq_.xrc.domain != nullptr);
  // The numbers of a process' queues and queue pairs begin alike.
  const bool is_own = completion.qpn >> kLargeSlotBits == srq_.xrc.number >> kLargeSlotBits;
  if (!is_own) checker_.receives.take(&srq_.queue, completion.request_id);
  return below_.complete(completion);
}

}  // namespace dapple::soft::check
