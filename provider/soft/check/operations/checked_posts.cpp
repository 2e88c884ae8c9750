// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/operations/checked_posts.hpp"

#include <string.h>

#include <algorithm>
#include <utility>

#include "provider/common/clock.hpp"
#include "provider/common/segment_at.hpp"
#include "provider/soft/check/access_findings.hpp"
#include "provider/soft/check/loan_findings.hpp"
#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/check/request_findings.hpp"
#include "provider/soft/check/tag_entries.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::check {
namespace {

Segments segments_of(const ibv_sge* list, int count) {
  Segments segments;
  // The device will refuse such a list.
  if (list == nullptr || count < 0 || static_cast<uint32_t>(count) > roce::kMaxSegments) return segments;
  for (int i = 0; i < count; i++) {
    const ibv_sge segment = provider::segment_at(list, i);
    segments.push_back({segment.addr, segment.length, segment.lkey});
  }
  return segments;
}

// Copies memory that is mapped, and that its keys know by its own address.
class Copy final : public MemoryTable::Borrower {
 public:
  Copy(std::span<const roce::Segment> segments, uint64_t length)
      : segments_(segments), copy_(std::make_shared<BufferCopy>(length)) {}

  bool use(std::byte* memory, size_t done, size_t size) override {
    while (at_ < segments_.size() && segments_[at_].length == 0) at_++;
    if (at_ == segments_.size() || segments_[at_].address != reinterpret_cast<uintptr_t>(memory)) return false;
    at_++;
    if (!Checker::get()->mapped.is_usable(memory, size, false)) return false;
    copy_->put(done, memory, size);
    return true;
  }
  // A thread of the program may unmap it during the copy.
  bool use_on_demand(std::byte*, size_t, size_t) override { return false; }
  SharedCopy take() { return std::move(copy_); }

 private:
  const std::span<const roce::Segment> segments_;
  size_t at_ = 0;
  std::shared_ptr<BufferCopy> copy_;
};

SharedCopy copy_of(Qp& qp, std::span<const roce::Segment> segments) {
  const uint64_t length = roce::length_of(segments);
  if (length == 0 || BufferCopy::all_bytes.load() + length > BufferCopy::kMaxBytes) return nullptr;
  // The device sees that the request is noted, or this sees what the device has stored; see Checker::overwritten().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  Copy copy(segments, length);
  const roce::Fault fault = qp.context->memory.lend({qp.pd->number, qp.qpn}, segments, 0, length, false, copy);
  return fault == roce::Fault::kNone ? copy.take() : nullptr;
}

bool has_result(roce::SendOpcode opcode) {
  return opcode == roce::SendOpcode::kRead || opcode == roce::SendOpcode::kCompareSwap ||
         opcode == roce::SendOpcode::kFetchAdd;
}

bool sends_bytes(roce::SendOpcode opcode) {
  return opcode <= roce::SendOpcode::kSendImmediate || opcode == roce::SendOpcode::kSendInvalidate;
}

// The numbers of a request in PostedSends, in LentMemory, in WithheldBytes and in PostedContexts.
struct Noted {
  uint64_t send = PostedSends::kNone;
  uint64_t loan = LentMemory::kNone;
  uint64_t withheld = WithheldBytes::kNone;
  uint64_t signaled = WithheldBytes::kNone;
  uint64_t context = PostedContexts::kNone;
  uint64_t id = 0;

