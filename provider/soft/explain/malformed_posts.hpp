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

// Tells whether a request has segments, and no list of them.
inline bool lacks_list(const ibv_sge* list, int count) {
  return list == nullptr && count > 0;
}
inline bool lacks_list(const ibv_send_wr& wr) {
  return lacks_list(wr.sg_list, wr.num_sge) && wr.opcode != IBV_WR_BIND_MW && wr.opcode != IBV_WR_LOCAL_INV;
}
inline bool lacks_list(const ibv_recv_wr& wr) {
  return lacks_list(wr.sg_list, wr.num_sge);
}
inline bool lacks_list(const ibv_ops_wr& wr) {
  return wr.opcode == IBV_WR_TAG_ADD && lacks_list(wr.tm.add.sg_list, wr.tm.add.num_sge);
}
template <typename Request>
int segment_count_of(const Request& wr) {
  return wr.num_sge;
}
inline int segment_count_of(const ibv_ops_wr& wr) {
  return wr.tm.add.num_sge;
}

// Reports that the request with this id has `count` segments, and no list of them.
void report_null_list(check::Reporter& reporter, const char* verb, const std::string& name, uint64_t id, int count);

// Reports such a list, or a request whose list of segments is null. The caller refuses the post then, as above.
template <typename Object, typename Request>
bool is_malformed(check::Reporter& reporter, const char* verb, Object* object, Request* requests, Request** bad) {
  if (is_circle(reporter, verb, object, requests, bad)) return true;
  for (const Request* wr = requests; wr != nullptr; wr = wr->next) {
    if (!lacks_list(*wr)) [[likely]]
      continue;
    report_null_list(reporter, verb, name_of(object), wr->wr_id, segment_count_of(*wr));
    *bad = requests;
    errno = EINVAL;
    return true;
  }
  return false;
}

}  // namespace dapple::soft::explain
