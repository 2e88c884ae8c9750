// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/request_circles.hpp"

#include "provider/common/host_guards.hpp"
#include "provider/soft/explain/last_refusal.hpp"

namespace dapple::soft::explain {

void report_circle(check::Reporter& reporter, const char* verb, const std::string& name, uint64_t last,
                   uint64_t first) {
  const ErrnoGuard keep;
  const std::string text = check::format(
      "%s() for %s fails with EINVAL: the list of requests has no end, because next of the request with the wr_id %llu "
      "leads back to the one with the wr_id %llu.",
      verb, name.c_str(), check::number(last), check::number(first));
  remember_refusal(text);
  reporter.show({.level = check::Level::kError,
                 .kind = "refused-call",
                 .text = text,
                 .remedy = "Set next of the last request to null, also if the request was used before.",
                 .places = {{"called", check::here()}}});
}

void report_null_list(check::Reporter& reporter, const char* verb, const std::string& name, uint64_t id, int count) {
  const ErrnoGuard keep;
  const std::string text = check::format(
      "%s() for %s fails with EINVAL: sg_list of the request with the wr_id %llu is null, and num_sge is %d.", verb,
      name.c_str(), check::number(id), count);
  remember_refusal(text);
  reporter.show({.level = check::Level::kError,
                 .kind = "refused-call",
                 .text = text,
                 .remedy = "Give sg_list the address of the segments, or set num_sge to 0.",
                 .places = {{"called", check::here()}}});
}

}  // namespace dapple::soft::explain
