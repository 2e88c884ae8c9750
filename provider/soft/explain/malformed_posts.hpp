// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Posts whose list of requests has no end, under dapple-run --check and --hang, and those whose list of segments is
// null, under --check.
#pragma once

#include <errno.h>

#include <optional>

#include "provider/common/request_circle.hpp"
#include "provider/soft/check/reports/reporter.hpp"
#include "provider/soft/explain/object_names.hpp"

namespace dapple::soft::explain {

// Reports that `next` of the request with the id `last` leads back to the one with the id `first`.
void report_circle(check::Reporter& reporter, const char* verb, const std::string& name, uint64_t last, uint64_t first);

// Reports such a list. The caller refuses the post with EINVAL then, as with its first request in *bad.
template <typename Object, typename Request>
bool is_circle(check::Reporter& reporter, const char* verb, Object* object, Request* requests, Request** bad) {
  const std::optional<provider::RequestCircle<Request>> circle = provider::find_circle<Request>(requests);
  if (!circle) [[likely]]
    return false;
  report_circle(reporter, verb, name_of(object), circle->last->wr_id, circle->first->wr_id);
  *bad = requests;
  errno = EINVAL;
  return true;
}

inline bool uses_segments(const ibv_send_wr& wr) {
  return wr.opcode != IBV_WR_BIND_MW && wr.opcode != IBV_WR_LOCAL_INV;
}
inline bool uses_segments(const ibv_recv_wr&) {
  return true;
}

// Reports that the request with this id has `count` segments, and no list of them.
void report_null_list(check::Reporter& reporter, const char* verb, const std::string& name, uint64_t id, int count);

// Reports such a list, or a request whose list of segments is null. The caller refuses the post then, as above.
template <typename Object, typename Request>
bool is_malformed(check::Reporter& reporter, const char* verb, Object* object, Request* requests, Request** bad) {
  if (is_circle(reporter, verb, object, requests, bad)) return true;
  for (const Request* wr = requests; wr != nullptr; wr = wr->next) {
    if (wr->sg_list != nullptr || wr->num_sge <= 0 || !uses_segments(*wr)) [[likely]]
      continue;
    report_null_list(reporter, verb, name_of(object), wr->wr_id, wr->num_sge);
    *bad = requests;
    errno = EINVAL;
    return true;
  }
  return false;
}

}  // namespace dapple::soft::explain
