// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/devices.hpp"

#include <errno.h>
#include <string.h>

#include "provider/common/host_guards.hpp"
#include "provider/preload/doors/link.hpp"

namespace dapple::doors {
namespace {

// Null if dappled cannot be reached.
soft::DaemonLink* asked(soft::Problem& problem) {
  soft::DaemonLink* link = connection(problem);
  if (link == nullptr) complain(problem);
  return link;
}

}  // namespace

uint32_t list_devices(uint32_t (&indexes)[soft::kMaxDevices]) {
  const CancelGuard whole;
  const SignalGuard quiet;
  soft::Problem problem;
  soft::DaemonLink* link = asked(problem);
  if (link == nullptr) return 0;
  soft::DeviceList list;
  if (!link->devices(list, problem)) {
    complain(problem);
    return 0;
  }
  memcpy(indexes, list.indexes, sizeof list.indexes);
  return list.count;
}

bool get_device(uint32_t index, soft::DeviceInfo& device) {
  soft::Problem problem;
  {
    const CancelGuard whole;
    const SignalGuard quiet;
    soft::DaemonLink* link = asked(problem);
    if (link != nullptr && link->device(index, device, problem)) return true;
    // A network interface may go at any time; anything else is worth a line.
    if (link != nullptr && problem.error != ENODEV) complain(problem);
  }
  errno = problem.error != 0 ? problem.error : ENODEV;
  return false;
}

bool get_device_named(const char* name, size_t size, soft::DeviceInfo& device) {
  uint32_t indexes[soft::kMaxDevices];
  const uint32_t count = list_devices(indexes);
  for (uint32_t i = 0; i < count; ++i) {
    if (get_device(indexes[i], device) && strlen(device.name) == size && memcmp(device.name, name, size) == 0) {
      return true;
    }
  }
  errno = ENODEV;
  return false;
}

}  // namespace dapple::doors
