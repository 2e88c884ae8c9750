// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/operations/checking_events.hpp"

#include "provider/common/clock.hpp"
#include "provider/soft/check/access_findings.hpp"
#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::check {

namespace {

std::string remedy_for(const char* right, bool has_rdma_cms_rights) {
  if (has_rdma_cms_rights) {
    return "Give responder_resources at this end, and initiator_depth at the peer's, a value above 0 in the "
           "rdma_conn_param of rdma_connect() and rdma_accept().";
  }
  return right != nullptr ? format("Set %s in qp_access_flags when ibv_modify_qp() initializes the queue pair.", right)
                          : "Set max_dest_rd_atomic when ibv_modify_qp() takes the queue pair to RTR.";
}

}  // namespace

void CheckingEvents::refused(uint32_t access) {
  const char* right = missing_right(access, qp_.engine->attributes().access);
  checker_.told.add(qp_.qpn, ToldFailures::kPeersRequest);
  std::vector<ReportedStack> places;
  if (const std::optional<ReportedStack> made = checker_.objects.made(&qp_)) places.push_back(*made);
  checker_.reporter.show(
      {.kind = "missing-right",
       .text =
           format("A peer's request reaches queue pair 0x%x of %s, whose ", qp_.qpn, qp_.context->ibv->device->name) +
           (right != nullptr ? format("qp_access_flags lack %s.", right) : "max_dest_rd_atomic is 0."),
       .remedy = remedy_for(right, qp_.layers.checked->has_rdma_cms_rights.load(std::memory_order_relaxed)),
       .places = places});
  below_.refused(access);
}

// Under the queue pair's lock, as forget_unready() for a message.
void CheckingEvents::not_ready() {
  if (unready_since() == 0) unready_since_.store(now_ns(), std::memory_order_relaxed);
  below_.not_ready();
}

}  // namespace dapple::soft::check
