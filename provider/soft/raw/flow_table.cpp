// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/flow_table.hpp"

#include <string.h>

namespace dapple::soft {
namespace {

// The values under the masks.
template <typename Wanted>
bool are_equal(const Wanted& a, const Wanted& b) {
  return memcmp(&a.mask, &b.mask, Wanted::kBytes) == 0 && a.fits(b.value);
}

// As mlx5: a flow that lets later ones have the frame is before all others of its priority.
int rank_of(const FlowRule& rule) {
  return 2 * rule.priority + (rule.continues ? 0 : 1);
}

}  // namespace

void FlowTable::add(FlowEntry& entry) {
  FlowEntry** at = &first_;
  while (*at != nullptr && rank_of((*at)->rule) <= rank_of(entry.rule)) at = &(*at)->next;
  entry.next = *at;
  *at = &entry;
}

void FlowTable::remove(FlowEntry& entry) {
  for (FlowEntry** at = &first_; *at != nullptr; at = &(*at)->next) {
    if (*at != &entry) continue;
    *at = entry.next;
    return;
  }
}

bool FlowTable::wants_the_same(const FlowRule& a, const FlowRule& b) {
  return a.match.network == b.match.network && a.match.transport == b.match.transport &&
         are_equal(a.match.ethernet, b.match.ethernet) && are_equal(a.match.ipv4, b.match.ipv4) &&
         are_equal(a.match.ipv6, b.match.ipv6) && are_equal(a.match.ports, b.match.ports);
}

}  // namespace dapple::soft
