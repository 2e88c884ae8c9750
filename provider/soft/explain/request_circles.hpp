// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Posts whose list of requests has no end, under dapple-run --check and --hang.
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

}  // namespace dapple::soft::explain