  void was_taken(Qp& qp) const {
    if (send != PostedSends::kNone) qp.layers.checked->sends.was_taken();
    if (loan != LentMemory::kNone) Checker::get()->lent.returned(qp.qpn, loan);
  }
  void was_refused(Qp& qp) const {
    if (loan != LentMemory::kNone) Checker::get()->lent.remove(qp.qpn, loan, id);
    if (withheld != WithheldBytes::kNone) Checker::get()->withheld.remove(withheld);
    if (signaled != WithheldBytes::kNone) Checker::get()->withheld.remove_signaled(qp.qpn, signaled, id);
    if (context != PostedContexts::kNone) Checker::get()->contexts.remove(id, context);
    if (send != PostedSends::kNone) qp.layers.checked->sends.remove(send);
  }
};

static_assert(int{roce::kFence} == IBV_SEND_FENCE && int{roce::kSignaled} == IBV_SEND_SIGNALED &&
              int{roce::kInline} == IBV_SEND_INLINE);

// Notes what the wr_id may point to. A request with its own memory as its wr_id is known by this address only.
uint64_t note_context(uint64_t id, bool has_completion, const Segments& segments,
                      const PostedContexts::Request& request) {
  PostedContexts& contexts = Checker::get()->contexts;
  const bool is_memory = std::any_of(segments.begin(), segments.end(),
                                     [id](const roce::Segment& segment) { return segment.address == id; });
  if (has_completion && !is_memory) return contexts.add(id, request);
  contexts.forget_freed(id);
  return PostedContexts::kNone;
}

// From now on the device may write there.
uint64_t withhold(WithheldBytes::Request request) {
  Checker& checker = *Checker::get();
  if (!checker.withholds) return WithheldBytes::kNone;
  const bool fills = checker.reporter.options().strict;
  if (fills) {
    for (const Piece& piece : request.pieces)
      checker.overwritten(reinterpret_cast<const std::byte*>(piece.begin), piece.end - piece.begin);
  }
  return checker.withheld.add(std::move(request), fills);
}

// Notes a request that uses memory. `flags`: roce::SendFlag. `address_handle`: of a datagram, if it is known.
Noted note_memory(Qp& qp, roce::SendOpcode opcode, uint32_t flags, uint64_t id, const Segments& segments,
                  const ibv_ah* address_handle) {
  PostedSend send;
  const bool is_inline = (flags & roce::kInline) != 0 && sends_bytes(opcode);
  if (is_inline) report_if_gpu_inline(*Checker::get(), qp, segments);
  const bool is_known = has_result(opcode) || sends_bytes(opcode);
  if (!is_known || is_inline || segments.empty()) return {};
  if ((flags & roce::kInline) != 0) [[unlikely]]
    report_inline_result(*Checker::get(), qp, opcode);
  send.stack = here();
  send.has_result = has_result(opcode);
  send.segments = segments;
  const bool sends = !send.has_result;
  Loan loan = {.id = id,
               .owner = {qp.qpn, qp.context->ibv->device->name},
               .has_result = send.has_result,
               .is_signaled = (flags & roce::kSignaled) != 0 || qp.init.sq_sig_all != 0,
               .pieces = pieces_of(qp.context->memory, segments),
               .posted = send.stack,
               .address_handle = address_handle};
  Noted noted;
  if (sends && (flags & roce::kFence) == 0) report_if_not_fenced(*Checker::get(), qp, loan.pieces, send.stack);
  report_if_poisoned(*Checker::get(), sends ? "send request" : "Read or atomic", loan.owner, loan.pieces, send.stack);
  if (Checker::get()->counts.load(std::memory_order_relaxed)) {
    Checker::get()->withheld.yield(loan.pieces);
    noted.send = qp.layers.checked->sends.add(std::move(send));
    return noted;
  }
  report_if_shared(*Checker::get(), {.what = sends ? "send request" : "Read or atomic",
                                     .owner = loan.owner,
                                     .is_written = !sends,
                                     .pieces = loan.pieces,
                                     .posted = send.stack});
  if (sends) {
    Checker::get()->withheld.yield(loan.pieces);
  } else {
    noted.withheld =
        withhold({.receives = nullptr, .id = id, .owner = loan.owner, .pieces = loan.pieces, .posted = loan.posted});
  }
  noted.loan = Checker::get()->lent.add(std::move(loan));
  noted.send = qp.layers.checked->sends.add(std::move(send));
  if (!sends) return noted;
  const SharedCopy copy = copy_of(qp, segments);
  qp.layers.checked->sends.keep(noted.send, copy);
  if (noted.loan != LentMemory::kNone) Checker::get()->lent.keep(qp.qpn, noted.loan, copy);
  return noted;
}

Noted note(Qp& qp, roce::SendOpcode opcode, uint32_t flags, uint64_t id, const Segments& segments,
           const ibv_ah* address_handle = nullptr) {
  Noted noted = note_memory(qp, opcode, flags, id, segments, address_handle);
  noted.id = id;
  const bool is_signaled = (flags & roce::kSignaled) != 0 || qp.init.sq_sig_all != 0;
  if (Checker::get()->contexts.may_be_context(id)) {
    noted.context =
        note_context(id, is_signaled, segments,
                     {.receives = nullptr, .owner = {qp.qpn, qp.context->ibv->device->name}, .posted = here()});
  }
  if (!is_signaled) return noted;
  noted.signaled = Checker::get()->withheld.add_signaled(qp.qpn, id);
  if (noted.loan == LentMemory::kNone) noted.loan = Checker::get()->lent.add_signaled(qp.qpn, id);
  return noted;
}

// Null for a request that is no datagram.
ibv_ah* address_handle_of(const Qp& qp, const ibv_send_wr& wr) {
  const bool is_datagram =
      qp.init.qp_type == IBV_QPT_UD && (wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_SEND_WITH_IMM);
  return is_datagram ? wr.wr.ud.ah : nullptr;
}

// Tells whether it is a datagram whose address handle has another protection domain.
bool has_foreign_address(const Qp& qp, const ibv_send_wr& wr) {
  ibv_ah* address_handle = address_handle_of(qp, wr);
  return address_handle != nullptr && ours<Ah>(address_handle)->domain != qp.domain;
}

// A queue of receives, or a list of tags.
struct Receives {
  const void* queue;
  size_t depth;
  Context* device;
  Owner owner;
  // The bytes of XRC may come by another context.
  bool may_withhold = true;
  TagEntries* entries = nullptr;  // of a list of tags
};

// A message may never come, and a message tells no more than this.
void report_if_freed(Checker& checker, const Receives& receives, const PostedReceive& receive) {
  if (checker.freed == nullptr) return;
  for (const roce::Segment& segment : receive.segments) {
    const auto mark = checker.freed->find(&receives.device->memory, segment.lkey, segment.address, segment.length);
    if (!mark) continue;
    Access access;
    access.device = &receives.device->memory;
    access.text = format("A receive of %s is posted with %u bytes", receives.owner.name().c_str(), segment.length);
    access.key = segment.lkey;
    access.posted = ReportedStack{"posted", receive.stack};
    report_freed(checker, access, *mark);
    return;
  }
}

// The receive of a request.
struct NewReceive {
  uint64_t id;
  const ibv_sge* list;
  int count;
};
std::optional<NewReceive> receive_of(const ibv_recv_wr& wr) {
  return NewReceive{wr.wr_id, wr.sg_list, wr.num_sge};
}
std::optional<NewReceive> receive_of(const ibv_ops_wr& wr) {
  if (wr.opcode != IBV_WR_TAG_ADD) return std::nullopt;
  return NewReceive{wr.tm.add.recv_wr_id, wr.tm.add.sg_list, wr.tm.add.num_sge};
}

void keep(const Receives&, const ibv_recv_wr&, const TagEntries::Numbers&) {}
void keep(const Receives& receives, const ibv_ops_wr& wr, const TagEntries::Numbers& numbers) {
  receives.entries->add(wr.tm.handle, numbers);
}

// Notes the receives of a list. The device refuses `bad` and those behind it.
template <typename Request, typename Post>
int post_receives(const Receives& receives, Request* requests, Request** bad, Post post) {
  Checker& checker = *Checker::get();
  const KnownStack stack = here();
  struct NotedReceive {
    const Request* wr;
    std::optional<TagEntries::Numbers> numbers;
  };
  ShortList<NotedReceive, 4> noted;
  for (const Request* wr = requests; wr != nullptr; wr = wr->next) {
    const std::optional<NewReceive> made = receive_of(*wr);
    if (!made) {
      noted.push_back({wr, std::nullopt});
      continue;
    }
    PostedReceive receive = {.id = made->id,
                             .stack = stack,
                             .segments = segments_of(made->list, made->count),
                             .pieces = {},
                             .owner = receives.owner,
                             .posted = checker.races == nullptr ? 0 : now_ns()};
    receive.pieces = pieces_of(receives.device->memory, receive.segments);
    uint64_t withheld = WithheldBytes::kNone;
    const bool counts = checker.counts.load(std::memory_order_relaxed);
    if (receives.may_withhold && !counts) {
      withheld = withhold({.receives = receives.queue,
                           .id = receive.id,
                           .owner = receives.owner,
                           .pieces = receive.pieces,
                           .posted = stack});
    }
    report_if_poisoned(checker, "receive", receives.owner, receive.pieces, stack);
    report_if_freed(checker, receives, receive);
    if (!counts)
      report_if_shared(
          checker,
          {.what = "receive", .owner = receives.owner, .is_written = true, .pieces = receive.pieces, .posted = stack});
    uint64_t context = PostedContexts::kNone;
    if (checker.contexts.may_be_context(made->id)) {
      context = note_context(made->id, true, receive.segments,
                             {.receives = receives.queue, .owner = receives.owner, .posted = stack});
    }
    const uint64_t number = checker.receives.add(receives.queue, std::move(receive));
    noted.push_back(
        {wr, TagEntries::Numbers{.id = made->id, .receive = number, .withheld = withheld, .context = context}});
  }
  const int error = post();
  bool refused = false;
  for (const auto& [wr, numbers] : noted) {
    refused = refused || (error != 0 && wr == *bad);
    if (!numbers) continue;
    if (refused) {
      TagEntries::forget(checker, receives.queue, *numbers);
    } else {
      keep(receives, *wr, *numbers);
    }
  }
  checker.receives.keep_last(receives.queue, receives.depth);
  return error;
}

// A send queue before a post.
struct SendQueueState {
  uint64_t outstanding;
  roce::QpState state;
};
SendQueueState send_queue_state(Qp& qp) {
  const std::lock_guard lock(qp.mutex);
  return {qp.engine->outstanding_sends(), qp.engine->state()};
}

// `before`: the requests that waited before the post of `count` others.
void report_sends_beyond(Qp& qp, uint64_t before, uint64_t count) {
  report_if_beyond(*Checker::get(), *qp.context, &qp, before + count, qp.init.cap.max_send_wr, "send requests", qp.qpn,
                   &qp);
}

// The program posts a request with this id to a queue pair in this state.
void report_if_vain(Qp& qp, roce::QpState state, uint64_t id) {
  Checker& checker = *Checker::get();
  if (state == roce::QpState::kError) {
    if (qp.layers.checked->sends.add_in_error(qp.qpn, id)) report_post_in_error(checker, qp);
  } else if (state == roce::QpState::kRts && checker.disconnections.any()) {
    std::unique_lock lock(qp.mutex);
    const uint32_t peer = qp.engine->attributes().destination_qpn;
    lock.unlock();
    if (const std::optional<Stack> got = checker.disconnections.take(qp.qpn, peer))
      report_post_after_end(checker, qp, *got);
  }
}

}  // namespace

