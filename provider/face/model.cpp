// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/model.hpp"

#include <cstring>
#include <initializer_list>

#include "provider/face/pci.hpp"
#include "provider/face/texts.hpp"
#include "provider/protocol/identity.hpp"

namespace dapple::face {
namespace {

// The versions of the kernel's interfaces.
constexpr char kVerbsAbi[] = "6\n";
constexpr char kMadAbi[] = "5\n";
constexpr char kDeviceAbi[] = "1\n";            // of the plug-in
constexpr uint32_t kCapabilities = 0x00010000;  // connection management

constexpr char kClass[] = "sys/class/infiniband";
constexpr char kVerbsClass[] = "sys/class/infiniband_verbs";

std::string line(const char* text) {
  return std::string(text) + '\n';
}

uint32_t minor_of(const ShownDevice& device) {
  return device.info->index - soft::kFirstDeviceIndex;
}

std::string uverbs_of(const ShownDevice& device) {
  return "uverbs" + std::to_string(soft::kFirstUverbs + minor_of(device));
}

// The folder that holds the folders infiniband and infiniband_verbs.
std::string parent_of(const ShownDevice& device) {
  return device.attributes->has_pci != 0 ? function_folder(*device.attributes) : "sys/devices/virtual";
}

void add_power(Tree& tree, const std::string& folder) {
  tree.add_file(folder + "/power/async", "disabled\n");
  tree.add_file(folder + "/power/control", "auto\n");
  for (const char* name : {"runtime_active_kids", "runtime_active_time", "runtime_suspended_time", "runtime_usage"}) {
    tree.add_file(folder + "/power/" + name, "0\n");
  }
  tree.add_file(folder + "/power/runtime_enabled", "disabled\n");
  tree.add_file(folder + "/power/runtime_status", "unsupported\n");
}

// Adds an entry whose read() fails: an empty file if `target` is null, else a link.
void add_unreadable(Tree& tree, const std::string& path, const char* target) {
  if (target == nullptr) {
    tree.add_empty(path);
  } else {
    tree.add_link(path, target);
  }
}

void add_gids(Tree& tree, const std::string& port, const soft::DeviceInfo& info, const char* unreadable) {
  for (uint32_t i = 0; i < soft::kMaxGids; i++) {
    const soft::GidEntry& entry = info.gids[i];
    const std::string number = std::to_string(i);
    tree.add_file(port + "/gids/" + number, gid_text(entry.gid));
    const std::string type = port + "/gid_attrs/types/" + number, netdev = port + "/gid_attrs/ndevs/" + number;
    if (entry.valid != 0) {
      tree.add_file(type, entry.type == soft::GidType::kRoceV1 ? "IB/RoCE v1\n" : "RoCE v2\n");
      tree.add_file(netdev, line(info.netdev));
    } else {
      add_unreadable(tree, type, unreadable);
      add_unreadable(tree, netdev, unreadable);
    }
  }
}

void add_counters(Tree& tree, const std::string& folder, const ShownDevice& device) {
  const std::string port = folder + "/ports/1";
  for (const CounterFile& file : port_counters()) {
    tree.add_file(port + "/counters/" + file.name, counter_text(file, device.counts));
  }
  for (const CounterFile& file : hardware_counters(device.attributes->driver)) {
    tree.add_file(port + "/hw_counters/" + file.name, counter_text(file, device.counts));
  }
}

// Adds the entries that are no links to other folders.
void add_device_files(Tree& tree, const std::string& folder, const ShownDevice& device, const char* unreadable) {
  const soft::DeviceInfo& info = *device.info;
  const soft::DeviceAttributes& attributes = *device.attributes;
  tree.add_file(folder + "/node_type", "1: CA\n");
  tree.add_file(folder + "/node_guid", guid_text(info.guid));
  tree.add_file(folder + "/sys_image_guid", guid_text(info.guid));
  tree.add_file(folder + "/node_desc", line(attributes.node_desc));
  tree.add_file(folder + "/fw_ver", line(attributes.fw_ver));
  // rxe lacks these two. Without them node_exporter finds no device, so the default identity has them, without a text.
  const bool is_default = attributes.profile[0] == '\0';
  if (is_default || attributes.hca_type[0] != '\0') tree.add_file(folder + "/hca_type", line(attributes.hca_type));
  if (is_default || attributes.board_id[0] != '\0') tree.add_file(folder + "/board_id", line(attributes.board_id));
  if (attributes.has_pci != 0) {
    tree.add_file(folder + "/hw_rev", hexadecimal_text(attributes.hw_ver, 0).substr(strlen("0x")));
  } else {
    tree.add_file(folder + "/parent", line(info.netdev));
  }
  tree.add_file(folder + "/uevent", "NAME=" + line(info.name));
  add_power(tree, folder);
  const std::string port = folder + "/ports/1";
  const bool up = info.up != 0;
  tree.add_file(port + "/state", state_text(up));
  tree.add_file(port + "/phys_state", physical_state_text(up));
  tree.add_file(port + "/rate", rate_text(attributes.active_speed, attributes.active_width));
  tree.add_file(port + "/link_layer", "Ethernet\n");
  tree.add_file(port + "/cap_mask", hexadecimal_text(kCapabilities, 8));
  for (const char* name : {"lid", "sm_lid"}) tree.add_file(port + '/' + name, "0x0\n");
  for (const char* name : {"lid_mask_count", "sm_sl"}) tree.add_file(port + '/' + name, "0\n");
  tree.add_file(port + "/pkeys/0", "0xffff\n");
  add_gids(tree, port, info, unreadable);
  add_counters(tree, folder, device);
}

void add_uverbs(Tree& tree, const ShownDevice& device) {
  const std::string name = uverbs_of(device);
  const std::string folder = parent_of(device) + "/infiniband_verbs/" + name;
  const std::string minor = std::to_string(minor_of(device)), major = std::to_string(soft::kUverbsMajor);
  tree.add_file(folder + "/ibdev", line(device.info->name));
  tree.add_file(folder + "/abi_version", kDeviceAbi);
  tree.add_file(folder + "/dev", major + ':' + minor + '\n');
  tree.add_file(folder + "/uevent",
                "MAJOR=" + major + "\nMINOR=" + minor + "\nDEVNAME=infiniband/" + name + "\nDEVMODE=0666\n");
  tree.add_link(folder + "/subsystem", way_up(folder) + "class/infiniband_verbs");
  if (device.attributes->has_pci != 0)
    tree.add_link(folder + "/device", "../../../" + function_name(*device.attributes));
  add_power(tree, folder);
  tree.add_link(std::string(kVerbsClass) + '/' + name, "../../" + folder.substr(strlen("sys/")));
  tree.add_device("dev/infiniband/" + name);
}

void add_device(Tree& tree, const ShownDevice& device) {
  const std::string folder = folder_of(device);
  add_device_files(tree, folder, device, nullptr);
  tree.add_link(folder + "/subsystem", way_up(folder) + "class/infiniband");
  if (device.attributes->has_pci != 0) {
    tree.add_link(folder + "/device", "../../../" + function_name(*device.attributes));
    add_function(tree, *device.attributes);
    add_netdev(tree, device);
  }
  tree.add_link(std::string(kClass) + '/' + device.info->name, "../../" + folder.substr(strlen("sys/")));
  add_uverbs(tree, device);
}

}  // namespace

std::string folder_of(const ShownDevice& device) {
  return parent_of(device) + "/infiniband/" + device.info->name;
}

Tree tree_of(const std::vector<ShownDevice>& devices, const std::vector<KernelEntry>& kernels) {
  Tree tree;
  // A device of ours hides one of the kernel's with the same name, as it does for libibverbs.
  for (const KernelEntry& entry : kernels) tree.add_link(entry.path, entry.target);
  tree.add_folder(kClass);
  tree.add_file(std::string(kVerbsClass) + "/abi_version", kVerbsAbi);
  tree.add_file("sys/class/infiniband_mad/abi_version", kMadAbi);
  tree.add_device("dev/infiniband/rdma_cm");
  for (const ShownDevice& device : devices) add_device(tree, device);
  return tree;
}

void add_live_files(Tree& tree, const ShownDevice& device) {
  add_counters(tree, folder_of(device), device);
}

Tree class_tree_of(const std::vector<ShownDevice>& devices, const char* unreadable) {
  Tree tree;
  for (const ShownDevice& device : devices) {
    const std::string folder = device.info->name;
    tree.add_file(folder + '/' + kMark, "dappled keeps this folder up to date, and removes it.\n");
    add_device_files(tree, folder, device, unreadable);
    if (device.attributes->has_pci != 0) add_function_files(tree, folder + "/device", *device.attributes);
    if (device.attributes->has_pci != 0) tree.add_folder(folder + "/device/net/" + device.info->netdev);
  }
  return tree;
}

void add_live_class_files(Tree& tree, const ShownDevice& device) {
  add_counters(tree, device.info->name, device);
}

}  // namespace dapple::face
