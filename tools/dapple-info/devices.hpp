// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The RDMA devices of this machine and libdapple's information about them.
#pragma once

#include <infiniband/dappledv.h>

#include <optional>
#include <string>
#include <vector>

#include "ibverbs-glue/rdma_devices.hpp"
#include "tools/dapple-info/ports.hpp"
#include "tools/report/json.hpp"

namespace dapple::info {

// The attributes of an open device, from libdapple and from the device.
struct Attributes : dappledv_device_attr {
  std::optional<ibv_device_attr_ex> capabilities;  // empty: the device did not answer
};

struct Device {
  verbs::RdmaDevice kernel;  // as the kernel reports it
  std::optional<Attributes> attr;
  std::string problem;  // why attr is missing
  std::vector<Port> ports;
  std::string overlay;  // if attr is set: "yes", or why dapple-run could not put its overlay over the device
};

// Opens each device for a moment.
std::vector<Device> read_devices();

std::string devices_for_people(const std::vector<Device>& devices);
Json devices_as_json(const std::vector<Device>& devices);

// Suggestions of dapple's commands for these devices; may be empty.
std::string what_to_run(const std::vector<Device>& devices);
// Advice for a machine without a device. netdev: a network device of this machine, or "eth0". with_softroce: the
// machine has dapple-softroce.
std::string how_to_get_a_device(const std::string& netdev, bool with_softroce);
// The folder of this program and those of PATH, joined by colons.
std::string program_folders();
// True if one of these folders, joined by colons, has dapple-softroce, which exists for x86-64 alone.
bool has_softroce(const std::string& folders);
// A network device that is up and is not loopback, or "eth0".
std::string some_netdev();

}  // namespace dapple::info