int post_send(ibv_qp* ibv, ibv_send_wr* requests, ibv_send_wr** bad) {
  Checker& checker = *Checker::get();
  Qp& qp = *ours<Qp>(ibv);
  struct NotedSend {
    const ibv_send_wr* wr;
    Noted noted;
    bool is_unfit;
  };
  ShortList<NotedSend, 4> noted;
  for (const ibv_send_wr* wr = requests; wr != nullptr; wr = wr->next) {
    const auto opcode = static_cast<roce::SendOpcode>(wr->opcode);
    const bool unfit = is_unfit(qp, opcode, has_foreign_address(qp, *wr));
    // Another thread may poll the completion before the post returns.
    if (unfit) checker.told.add(qp.qpn, ToldFailures::kUnfitRequest);
    noted.push_back(
        {wr,
         note(qp, opcode, wr->send_flags, wr->wr_id, segments_of(wr->sg_list, wr->num_sge), address_handle_of(qp, *wr)),
         unfit});
  }
  const auto [before, state] = send_queue_state(qp);
  for (const ibv_send_wr* wr = requests; wr != nullptr; wr = wr->next) report_if_vain(qp, state, wr->wr_id);
  std::optional<Races::Posting> posting;
  if (Checker::get()->races != nullptr) posting.emplace(here());
  const int error = unchecked_operations().post_send(ibv, requests, bad);
  posting.reset();
  bool refused = false;
  uint64_t accepted = 0;
  for (const auto& [wr, one, unfit] : noted) {
    refused = refused || (error != 0 && wr == *bad);
    if (refused) {
      one.was_refused(qp);
      if (unfit) checker.told.take(qp.qpn, ToldFailures::kUnfitRequest);
    } else {
      one.was_taken(qp);
      accepted++;
      if (unfit) report_unfit(checker, qp, static_cast<roce::SendOpcode>(wr->opcode));
    }
  }
  report_sends_beyond(qp, before, accepted);
  return error;
}

