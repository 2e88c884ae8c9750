// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/malformed_posts.hpp"

#include "provider/common/host_guards.hpp"
#include "provider/soft/explain/last_refusal.hpp"

namespace dapple::soft::explain {

namespace {

void report(check::Reporter& reporter, const std::string& text, const char* remedy) {
  const ErrnoGuard keep;
  remember_refusal(text);
  reporter.show({.level = check::Level::kError,
                 .kind = "refused-call",
                 .text = text,
                 .remedy = remedy,
                 .places = {{"called", check::here()}}});
}

}  // namespace

void report_circle(check::Reporter& reporter, const char* verb, const std::string& name, uint64_t last,
                   uint64_t first) {
  report(reporter,
         check::format("%s() for %s fails with EINVAL: the list of requests has no end, because next of the request "
                       "with the wr_id %llu leads back to the one with the wr_id %llu.",
                       verb, name.c_str(), check::number(last), check::number(first)),
         "Set next of the last request to null, also if the request was used before.");
}

void report_null_list(check::Reporter& reporter, const char* verb, const std::string& name, uint64_t id, int count) {
  report(reporter,
         check::format("%s() for %s fails with EINVAL: sg_list of the request with the wr_id %llu is null, and num_sge "
                       "is %d.",
                       verb, name.c_str(), check::number(id), count),
         "Give sg_list the address of the segments, or set num_sge to 0.");
}

}  // namespace dapple::soft::explain
