// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/loan_findings.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "provider/soft/check/reports/loaded_heap.hpp"
#include "provider/soft/gpu/gpu_search.hpp"
#include "provider/soft/locks/own_code.hpp"
#include "provider/soft/sanitizers/sanitizer.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::check {
namespace {

constexpr char kLeaveToDevice[] =
    "Leave the buffer of a receive, Read or atomic to the device until the completion has been polled.";

void report(Checker& checker, const char* how, const std::string& user, const ReportedStack& end, const Stack& posted) {
  checker.reporter.show(
      {.kind = "memory-in-use",
       .text = format("The program has %s memory that a %s may still use: its completion has not been polled.", how,
                      user.c_str()),
       .remedy = "Keep the memory of a request until its completion has been polled, or its queue "
                 "pair has been destroyed.",
       .places = {end, {"posted", posted}}});
}

std::string name_of(const Loan& loan) {
  return std::string(loan.has_result ? "Read or atomic" : "send request") + " of " + loan.owner.name();
}

// From now on, other things may be there than the bytes of these requests.
void forget_memory(Checker& checker, const void* memory, size_t size) {
  checker.lent.forget_memory(memory, size);
  checker.withheld.forget_memory(memory, size);
  checker.receives.forget_memory(memory, size);
}

}  // namespace

Pieces pieces_of(MemoryTable& memory, const Segments& segments) {
  Pieces pieces;
  for (const roce::Segment& segment : segments) {
    RegionConfig config;
    if (segment.length == 0 || memory.region_config(segment.lkey, config) != 0) continue;
    if (config.kind != RegionKind::kPlain) continue;
    // Memory behind the region is not the request's.
    if (!within(segment.address, segment.length, config.iova, config.length)) continue;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(config.memory) + (segment.address - config.iova);
    pieces.push_back({begin, begin + segment.length, segment.lkey});
  }
  return pieces;
}

std::optional<MemoryUser> user_of(Checker& checker, const void* memory, size_t size, FreedMarks::How how) {
  if (!checker.is_its_process()) return std::nullopt;
  if (const std::optional<Loan> loan = checker.lent.user_of(memory, size))
    return MemoryUser{name_of(*loan), loan->pieces, loan->posted};
  // A NIC keeps pages that are unmapped. UCX unmaps the memory of its receives before it destroys their queue pairs.
  if (how != FreedMarks::How::kFreed) return std::nullopt;
  const std::optional<PostedReceive> receive = checker.receives.waiting_in(memory, size);
  if (!receive) return std::nullopt;
  return MemoryUser{"receive of " + receive->owner.name(), receive->pieces, receive->stack};
}

void report_if_lent(Checker& checker, const void* memory, size_t size, FreedMarks::How how, const Stack& stack) {
  if (!checker.is_its_process()) return;
  const char* end_name = FreedMarks::name_of(how);
  if (const std::optional<MemoryUser> user = user_of(checker, memory, size, how))
    report(checker, end_name, user->name, {end_name, stack}, user->posted);
  forget_memory(checker, memory, size);
}

void report_if_moved(Checker& checker, const void* memory, size_t size, const std::optional<MemoryUser>& user) {
  if (!checker.is_its_process()) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const auto is_gone = [&](const Piece& piece) { return piece.overlaps(begin, begin + size); };
  if (user && std::any_of(user->pieces.begin(), user->pieces.end(), is_gone))
    report(checker, "reallocated", user->name, {"reallocated", Stack::here()}, user->posted);
  forget_memory(checker, memory, size);
}

void report_if_lent(Checker& checker, const ibv_mr& mr, const char* end_name) {
  if (!checker.is_its_process()) return;
  if (const std::optional<Loan> loan = checker.lent.user_of(mr.addr, mr.length, mr.lkey))
    return report(checker, end_name, name_of(*loan), {end_name, here()}, loan->posted);
  // A message may never come.
  if (!checker.reporter.options().strict) return;
  const std::optional<PostedReceive> receive = checker.receives.waiting_in(mr.addr, mr.length, mr.lkey);
  if (!receive) return;
  checker.reporter.show(
      {.level = Level::kWarning,
       .kind = "memory-in-use",
       .text = std::string("The program has ") + end_name + " memory of a receive of " + receive->owner.name() +
               ", and a message may come for it.",
       .remedy = "Deregister the memory of a receive after its completion has been polled, or after its queue pair has "
                 "been destroyed or is in IBV_QPS_ERR.",
       .places = {{end_name, here()}, {"posted", receive->stack}}});
}

