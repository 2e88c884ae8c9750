// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <librpma.h>

#include "rpma/flush_sink.hpp"
#include "rpma/link.hpp"
#include "rpma/unflushed_writes.hpp"

// Threads: confined to the user of the connection, except its CQs.
struct rpma_conn {
  const rpma_peer& peer;
  dapple::rpma::FlushSink flush_sink;  // outlives the queue pair
  dapple::rpma::Link link;
  ibv_qp* qp = nullptr;  // the link's
  bool direct_write_to_pmem = false;
  dapple::rpma::UnflushedWrites unflushed = {};

  // Frees as much as possible. Returns the first error, or 0.
  int close() noexcept {
    const int of_link = link.close();
    const int of_sink = flush_sink.close();
    return of_link ? of_link : of_sink;
  }
};
