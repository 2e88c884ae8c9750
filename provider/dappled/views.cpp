// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/views.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cassert>

namespace dapple::dappled {

uint32_t Views::take(std::string_view text, face::ProfileSource& source, soft::Problem& problem) {
  face::Identity identity;
  if (!face::read_identity(text, source, identity, problem)) return kDefault;
  uint32_t free = kDefault;
  for (uint32_t i = 1; i < kMax; i++) {
    View& view = views_[i];
    if (view.users == 0) {
      if (free == kDefault) free = i;
    } else if (view.identity == identity) {
      view.users++;
      return i;
    }
  }
  if (free == kDefault) {
    problem.set(EBUSY, "dappled tells %u identities already, and takes no more; end a program", kMax - 1);
    return kDefault;
  }
  views_[free] = {identity, 1};
  return free;
}

void Views::leave(uint32_t view) {
  assert(view < kMax);
  if (view == kDefault) return;
  assert(views_[view].users > 0);
  views_[view].users--;
}

uint32_t Views::most_devices(const soft::Rails& rails) const {
  uint32_t most = 0;
  for (const View& view : views_) {
    const soft::Rails& other = view.identity.rails;
    const bool same = strncmp(other.netdev, rails.netdev, sizeof other.netdev) == 0;
    if (view.users > 0 && same) most = std::max(most, other.count);
  }
  return most;
}

void Views::show(uint32_t view, soft::DeviceInfo& device) const {
  assert(view < kMax && (view == kDefault || views_[view].users > 0));
  if (view != kDefault) face::apply(views_[view].identity, device);
}

}  // namespace dapple::dappled