void report_if_addressed(Checker& checker, const ibv_ah* address_handle) {
  if (!checker.is_its_process()) return;
  const std::optional<Loan> loan = checker.lent.user_of_handle(address_handle);
  if (!loan) return;
  checker.reporter.show(
      {.level = Level::kWarning,
       .kind = "ah-in-use",
       .text =
           "The program has destroyed an address handle that a " + name_of(*loan) +
           " may still use: its completion has not been polled. This device has copied the address; others need not.",
       .remedy = "Call ibv_destroy_ah() after the completion of the last request with this handle has been polled.",
       .places = {{"destroyed by ibv_destroy_ah", here()}, {"posted", loan->posted}}});
}

void report_if_poisoned(Checker& checker, const char* what, const Owner& owner, const Pieces& pieces,
                        const Stack& posted) {
  Sanitizer* const sanitizer = Sanitizer::of_program();
  if (sanitizer == nullptr) return;
  for (const Piece& piece : pieces) {
    const auto* memory = reinterpret_cast<const void*>(piece.begin);
    const void* at = sanitizer->forbidden(memory, piece.end - piece.begin);
    if (at == nullptr) continue;
    checker.reporter.show(
        {.kind = "freed-memory",
         .text =
             format("A %s of %s is posted with %zu bytes at %p, and AddressSanitizer forbids the use of the byte at "
                    "%p: the program has freed or poisoned it.",
                    what, owner.name().c_str(), static_cast<size_t>(piece.end - piece.begin), memory, at),
         .remedy = "Post memory that is in use, and keep it until the completion has been polled.",
         .places = {{"posted", posted}}});
    return;
  }
}

void report_if_gpu_inline(Checker& checker, const Qp& qp, const Segments& segments) {
  for (const roce::Segment& segment : segments) {
    const auto* memory = reinterpret_cast<const void*>(segment.address);
    if (segment.length == 0 || find_known_gpu_memory(memory, segment.length).memory == nullptr) continue;
    checker.reporter.show(
        {.kind = "unmapped-memory",
         .text = format("A request of queue pair 0x%x of %s has IBV_SEND_INLINE and %u bytes at %p, which are a GPU's: "
                        "the CPU copies them during the post and cannot reach them.",
                        qp.qpn, qp.context->ibv->device->name, segment.length, memory),
         .remedy = "Post memory of a GPU without IBV_SEND_INLINE.",
         .places = {{"posted", here()}}});
    return;
  }
}

void report_if_not_fenced(Checker& checker, const Qp& qp, const Pieces& pieces, const Stack& posted) {
  const std::optional<Loan> result = checker.lent.result_in(qp.qpn, pieces);
  if (!result) return;
  checker.reporter.show(
      {.kind = "missing-fence",
       .text = "A request of " + result->owner.name() +
               " sends bytes into which an earlier Read or atomic still brings its result: the peer may get the old "
               "bytes.",
       .remedy = "Post the request with IBV_SEND_FENCE, or after the completion of the Read has been polled.",
       .places = {{"posted", posted}, {"the Read or atomic posted", result->posted}}});
}

void report_changed(Checker& checker, const std::vector<ChangedLoan>& changed) {
  for (const auto& [loan, at, is_certain] : changed) {
    checker.reporter.show(
        {.level = is_certain ? Level::kError : Level::kWarning,
         .kind = "changed-send-buffer",
         .text = format("The program has changed the buffer of a send request of %s after the post and before the poll "
                        "of the completion: byte %llu of the message is the first that differs.",
                        loan.owner.name().c_str(), static_cast<unsigned long long>(at)),
         .remedy = "Leave a buffer as it is until the completion of its request, or send with IBV_SEND_INLINE.",
         .places = {{"posted", loan.posted}}});
  }
}

