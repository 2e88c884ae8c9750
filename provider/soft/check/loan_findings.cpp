// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/loan_findings.hpp"

#include <optional>
#include <string>

#include "provider/soft/transport/context.hpp"

namespace dapple::soft::check {
namespace {

void report(Checker& checker, const char* how, const std::string& user, const Place& end, const Stack& posted) {
  checker.reporter.show(
      {.kind = "memory-in-use",
       .text = format("The program has %s memory that a %s may still use: its completion has not been polled.", how,
                      user.c_str()),
       .remedy = "Keep the memory of a request until its completion has been polled, or its queue "
                 "pair has been destroyed.",
       .places = {end, {"posted", posted}}});
}

std::string user_of(const Loan& loan) {
  return std::string(loan.has_result ? "Read or atomic" : "send request") + " of " + loan.name;
}

}  // namespace

std::vector<Piece> pieces_of(Qp& qp, const std::vector<roce::Segment>& segments) {
  std::vector<Piece> pieces;
  for (const roce::Segment& segment : segments) {
    RegionConfig config;
    if (segment.length == 0 || qp.context->memory.region_config(segment.lkey, config) != 0) continue;
    if (config.kind != RegionKind::kPlain) continue;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(config.memory) + (segment.address - config.iova);
    pieces.push_back({begin, begin + segment.length, segment.lkey});
  }
  return pieces;
}

void report_if_lent(Checker& checker, const void* memory, size_t size, FreedMarks::How how, const Stack& stack) {
  if (!checker.is_its_process()) return;
  const char* end_name = FreedMarks::name_of(how);
  const Place end = {end_name, stack};
  if (const std::optional<Loan> loan = checker.lent.user_of(memory, size)) {
    report(checker, end_name, user_of(*loan), end, loan->posted);
  } else if (const std::optional<PostedReceive> receive = checker.receives.waiting_in(memory, size)) {
    report(checker, end_name, "receive of " + receive->queue_pair, end, receive->stack);
  }
}

void report_if_lent(Checker& checker, const ibv_mr& mr) {
  if (!checker.is_its_process()) return;
  if (const std::optional<Loan> loan = checker.lent.user_of(mr.addr, mr.length, mr.lkey))
    report(checker, "deregistered", user_of(*loan), {"deregistered", here()}, loan->posted);
}

void report_if_not_fenced(Checker& checker, const Qp& qp, const std::vector<Piece>& pieces, const Stack& posted) {
  const std::optional<Loan> result = checker.lent.result_in(&qp, pieces);
  if (!result) return;
  checker.reporter.show(
      {.kind = "missing-fence",
       .text = "A request of " + result->name +
               " sends bytes into which an earlier Read or atomic still brings its result: the peer may get the old "
               "bytes.",
       .remedy = "Post the request with IBV_SEND_FENCE, or after the completion of the Read has been polled.",
       .places = {{"posted", posted}, {"the Read or atomic posted", result->posted}}});
}

}  // namespace dapple::soft::check
