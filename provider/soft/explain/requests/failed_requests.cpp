// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/requests/failed_requests.hpp"

#include <optional>
#include <string>

#include "provider/common/host_guards.hpp"
#include "provider/network/address_text.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/check/checker.hpp"
#include "provider/soft/explain/failures.hpp"
#include "provider/soft/explain/object_names.hpp"
#include "provider/soft/explain/process_reporter.hpp"
#include "provider/soft/explain/requests/peers_end.hpp"
#include "provider/soft/faults/verbs_names.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "roce/send_queue/send_queue.hpp"

namespace dapple::soft::explain {
namespace {

using check::format;
using check::number;
using roce::CompletionStatus;

// "queue pair 0x11 at 10.0.0.1".
std::string peer_of(const Failure& failure) {
  return format("queue pair 0x%x at %s", failure.attributes.destination_qpn, AddressText(failure.peer).c_str());
}

// 4.096 us * 2^timeout.
std::string time_of(uint8_t timeout) {
  const double milliseconds = 0.004096 * static_cast<double>(uint64_t{1} << timeout);
  return milliseconds < 1000 ? format("%.3g ms", milliseconds) : format("%.3g s", milliseconds / 1000);
}

Reason of_retries(const Failure& failure) {
  const Reason difference = why_peer_is_silent(failure);
  std::string text = peer_of(failure) + format(" has not answered %u retries (retry_cnt) of %s each (timeout %u)",
                                               failure.attributes.retry_count,
                                               time_of(failure.attributes.timeout).c_str(), failure.attributes.timeout);
  for (const Reason& reason : {failure.detail, difference}) {
    if (!reason.text.empty()) return {text + "; " + reason.text, reason.remedy};
  }
  return {
      text,
      "Compare qp_num, PSNs, GIDs and path_mtu of both ends, and see whether the peer lives, its port is active, and "
      "UDP port 4791 is open: dapple-info --ping."};
}

// The peer's NAK has no reason.
Reason of_invalid_request(const Failure& failure) {
  const std::string refused = peer_of(failure) + " has refused the request: ";
  const bool is_atomic =
      failure.opcode == roce::SendOpcode::kCompareSwap || failure.opcode == roce::SendOpcode::kFetchAdd;
  if (is_atomic && failure.remote_address % 8 != 0) {
    return {refused + format("the address of the atomic, 0x%llx, is no multiple of 8", number(failure.remote_address)),
            "Use addresses that are aligned to 8 bytes for atomics."};
  }
  if (Reason known = why_peer_refuses(failure); !known.text.empty()) return {refused + known.text, known.remedy};
  if (roce::kWithResponse.has(failure.opcode)) {
    return {
        refused + format("its qp_access_flags lack the right, or its max_dest_rd_atomic is less than max_rd_atomic "
                         "here (%u)",
                         failure.attributes.max_rd_atomic),
        "Set qp_access_flags of the peer's queue pair, and max_rd_atomic of each end to at most max_dest_rd_atomic of "
        "the other."};
  }
  if (roce::kWrites.has(failure.opcode)) {
    return {refused + format("its qp_access_flags lack IBV_ACCESS_REMOTE_WRITE, or its path_mtu is not %u",
                             failure.attributes.path_mtu),
            "Set qp_access_flags of the peer's queue pair, and the same path_mtu at both ends."};
  }
  if (failure.type == IBV_QPT_XRC_SEND) {
    return {
        refused + format("its XRC domain has no shared receive queue with the number of the request, its receive is "
                         "shorter than %llu bytes, or its path_mtu is not %u",
                         number(failure.length), failure.attributes.path_mtu),
        "Set remote_srqn to the result of the peer's ibv_get_srq_num(), and make the queue and the peer's queue "
        "pair in one XRC domain of one process."};
  }
  return {refused + format("its receive is shorter than %llu bytes, or its path_mtu is not %u", number(failure.length),
                           failure.attributes.path_mtu),
          "Post receives that are as long as the longest message, and set the same path_mtu at both ends."};
}

Reason of_refused_access(const Failure& failure) {
  const std::string refused =
      peer_of(failure) + format(" has refused %llu bytes at 0x%llx by the rkey 0x%x: ", number(failure.length),
                                number(failure.remote_address), failure.rkey);
  if (!failure.detail.text.empty()) return {refused + failure.detail.text, failure.detail.remedy};
  return {refused + "the key is not valid there, or its memory lacks the bytes or the right",
          "Compare address and rkey with those that the peer has registered, and the access flags of the memory with "
          "the request; dapple-run --explain or --check of the peer names the mistake."};
}

// A receive that ends with an error of the peer's request.
Reason of_refused_receive(const Failure& failure) {
  const std::string from = peer_of(failure) + " has sent a request that this queue pair refuses: ";
  if (!failure.detail.text.empty()) return {from + failure.detail.text, failure.detail.remedy};
  return {from + "its packets do not follow each other, or have another size than path_mtu here asks for",
          "Set the same path_mtu at both ends, and look at the peer's completion."};
}

Reason reason_of(const Failure& failure, bool is_receive) {
  if (failure.is_planned)
    return {"the plan of faults (DAPPLE_FAULTS) lets this completion fail", "See whether the program copes with it."};
  switch (failure.status) {
    case CompletionStatus::kRetryExceeded:
      return of_retries(failure);
    case CompletionStatus::kRnrRetryExceeded:
      return {peer_of(failure) +
                  format(" had no receive posted, also after %u retries (rnr_retry)", failure.attributes.rnr_retry),
              "Let the peer post receives before this end sends, or set rnr_retry to 7, to retry for ever."};
    case CompletionStatus::kRemoteAccess:
      return of_refused_access(failure);
    case CompletionStatus::kRemoteInvalidRequest:
      // A receive of a rendezvous fails with the device's own Read.
      return is_receive && failure.opcode != roce::SendOpcode::kRead ? of_refused_receive(failure)
                                                                     : of_invalid_request(failure);
    case CompletionStatus::kLocalAccess:
      return of_refused_receive(failure);
    case CompletionStatus::kRemoteOperation:
      return {
          peer_of(failure) + " could not use the memory of its own receive",
          "See the peer's completion: the lkey of its receive is wrong, or its memory lacks IBV_ACCESS_LOCAL_WRITE."};
    case CompletionStatus::kLocalLength:
      if (is_receive) {
        return {format("the message is longer than the receive's %llu bytes", number(failure.length)),
                "Post receives that are as long as the peer's longest message."};
      }
      break;
    case CompletionStatus::kBadResponse: {
      const Reason known = why_answer_is_bad(failure);
      if (known.text.empty()) break;
      return {peer_of(failure) + " has not answered what the request asks for: " + known.text, known.remedy};
    }
    default:
      break;
  }
  if (!failure.detail.text.empty()) return failure.detail;
  return {"the device has kept no other reason", "Look at earlier completions of this queue pair, and at its peer's."};
}

// Some errors tell of the peer, or of the network: a program may cope with them.
check::Level level_of(const Failure& failure) {
  if (failure.is_planned) return check::Level::kNote;
  const bool tells_of_peer =
      failure.status == CompletionStatus::kRetryExceeded || failure.status == CompletionStatus::kRnrRetryExceeded;
  return tells_of_peer ? check::Level::kWarning : check::Level::kError;
}

// Tells whether dapple-run --check has reported the reason where the request failed.
bool is_told(const Failure& failure, bool is_receive) {
  using Told = check::ToldFailures;
  check::Checker* const checker = check::Checker::get();
  if (checker == nullptr || failure.is_planned) return false;
  if (failure.is_told) return true;
  if (is_receive) return checker->told.has(failure.qpn, Told::kPeersRequest);
  switch (failure.status) {
    case CompletionStatus::kRemoteInvalidRequest:
    case CompletionStatus::kRemoteAccess:
    case CompletionStatus::kRemoteOperation:
      return has_peers_end(failure) && checker->told.has(failure.attributes.destination_qpn, Told::kPeersRequest);
    case CompletionStatus::kLocalQpOperation:
      if (checker->told.take(failure.qpn, Told::kUnfitRequest)) return true;
      [[fallthrough]];
    default:
      return checker->told.take(failure.qpn, Told::kOwnRequest);
  }
}

}  // namespace

void report_failed_request(const ibv_cq* cq, uint32_t qpn, bool is_receive, uint64_t id, ibv_wc_status status) {
  const ErrnoGuard keep;
  const auto engines = static_cast<CompletionStatus>(status);
  const std::optional<Failure> failure = Failures::get().take(qpn, is_receive, id, engines);
  if (!failure || is_told(*failure, is_receive)) return;
  const Reason reason = reason_of(*failure, is_receive);
  const std::string what = is_receive            ? "A receive"
                           : failure->is_planned ? "A request"
                                                 : "The request IBV_WR_" + std::string(opcode_name(failure->opcode));
  process_reporter()->show({.level = level_of(*failure),
                            .kind = "failed-request",
                            .text = what + format(" (wr_id 0x%llx) of queue pair 0x%x of ", number(id), qpn) +
                                    name_of(cq->context) + " completes with IBV_WC_" +
                                    std::string(status_name(engines)) + ": " + reason.text + ".",
                            .remedy = reason.remedy,
                            .places = {{"polled", check::Stack::here()}}});
}

}  // namespace dapple::soft::explain
