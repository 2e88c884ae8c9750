// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/pci.hpp"

#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "provider/face/model.hpp"
#include "provider/face/texts.hpp"

namespace dapple::face {
namespace {

constexpr uint32_t kBridgeClass = 0x060400;
constexpr char kBus[] = "sys/bus/pci";

bool has_port_above(const soft::DeviceAttributes& attributes) {
  return attributes.pci_bus != 0;
}

std::string port_name(const soft::DeviceAttributes& attributes) {
  return pci_name(attributes.pci_domain, attributes.pci_bus - 1, 0, 0);
}

std::string root_folder(const soft::DeviceAttributes& attributes) {
  char name[32];
  snprintf(name, sizeof name, "pci%04x:%02x", attributes.pci_domain,
           attributes.pci_bus - (has_port_above(attributes) ? 1 : 0));
  return std::string("sys/devices/") + name;
}

void add_place_on_bus(Tree& tree, const std::string& folder) {
  const std::string name = folder.substr(folder.rfind('/') + 1);
  tree.add_link(folder + "/subsystem", way_up(folder) + "bus/pci");
  tree.add_link(std::string(kBus) + "/devices/" + name, "../../../" + folder.substr(strlen("sys/")));
}

void add_link_files(Tree& tree, const std::string& folder, const soft::DeviceAttributes& attributes) {
  const std::string speed = pci_speed_text(attributes.pci_link_speed), width = number_text(attributes.pci_link_width);
  for (const char* when : {"current", "max"}) {
    tree.add_file(folder + '/' + when + "_link_speed", speed);
    tree.add_file(folder + '/' + when + "_link_width", width);
  }
}

void add_place_of_memory(Tree& tree, const std::string& folder, const soft::DeviceAttributes& attributes) {
  tree.add_file(folder + "/numa_node", std::to_string(attributes.numa_node) + '\n');
  tree.add_file(folder + "/local_cpulist", std::string(attributes.cpu_list) + '\n');
  tree.add_file(folder + "/local_cpus", cpu_mask_text(attributes.cpu_list));
}

std::string uevent_of(const soft::DeviceAttributes& attributes) {
  char text[512];
  snprintf(text, sizeof text,
           "DRIVER=%s\nPCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\n"
           "MODALIAS=pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X\n",
           attributes.driver, attributes.pci_class, attributes.pci_vendor, attributes.pci_device,
           attributes.pci_subsystem_vendor, attributes.pci_subsystem_device, function_name(attributes).c_str(),
           attributes.pci_vendor, attributes.pci_device, attributes.pci_subsystem_vendor,
           attributes.pci_subsystem_device, attributes.pci_class >> 16 & 0xFF, attributes.pci_class >> 8 & 0xFF,
           attributes.pci_class & 0xFF);
  return text;
}

}  // namespace

std::string function_name(const soft::DeviceAttributes& attributes) {
  return pci_name(attributes.pci_domain, attributes.pci_bus, attributes.pci_slot, attributes.pci_function);
}

std::string function_folder(const soft::DeviceAttributes& attributes) {
  const std::string above = has_port_above(attributes) ? '/' + port_name(attributes) : std::string();
  return root_folder(attributes) + above + '/' + function_name(attributes);
}

void add_function_files(Tree& tree, const std::string& folder, const soft::DeviceAttributes& attributes) {
  const auto add = [&](const char* name, uint32_t number, int digits) {
    tree.add_file(folder + '/' + name, hexadecimal_text(number, digits));
  };
  add("vendor", attributes.pci_vendor, 4);
  add("device", attributes.pci_device, 4);
  add("subsystem_vendor", attributes.pci_subsystem_vendor, 4);
  add("subsystem_device", attributes.pci_subsystem_device, 4);
  add("class", attributes.pci_class, 6);
  add("revision", attributes.pci_revision, 2);
  tree.add_file(folder + "/enable", "1\n");
  tree.add_file(folder + "/uevent", uevent_of(attributes));
  add_place_of_memory(tree, folder, attributes);
  add_link_files(tree, folder, attributes);
}

void add_function(Tree& tree, const soft::DeviceAttributes& attributes) {
  if (has_port_above(attributes)) {
    const std::string port = root_folder(attributes) + '/' + port_name(attributes);
    tree.add_file(port + "/class", hexadecimal_text(kBridgeClass, 6));
    add_place_of_memory(tree, port, attributes);
    add_link_files(tree, port, attributes);
    add_place_on_bus(tree, port);
  }
  const std::string folder = function_folder(attributes);
  add_function_files(tree, folder, attributes);
  add_place_on_bus(tree, folder);
  if (attributes.driver[0] == '\0') return;
  const std::string driver = std::string("bus/pci/drivers/") + attributes.driver;
  tree.add_link(folder + "/driver", way_up(folder) + driver);
  tree.add_link("sys/" + driver + '/' + function_name(attributes), "../../../../" + folder.substr(strlen("sys/")));
}

void add_netdev(Tree& tree, const ShownDevice& device) {
  const std::string name = device.info->netdev;
  const std::string folder = function_folder(*device.attributes) + "/net/" + name;
  tree.add_folder(folder);
  for (const std::string& entry : device.netdev_entries) {
    tree.add_link(folder + '/' + entry, device.netdev_folder + '/' + entry);
  }
  tree.add_link(folder + "/device", "../../../" + function_name(*device.attributes));
  tree.add_link(folder + "/subsystem", way_up(folder) + "class/net");
  // The kernel's netdev has one function.
  if (device.info->rail != 0) return;
  tree.add_link("sys/class/net/" + name, "../../" + folder.substr(strlen("sys/")));
}

}  // namespace dapple::face
