// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The parts of a connection, which exist from the request on.
#pragma once

#include <librpma.h>

#include <memory>

#include "ibverbs-glue/rdma_cm.hpp"
#include "ibverbs-glue/verbs.hpp"
#include "rpma/cfg.hpp"
#include "rpma/common/native.hpp"
#include "rpma/common/slots.hpp"
#include "rpma/cq.hpp"
#include "rpma/memory/peer.hpp"

namespace dapple::rpma {

// A copy of the peer's private data. Its memory is there before the event that brings the data, because that event
// comes only once. It stays at its address when the request becomes a connection.
struct PrivateData {
  std::unique_ptr<uint8_t[]> bytes;
  uint8_t size = 0;

  // False without memory.
  [[nodiscard]] bool make_room() noexcept;
  void store(const verbs::CmEvent& event) noexcept;
  rpma_conn_private_data view() const noexcept { return {size > 0 ? bytes.get() : nullptr, size}; }
};

struct QpDeleter {
  void operator()(rdma_cm_id* id) const noexcept { rdma_destroy_qp(id); }
};

// Threads: confined to the user of the connection. The members are destroyed from the last to the first.
struct Link {
  verbs::EventChannel events;  // null before migrate()
  verbs::CmId id;
  // Only on a device that is not coherent; the second is null with a shared receive queue.
  std::unique_ptr<SendSlots> send_slots;
  std::unique_ptr<RecvSlots> own_recv_slots;
  RecvSlots* recv_slots = nullptr;
  verbs::CompChannel channel;  // null if the CQs share no channel
  std::unique_ptr<rpma_cq> cq;
  std::unique_ptr<rpma_cq> rcq;               // null if receives complete elsewhere
  std::unique_ptr<rdma_cm_id, QpDeleter> qp;  // owned by the id
  native::Operations native;
  PrivateData data;

  // Makes CQs and a queue pair for id, which is resolved or a request. function: that of librpma which the program has
  // called. Returns an RPMA_E_* or 0; after a failure the link can only be destroyed.
  int build(const rpma_peer& peer, const rpma_conn_cfg& cfg, const char* function) noexcept;
  // Gives the id its own event channel. Returns an RPMA_E_* or 0; after a failure the link can only be destroyed.
  int migrate() noexcept;
  // Frees as much as possible. Returns the first error, or 0.
  int close() noexcept;

 private:
  int make_qp(const rpma_peer& peer, const rpma_conn_cfg& cfg, ibv_cq* recv_cq) noexcept;
  int make_slots(const rpma_peer& peer, rpma_srq* srq, const ibv_qp_cap& cap) noexcept;
};

// The connection parameters of both sides.
rdma_conn_param connection_parameters(const rpma_conn_private_data* data) noexcept;

}  // namespace dapple::rpma
