// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/planned_names.hpp"

#include <cstdint>

namespace dapple::soft {
namespace {

struct Name {
  const char* name;
  size_t value;
};

constexpr Name kCounted[] = {
    // libibverbs' function for this operation has another name.
    {"ibv_query_rt_values_ex", static_cast<size_t>(provider::Operation::query_rt_values)},
#define DAPPLE_NAME(name) {"ibv_" #name, static_cast<size_t>(provider::Operation::name)},
    DAPPLE_PLANNED_VERBS(DAPPLE_NAME)
#undef DAPPLE_NAME
        {"ibv_open_device", kOpenDevice},
    {"completion", kCompletion},
    {"event", kEvent},
    {"link", kLink},
#define DAPPLE_NAME(name) {"rdma_" #name, static_cast<size_t>(PlannedCommand::name)},
    DAPPLE_PLANNED_COMMANDS(DAPPLE_NAME)
#undef DAPPLE_NAME
};

}  // namespace

size_t counted_of(std::string_view name) {
  for (const Name& candidate : kCounted) {
    if (candidate.name == name) return candidate.value;
  }
  return SIZE_MAX;
}

const char* counted_name(size_t of) {
  for (const Name& candidate : kCounted) {
    if (candidate.value == of) return candidate.name;
  }
  return "";
}

}  // namespace dapple::soft
