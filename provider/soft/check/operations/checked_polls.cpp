// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/operations/checked_polls.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/loan_findings.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/sanitizers/watched.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"

namespace dapple::soft::check {
namespace {

// A peer's bytes may be an answer, and so may those that a Read or an atomic brings.
bool brings_bytes(uint32_t opcode) {
  return (opcode & IBV_WC_RECV) != 0 || opcode == IBV_WC_RDMA_READ || opcode == IBV_WC_COMP_SWAP ||
         opcode == IBV_WC_FETCH_ADD;
}

void end_loans(Checker& checker, uint32_t qpn, uint64_t id, uint32_t opcode, uint32_t status) {
  if (status != IBV_WC_SUCCESS) return checker.lent.forget(qpn);
  if ((opcode & IBV_WC_RECV) == 0) report_changed(checker, checker.lent.polled(qpn, id));
  if (brings_bytes(opcode)) report_changed(checker, checker.lent.peer_told());
}

// After an error the bytes mean nothing. This device tells the opcode then, too.
void polled(Checker& checker, uint32_t qpn, uint64_t id, uint32_t opcode, uint32_t status, uint32_t flags) {
  // These end no request: an operation on a list of tags, and a match whose bytes have not come yet.
  if ((opcode >= IBV_WC_TM_ADD && opcode <= IBV_WC_TM_SYNC) || is_match_alone(status, flags)) return;
  if (status == IBV_WC_TM_RNDV_INCOMPLETE) status = IBV_WC_SUCCESS;  // the program reads what has come
  end_loans(checker, qpn, id, opcode, status);
  if (checker.races != nullptr) checker.races->polled(qpn, (opcode & IBV_WC_RECV) != 0, id);
  const std::vector<WithheldBytes::Changed> changed = checker.withheld.polled(qpn, id, (opcode & IBV_WC_RECV) != 0);
  if (status == IBV_WC_SUCCESS) report_written(checker, changed);
  const std::optional<PostedContexts::Freed> freed = checker.contexts.polled(qpn, id, (opcode & IBV_WC_RECV) != 0);
  // A program may know its requests by these addresses, and be done with them when it destroys the queue pair.
  if (freed && status != IBV_WC_WR_FLUSH_ERR) report_freed_context(checker, id, *freed);
  if (status == IBV_WC_WR_FLUSH_ERR && (opcode & IBV_WC_RECV) == 0) checker.polled_flush(qpn, id);
}

// The program has got the completion in `cq.current`.
void took_current(Cq& cq) {
  Checker& checker = *Checker::get();
  const roce::Completion& taken = cq.current;
  polled(checker, taken.qpn, taken.request_id, static_cast<uint32_t>(taken.opcode), static_cast<uint32_t>(taken.status),
         taken.flags);
}

int start_poll(ibv_cq_ex* ibv, ibv_poll_cq_attr* attr) {
  Cq& cq = *ours<Cq>(ibv);
  const int error = cq.below_check.start_poll(ibv, attr);
  if (error == 0) took_current(cq);
  return error;
}

int next_poll(ibv_cq_ex* ibv) {
  Cq& cq = *ours<Cq>(ibv);
  const int error = cq.below_check.next_poll(ibv);
  if (error == 0) took_current(cq);
  return error;
}

}  // namespace

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) {
  Checker& checker = *Checker::get();
  const int got = unchecked_operations().poll_cq(cq, count, completions);
  for (int i = 0; i < got; i++) {
    const ibv_wc& completion = completions[i];
    polled(checker, completion.qp_num, completion.wr_id, completion.opcode, completion.status, completion.wc_flags);
  }
  return got;
}

void watch_polls(Cq& cq) {
  ibv_cq_ex& ex = cq.abi.cq_ex;
  cq.below_check = {ex.start_poll, ex.next_poll};
  ex.start_poll = watched<start_poll>();
  ex.next_poll = watched<next_poll>();
}

}  // namespace dapple::soft::check
