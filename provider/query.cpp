// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/query.hpp"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "provider/decision.hpp"
#include "provider/overlay/overlay.hpp"
#include "provider/override.hpp"
#include "provider/software_device.hpp"

namespace dapple::provider {
namespace {

void complain_once(const char* value, const char* error) {
  static std::atomic<bool> said = false;
  if (said.exchange(true, std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  fprintf(stderr, "dapple: %s=%s: %s\n", kCoherenceVariable, value, error);
  errno = saved_errno;
}

}  // namespace

int query_device(const coherence::CpuDescription& cpu, const char* environment, ibv_context* context,
                 const char* parameter, dappledv_device_attr* attr) noexcept {
  if (context == nullptr || context->device == nullptr || attr == nullptr) return EINVAL;

  Facts facts = {};
  if (environment != nullptr) {
    const char* name = context->device->name;
    const Override found = find_override(environment, {name, strnlen(name, sizeof(context->device->name))});
    if (found.error != nullptr) {
      complain_once(environment, found.error);
      return EINVAL;
    }
    facts.environment = found.coherence;
  }
  if (parameter != nullptr) {
    facts.parameter = parse_coherence_word(parameter);
    if (!facts.parameter) return EINVAL;
  }
  if (fill_if_emulated(context, attr)) return 0;
  facts.software_device = is_software_device(*context);
  facts.architecture = this_architecture();
  fill_device_attr(decide(facts), cpu, *attr);
  return 0;
}

}  // namespace dapple::provider
