// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The views of the table of devices: one for each identity that programs have chosen. A view keeps the devices' order,
// indexes, GUIDs, netdevs and GIDs, and gives each device another name, vendor and limits. It may have several devices
// of one netdev, and no others.
#pragma once

#include <cstdint>
#include <string_view>

#include "provider/face/identity/identity.hpp"
#include "provider/system/problem.hpp"

namespace dapple::dappled {

class Views {
 public:
  // The view of programs without an identity. It has no users to count, and always exists.
  static constexpr uint32_t kDefault = 0;
  static constexpr uint32_t kMax = 32;

  // The view of this DAPPLE_AS, which has one user more; kDefault if `problem` has the reason why there is none. An
  // identity that others use already is the same view.
  uint32_t take(std::string_view text, face::ProfileSource& source, soft::Problem& problem);
  // A user has gone. Without users a view's number is free for another identity.
  void leave(uint32_t view);

  const soft::Rails& rails(uint32_t view) const { return views_[view].identity.rails; }
  // Turns a device that rails() has, after DeviceTable::show(), into what this view's programs are told.
  void show(uint32_t view, soft::DeviceInfo& device) const;

  const soft::DeviceAttributes& attributes(uint32_t view) const { return views_[view].identity.attributes; }
  // The most devices that programs see on the netdev of these rails.
  uint32_t most_devices(const soft::Rails& rails) const;
  uint32_t users(uint32_t view) const { return views_[view].users; }

 private:
  struct View {
    face::Identity identity;
    uint32_t users = 0;
  };
  View views_[kMax];
};

}  // namespace dapple::dappled