// The plug-in's own code may meet closed pages while the program makes another mistake.
void report_look(const Look& look) {
  Checker& checker = *Checker::get();
  void* const* const callers = look.stack.callers;
  if (!checker.is_its_process() || std::any_of(callers, callers + look.stack.count, is_own_code)) return;
  const bool paused = pause_heap(true);
  const char* what = look.request.is_receive ? "receive" : "Read or atomic";
  const char* how = look.kind == Look::Kind::kRead ? "read" : look.kind == Look::Kind::kWrite ? "written" : "used";
  checker.reporter.show(
      {.kind = "memory-in-use",
       .text =
           format("The program has %s the byte at %p, which is in the buffer of a %s of %s, after the %s and before "
                  "the poll of the completion.",
                  how, reinterpret_cast<void*>(look.address), what, look.request.owner.name().c_str(),
                  look.request.is_receive ? "arrival of its message" : "post"),
       .remedy = kLeaveToDevice,
       .places = {{how, look.stack}, {"posted", look.request.posted}}});
  pause_heap(paused);
}

void report_written(Checker& checker, const std::vector<WithheldBytes::Changed>& changed) {
  for (const auto& [request, at] : changed) {
    const char* what = request.receives != nullptr ? "receive" : "Read or atomic";
    checker.reporter.show(
        {.kind = "memory-in-use",
         .text = format("The program has written into the buffer of a %s of %s after the post and before the poll of "
                        "the completion: byte %llu is the first that differs.",
                        what, request.owner.name().c_str(), static_cast<unsigned long long>(at)),
         .remedy = kLeaveToDevice,
         .places = {{"posted", request.posted}, {"polled", here()}}});
  }
}

void report_overwritten(Checker& checker, const WithheldBytes::Overwritten& message) {
  std::vector<ReportedStack> places = {{"the receive of the lost message posted", message.first.posted}};
  if (message.second) places.push_back({"the receive of the other message posted", message.second->posted});
  checker.reporter.show(
      {.level = Level::kWarning,
       .kind = "overwritten-message",
       .text = format("A message of another receive comes into the buffer of a receive of %s, whose completion the "
                      "program has not polled: byte %llu is the first that differs, and the earlier message is lost.",
                      message.first.owner.name().c_str(), static_cast<unsigned long long>(message.at)),
       .remedy = "Give each receive memory of its own until its completion has been polled.",
       .places = places});
}

void report_freed_context(Checker& checker, uint64_t id, const PostedContexts::Freed& context) {
  const char* what = context.request.receives != nullptr ? "receive" : "send request";
  checker.reporter.show(
      {.level = Level::kWarning,
       .kind = "freed-context",
       .text =
           format("A %s of %s is complete, and its wr_id 0x%llx is an address in a block of memory that the program "
                  "has freed after the post.",
                  what, context.request.owner.name().c_str(), static_cast<unsigned long long>(id)),
       .remedy = "Free what wr_id points to after the completion has been polled, or after the queue pair has been "
                 "destroyed.",
       .places = {{"freed", context.freed}, {"posted", context.request.posted}, {"polled", here()}}});
}

void report_if_shared(Checker& checker, const NewRequest& request) {
  if (!checker.reporter.options().notes) return;
  std::string other;
  Stack posted;
  if (const std::optional<PostedReceive> receive = checker.receives.any_in(request.pieces)) {
    other = "receive of " + receive->owner.name();
    posted = receive->stack;
  } else if (const std::optional<Loan> loan = request.is_written ? checker.lent.any_in(request.pieces) : std::nullopt) {
    other = name_of(*loan);
    posted = loan->posted;
  } else {
    return;
  }
  checker.reporter.show(
      {.level = Level::kNote,
       .kind = "shared-buffer",
       .text = format("A %s of %s and an earlier %s use the same bytes, and the device writes to them.", request.what,
                      request.owner.name().c_str(), other.c_str()),
       .remedy = "Give each request memory of its own until its completion has been polled.",
       .places = {{"posted", request.posted}, {"the earlier one posted", posted}}});
}

}  // namespace dapple::soft::check
