// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The work of client and server of each program after they have connected. A server uses the parameters of its client.
#pragma once

#include <string>
#include <vector>

#include "tools/perf/common/parameters.hpp"
#include "tools/perf/connection/connection.hpp"
#include "tools/perf/connection/region.hpp"
#include "tools/perf/results.hpp"

namespace dapple::perf {

// The memory of a side: three areas of the largest size. Each begins at a page, at the same offsets on both sides.
class Areas {
 public:
  // The peer gets only the rights that the operation needs.
  Areas(Session& session, const Parameters& parameters);

  Region& region() { return region_; }
  size_t outbox() const { return 0; }            // the source of Sends and Writes
  size_t inbox() const { return stride_; }       // the target of receives, and of the peer's Writes in a latency test
  size_t target() const { return 2 * stride_; }  // for the peer's Writes and Reads
  // One of the peer's areas.
  static RemoteMemory at(const RemoteMemory& peer, size_t area) { return {peer.address + area, peer.rmr_context}; }

 private:
  size_t stride_;
  Region region_;
};

// One side of a run: its objects, and the memory of the peer.
struct Side {
  Session& session;
  Areas& areas;
  Connection& connection;
  const Parameters& parameters;
  RemoteMemory peer;
};

// The largest size that an IA supports.
uint64_t largest_size(const DAT_IA_ATTR& attr, const Parameters& parameters);
// Throws if the IA does not support the size.
void check_size(const Session& session, const Parameters& parameters);
// Posts the receives that the peer's first messages need. One receive remains for the client's goodbye.
void post_first_receives(Side& side, bool client);
// The number of requests and receives that a side has posted at a time.
ConnectionOptions queues_for(const Parameters& parameters, bool client);

// The client's side returns a row for each size. The client's goodbye follows both.
std::vector<Result> run_latency_client(Side& side);
void run_latency_server(Side& side);
std::vector<Result> run_bandwidth_client(Side& side);
void run_bandwidth_server(Side& side);
std::vector<Result> run_test_client(Side& side);
void run_test_server(Side& side);

}  // namespace dapple::perf
