// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <librpma.h>

#include <memory>

#include "rpma/link.hpp"

// Threads: confined to the user of the request.
struct rpma_conn_req {
  const rpma_peer& peer;
  dapple::rpma::Link link;
  bool passive;  // a peer made it
};

namespace dapple::rpma {

// id: resolved, or a peer's request (passive). Returns an RPMA_E_* or 0; a failure destroys the id.
int make_request(const rpma_peer& peer, verbs::CmId id, const rpma_conn_cfg& cfg, bool passive,
                 std::unique_ptr<rpma_conn_req>& out) noexcept;

}  // namespace dapple::rpma
