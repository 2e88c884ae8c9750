// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tombs/ended_ids.hpp"

#include <string.h>

#include "provider/soft/check/reports/loaded_heap.hpp"
#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/tombs/tombs.hpp"

namespace dapple::soft::tombs {
namespace {

bool has_ended(const void* id, const char* function) {
  return Tombs::get().report_if_ended(id, function);
}

void ended(const void* id, const char* function) {
  const bool is_ep = strcmp(function, "rdma_destroy_ep") == 0;
  Tombs::get().add(
      id, {.name = check::format("the rdma_cm_id at %p", id),
           .verb = function,
           .places = {{is_ep ? "destroyed by rdma_destroy_ep" : "destroyed by rdma_destroy_id", check::here()}}});
}

void given_back(const void* id) {
  Tombs::get().remove(id);
}

}  // namespace

void watch_ids() {
  const Heap* heap = check::loaded_heap();
  if (heap == nullptr) return;
  static constexpr IdWatcher kWatcher = {ended, given_back, has_ended};
  heap->watch_ids(kWatcher);
}

}  // namespace dapple::soft::tombs