int wr_complete(ibv_qp_ex* ibv) {
  Qp& qp = *ours<Qp>(ibv);
  // Between wr_start() and wr_complete() only this thread uses the requests.
  const ExtendedPost& post = *qp.extended;
  ShortList<Noted, 4> noted;
  bool is_foreign = false;
  for (uint32_t i = 0; i < post.count && post.error == 0; i++) {
    const roce::SendRequest& request = post.requests[i]->send;
    is_foreign = is_foreign || request.address.is_foreign;
    noted.push_back(
        note(qp, request.opcode, request.flags, request.id, {request.segments.begin(), request.segments.end()}));
  }
  if (is_foreign) Checker::get()->told.add(qp.qpn, ToldFailures::kUnfitRequest);
  const auto [before, state] = send_queue_state(qp);
  const uint64_t count = post.count;
  for (uint32_t i = 0; i < count && post.error == 0; i++) report_if_vain(qp, state, post.requests[i]->send.id);
  std::optional<Races::Posting> posting;
  if (Checker::get()->races != nullptr) posting.emplace(here());
  const int error = qp.layers.checked->wr_complete(ibv);
  posting.reset();
  if (error == 0) {
    for (const Noted& one : noted) one.was_taken(qp);
    report_sends_beyond(qp, before, count);
    // The queue pair has been made with the operations that it has.
    if (is_foreign) report_unfit(*Checker::get(), qp, roce::SendOpcode::kSend);
    return 0;
  }
  if (is_foreign) Checker::get()->told.take(qp.qpn, ToldFailures::kUnfitRequest);
  for (const Noted& one : noted) one.was_refused(qp);
  return error;
}

