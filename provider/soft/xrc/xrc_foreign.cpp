// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/xrc/xrc_foreign.hpp"

#include <bit>
#include <cassert>

namespace dapple::soft {

using roce::Accessor;
using roce::Fault;
using roce::RemoteRange;

namespace {

bool are_same(const XrcQuestion& a, const XrcQuestion& b) {
  return a.operation == b.operation && a.qpn == b.qpn && a.srq == b.srq && a.rkey == b.rkey && a.access == b.access &&
         a.size == b.size && a.address == b.address && a.length == b.length && a.operands[0] == b.operands[0] &&
         a.operands[1] == b.operands[1];
}

Fault fault_of(const XrcAnswer& answer) {
  return answer.fault < static_cast<uint32_t>(Fault::kLater) ? static_cast<Fault>(answer.fault) : Fault::kAccess;
}

}  // namespace

void XrcForeign::leave() {
  // The member completes the receive as flushed, and needs no notice for it.
  if (taken_from_ != SharedXrcDomain::kNobody) shared_->give_back(taken_from_);
  taken_from_ = SharedXrcDomain::kNobody;
  for (; asked_ != 0; asked_ &= asked_ - 1) {
    shared_->tell(static_cast<uint32_t>(std::countr_zero(asked_)), {.kind = XrcNoticeKind::kLeave, .qpn = qpn_});
  }
}

// Requests of the next connection may look the same. A receive belongs to no request: the owner may have taken one by
// now, and the next message gets it.
void XrcForeign::reset() {
  if (last_once_.question.operation != XrcOperation::kTake) last_once_ = {};
  last_other_ = {};
}

bool XrcForeign::has(uint32_t srq) const {
  if (shared_ == nullptr) return false;
  const uint32_t member = shared_->owner_of(srq);
  return member != SharedXrcDomain::kNobody && shared_->lives(member);
}

SharedXrcDomain::Asked XrcForeign::ask(uint32_t member, XrcQuestion& question, const std::byte* data, XrcAnswer& answer,
                                       std::byte* result) {
  const uint64_t bit = uint64_t{1} << member;
  // The member must hear of the end of a queue pair that it knows.
  if ((asked_ & bit) == 0 && !shared_->keep_notice(member)) return SharedXrcDomain::Asked::kBusy;
  asked_ |= bit;
  LastQuestion& last = is_once(question.operation) ? last_once_ : last_other_;
  question.sequence = last.is_open && are_same(question, last.question) ? last.question.sequence : next_question();
  last.question = question;
  qpn_ = question.qpn;
  const SharedXrcDomain::Asked asked = shared_->ask(member, question, data, answer, result);
  // If it is busy, then perhaps with this very question.
  last.is_open = asked == SharedXrcDomain::Asked::kLater || asked == SharedXrcDomain::Asked::kBusy;
  return asked;
}

Fault XrcForeign::ask(Accessor who, XrcQuestion question, const Exchange& exchange) {
  assert(is_foreign(who.domain));
  question.qpn = who.qpn;
  question.srq = who.domain & ~kForeignQueue;
  if (question.size > kXrcDataRoom) return Fault::kAccess;
  const uint32_t member = shared_->owner_of(question.srq);
  if (member == SharedXrcDomain::kNobody) return Fault::kAccess;
  XrcAnswer answer;
  switch (ask(member, question, exchange.sent, answer, exchange.received)) {
    case SharedXrcDomain::Asked::kAnswered:
      if (exchange.original != nullptr) *exchange.original = answer.original;
      return fault_of(answer);
    case SharedXrcDomain::Asked::kLater:
    case SharedXrcDomain::Asked::kBusy:
      return Fault::kLater;
    default:
      break;
  }
  return Fault::kAccess;
}

// --- Receives

// A process that does not answer is like a queue without receives: the peer sends the message again later.
bool XrcForeign::take(uint32_t srq, uint32_t qpn, roce::ReceiveRequest& request) {
  const uint32_t member = shared_->owner_of(srq);
  if (member == SharedXrcDomain::kNobody || !shared_->reserve(member)) return false;
  XrcQuestion question = {.operation = XrcOperation::kTake, .qpn = qpn, .srq = srq};
  XrcAnswer answer;
  if (ask(member, question, nullptr, answer, nullptr) != SharedXrcDomain::Asked::kAnswered || answer.found == 0 ||
      answer.count > roce::kMaxSegments) {
    shared_->give_back(member);
    return false;
  }
  // A queue pair that went through RESET has dropped its receive.
  if (taken_from_ != SharedXrcDomain::kNobody) shared_->give_back(taken_from_);
  taken_from_ = member;
  request.id = 0;
  request.mark = 0;
  request.segment_count = answer.count;
  for (uint32_t i = 0; i < answer.count; ++i) request.segments[i] = {0, answer.lengths[i], 0};
  return true;
}

void XrcForeign::complete(const roce::Completion& completion) {
  if (taken_from_ == SharedXrcDomain::kNobody) return;
  XrcNotice notice = {.kind = XrcNoticeKind::kComplete,
                      .qpn = completion.qpn,
                      .status = static_cast<uint32_t>(completion.status),
                      .opcode = static_cast<uint32_t>(completion.opcode),
                      .flags = completion.flags,
                      .solicited = completion.solicited ? 1u : 0u,
                      .byte_count = completion.byte_count,
                      .immediate_or_rkey = completion.immediate_or_rkey,
                      .source_qpn = completion.source_qpn};
  shared_->notify_reserved(taken_from_, notice);
  taken_from_ = SharedXrcDomain::kNobody;
}

Fault XrcForeign::scatter(Accessor who, std::span<const roce::Segment>, uint64_t offset, const std::byte* from,
                          size_t size) {
  assert(size <= kXrcDataRoom);
  const auto bytes = static_cast<uint32_t>(size);
  return ask(who, {.operation = XrcOperation::kScatter, .size = bytes, .address = offset}, {.sent = from});
}

// --- Memory by its keys

Fault XrcForeign::check_remote(Accessor who, const RemoteRange& range, uint32_t access) {
  return ask(who,
             {.operation = XrcOperation::kCheckRemote,
              .rkey = range.rkey,
              .access = access,
              .address = range.address,
              .length = range.length},
             {});
}

namespace {

XrcQuestion question_about(XrcOperation operation, const RemoteRange& range) {
  assert(range.length <= kXrcDataRoom);
  return {.operation = operation,
          .rkey = range.rkey,
          .size = static_cast<uint32_t>(range.length),
          .address = range.address};
}

}  // namespace

Fault XrcForeign::write(Accessor who, const RemoteRange& range, const std::byte* from) {
  return ask(who, question_about(XrcOperation::kWrite, range), {.sent = from});
}

Fault XrcForeign::read(Accessor who, const RemoteRange& range, std::byte* to) {
  return ask(who, question_about(XrcOperation::kRead, range), {.received = to});
}

Fault XrcForeign::compare_swap(Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                               uint64_t& original) {
  return ask(who,
             {.operation = XrcOperation::kCompareSwap, .rkey = rkey, .address = address, .operands = {compare, swap}},
             {.original = &original});
}

Fault XrcForeign::fetch_add(Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) {
  return ask(who, {.operation = XrcOperation::kFetchAdd, .rkey = rkey, .address = address, .operands = {add, 0}},
             {.original = &original});
}

Fault XrcForeign::invalidate_remote(Accessor who, uint32_t rkey) {
  return ask(who, {.operation = XrcOperation::kInvalidate, .rkey = rkey}, {});
}

}  // namespace dapple::soft
