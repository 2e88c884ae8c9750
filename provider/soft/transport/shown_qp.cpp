// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/transport/shown_qp.hpp"

#include "provider/soft/transport/context.hpp"

namespace dapple::soft {

ResourceRow row_of(const Qp& qp) {
  assert_held(qp.mutex);
  const roce::QpAttributes now = qp.engine->attributes();
  ResourceRow row = qp.context->row_of(ResourceKind::kQp);
  row.type = static_cast<uint8_t>(qp.init.qp_type);
  row.port = qp.address.port;
  row.number = qp.qpn;
  row.pd = qp.domain->shown.row_number();
  row.send_cq = qp.send_cq->shown.row_number();
  row.receive_cq = qp.recv_cq->shown.row_number();
  row.srq = qp.srq == nullptr ? 0 : qp.srq->shown.row_number();
  row.remote_qpn = now.destination_qpn;
  row.receive_psn = now.receive_psn & 0xFFFFFF;
  row.send_psn = now.send_psn & 0xFFFFFF;
  row.path_mtu = now.path_mtu / 256;
  row.peers_access = now.access & 0xFF;
  row.max_dest_rd_atomic = now.max_dest_rd_atomic;
  row.state = static_cast<uint32_t>(qp.engine->state());
  return row;
}

}  // namespace dapple::soft
