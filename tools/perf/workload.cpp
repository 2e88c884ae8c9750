// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/perf/common/failure.hpp"

namespace dapple::perf {
namespace {

constexpr uint64_t kPage = 65536;

DAT_MEM_PRIV_FLAGS privileges_for(const Parameters& parameters) {
  if (parameters.kind == Kind::kTest) return DAT_MEM_PRIV_ALL_FLAG;
  constexpr int kLocal = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
  switch (parameters.operation) {
    case Operation::kWrite:
      return static_cast<DAT_MEM_PRIV_FLAGS>(kLocal | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
    case Operation::kRead:
      return static_cast<DAT_MEM_PRIV_FLAGS>(kLocal | DAT_MEM_PRIV_REMOTE_READ_FLAG);
    case Operation::kSend:
      break;
  }
  return static_cast<DAT_MEM_PRIV_FLAGS>(kLocal);
}

}  // namespace

Areas::Areas(Session& session, const Parameters& parameters)
    : stride_((parameters.size + kPage - 1) / kPage * kPage),
      region_(session, 3 * stride_, privileges_for(parameters)) {}

ConnectionOptions queues_for(const Parameters& parameters, bool client) {
  ConnectionOptions options;
  // The completion of an answer is taken after the next request was posted.
  if (parameters.kind == Kind::kLatency && !client) options.requests = 2;
  if (parameters.kind != Kind::kBandwidth) return options;
  options.requests = client ? parameters.depth : 1;
  // The client's messages before the server answers: at most two are outstanding.
  if (parameters.operation == Operation::kSend) options.receives = client ? 2 : 2 * parameters.depth;
  return options;
}

uint64_t largest_size(const DAT_IA_ATTR& attr, const Parameters& parameters) {
  if (parameters.kind == Kind::kTest) return std::min<uint64_t>(attr.max_message_size, attr.max_rdma_size);
  return parameters.operation == Operation::kSend ? attr.max_message_size : attr.max_rdma_size;
}

void check_size(const Session& session, const Parameters& parameters) {
  const uint64_t largest = largest_size(session.attr(), parameters);
  if (parameters.size <= largest) return;
  throw Failure(
      fmt::format("the IA {} takes messages of up to {} bytes, not {}", session.name(), largest, parameters.size));
}

void post_first_receives(Side& side, bool client) {
  const uint32_t count = queues_for(side.parameters, client).receives;
  for (uint32_t i = 0; i < count; ++i) {
    side.connection.post_receive(side.areas.region().segment(side.areas.inbox(), side.parameters.size));
  }
}

}  // namespace dapple::perf