int bind_mw(ibv_qp* ibv, ibv_mw* window, ibv_mw_bind* bind) {
  Qp& qp = *ours<Qp>(ibv);
  const Noted noted = note(qp, roce::SendOpcode::kBindWindow, bind->send_flags, bind->wr_id, {});
  const int error = unchecked_operations().bind_mw(ibv, window, bind);
  if (error != 0) noted.was_refused(qp);
  return error;
}

int post_recv(ibv_qp* ibv, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  Qp& qp = *ours<Qp>(ibv);
  const ReceiveQueue& queue = qp.own_receives;
  const Receives receives = {&queue, queue.depth(), qp.context, {qp.qpn, qp.context->ibv->device->name}};
  const int error =
      post_receives(receives, requests, bad, [&] { return unchecked_operations().post_recv(ibv, requests, bad); });
  report_if_beyond(*Checker::get(), *qp.context, &queue, Checker::get()->receives.count(&queue), queue.depth(),
                   "receives", qp.qpn, &qp);
  return error;
}

int post_srq_recv(ibv_srq* ibv, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  const Srq& srq = *ours<Srq>(ibv);
  const ReceiveQueue& queue = srq.queue;
  const Receives receives = {
      &queue, queue.depth(), srq.context, {0, srq.context->ibv->device->name}, srq.xrc.domain == nullptr};
  const int error =
      post_receives(receives, requests, bad, [&] { return unchecked_operations().post_srq_recv(ibv, requests, bad); });
  report_if_beyond(*Checker::get(), *srq.context, &queue, Checker::get()->receives.count(&queue), queue.depth(),
                   "receives in a shared receive queue", 0, &srq);
  return error;
}

int post_srq_ops(ibv_srq* ibv, ibv_ops_wr* operations, ibv_ops_wr** bad) {
  const Srq& srq = *ours<Srq>(ibv);
  // The device refuses the operations.
  if (srq.tags == nullptr) return unchecked_operations().post_srq_ops(ibv, operations, bad);
  const Receives receives = {
      .queue = &srq.tags->list,
      .depth = srq.tags->list.max_tags(),
      .device = srq.context,
      .owner = {0, srq.context->ibv->device->name},
      .entries = static_cast<TagEntries*>(srq.tags->watch.get()),
  };
  return post_receives(receives, operations, bad,
                       [&] { return unchecked_operations().post_srq_ops(ibv, operations, bad); });
}

}  // namespace dapple::soft::check
