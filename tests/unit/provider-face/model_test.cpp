// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/model.hpp"

#include <string.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::face;

namespace {

soft::DeviceInfo info;
soft::DeviceAttributes attributes;
ShownDevice device;
const char kFolder[] = "sys/devices/virtual/infiniband/dapple0";

int start(void**) {
  info = {};
  strcpy(info.name, "dapple0");
  strcpy(info.netdev, "eth0");
  info.index = soft::kFirstDeviceIndex;
  info.guid = 0x505400FFFE123456;
  info.up = 1;
  const uint8_t gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 9, 0, 1};
  memcpy(info.gids[1].gid, gid, sizeof gid);
  info.gids[1].valid = 1;
  info.gids[2] = info.gids[1];
  info.gids[2].type = soft::GidType::kRoceV1;
  attributes = {};
  device = {};
  device.info = &info;
  device.attributes = &attributes;
  return 0;
}

void use_pci() {
  attributes.has_pci = 1;
  attributes.pci_bus = 0x3B;
  attributes.pci_vendor = 0x15B3;
  attributes.pci_device = 0x1021;
  attributes.pci_link_speed = 320;
  attributes.pci_link_width = 16;
  attributes.numa_node = 1;
  attributes.active_speed = 128;
  attributes.active_width = 2;
  strcpy(attributes.cpu_list, "0-15");
  strcpy(attributes.driver, "mlx5_core");
  strcpy(attributes.hca_type, "MT4129");
}

// Empty if the path is not there.
const char* text_at(Tree& tree, const std::string& path) {
  const Node* node = tree.find(path);
  return node == nullptr ? "" : node->text.c_str();
}

// The tree's path behind all links; empty if one leads nowhere.
std::string follow(Tree& tree, const std::string& path) {
  std::string at;
  size_t from = 0;
  for (int links = 0; from < path.size();) {
    const size_t end = std::min(path.find('/', from), path.size());
    const std::string part = path.substr(from, end - from);
    from = end + 1;
    if (part == "..") {
      at = at.substr(0, at.rfind('/') == std::string::npos ? 0 : at.rfind('/'));
      continue;
    }
    const std::string here = at.empty() ? part : at + '/' + part;
    const Node* node = tree.find(here);
    if (node == nullptr || links > 8) return {};
    if (node->kind == NodeKind::kLink) {
      links++;
      const std::string rest = from < path.size() ? path.substr(from) : std::string();
      return follow(tree, at + '/' + node->text + (rest.empty() ? "" : '/' + rest));
    }
    at = here;
  }
  return at;
}

void tree_of__virtual_device__has_the_kernels_layout(void**) {
  Tree tree = tree_of({device}, {});
  const std::string folder = kFolder, port = folder + "/ports/1";
  assert_string_equal(text_at(tree, "sys/class/infiniband/dapple0"), "../../devices/virtual/infiniband/dapple0");
  assert_string_equal(text_at(tree, folder + "/subsystem"), "../../../../class/infiniband");
  assert_string_equal(text_at(tree, folder + "/node_type"), "1: CA\n");
  assert_string_equal(text_at(tree, folder + "/node_guid"), "5054:00ff:fe12:3456\n");
  assert_string_equal(text_at(tree, folder + "/fw_ver"), "\n");
  assert_string_equal(text_at(tree, folder + "/parent"), "eth0\n");
  assert_string_equal(text_at(tree, folder + "/uevent"), "NAME=dapple0\n");
  assert_null(tree.find(folder + "/device"));
  assert_string_equal(text_at(tree, folder + "/hca_type"), "\n");
  assert_string_equal(text_at(tree, port + "/state"), "4: ACTIVE\n");
  assert_string_equal(text_at(tree, port + "/phys_state"), "5: LinkUp\n");
  assert_string_equal(text_at(tree, port + "/rate"), "2.5 Gb/sec (1X SDR)\n");
  assert_string_equal(text_at(tree, port + "/link_layer"), "Ethernet\n");
  assert_string_equal(text_at(tree, port + "/cap_mask"), "0x00010000\n");
  assert_string_equal(text_at(tree, port + "/lid"), "0x0\n");
  assert_string_equal(text_at(tree, port + "/sm_sl"), "0\n");
  assert_string_equal(text_at(tree, port + "/pkeys/0"), "0xffff\n");
  assert_string_equal(text_at(tree, "sys/class/infiniband_verbs/abi_version"), "6\n");
  assert_string_equal(text_at(tree, "sys/class/infiniband_mad/abi_version"), "5\n");
  assert_true(tree.find("dev/infiniband/rdma_cm")->kind == NodeKind::kDevice);
}

void tree_of__profile_without_a_text__lacks_the_file(void**) {
  strcpy(attributes.profile, "some");
  Tree tree = tree_of({device}, {});
  assert_null(tree.find(std::string(kFolder) + "/hca_type"));
  assert_null(tree.find(std::string(kFolder) + "/board_id"));
  assert_string_equal(text_at(tree, std::string(kFolder) + "/fw_ver"), "\n");
}

void tree_of__gids__empty_entries_cannot_be_read(void**) {
  Tree tree = tree_of({device}, {});
  const std::string port = std::string(kFolder) + "/ports/1";
  assert_string_equal(text_at(tree, port + "/gids/0"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
  assert_string_equal(text_at(tree, port + "/gids/1"), "0000:0000:0000:0000:0000:ffff:0a09:0001\n");
  assert_true(tree.find(port + "/gid_attrs/types/0")->kind == NodeKind::kEmpty);
  assert_true(tree.find(port + "/gid_attrs/ndevs/0")->kind == NodeKind::kEmpty);
  assert_string_equal(text_at(tree, port + "/gid_attrs/types/1"), "RoCE v2\n");
  assert_string_equal(text_at(tree, port + "/gid_attrs/types/2"), "IB/RoCE v1\n");
  assert_string_equal(text_at(tree, port + "/gid_attrs/ndevs/1"), "eth0\n");
}

void tree_of__uverbs__name_their_device(void**) {
  Tree tree = tree_of({device}, {});
  const std::string folder = "sys/devices/virtual/infiniband_verbs/uverbs4096";
  assert_string_equal(text_at(tree, "sys/class/infiniband_verbs/uverbs4096"),
                      "../../devices/virtual/infiniband_verbs/uverbs4096");
  assert_string_equal(text_at(tree, folder + "/ibdev"), "dapple0\n");
  assert_string_equal(text_at(tree, folder + "/dev"), "4000:0\n");
  assert_true(tree.find("dev/infiniband/uverbs4096")->kind == NodeKind::kDevice);
}

void tree_of__pci_function__is_behind_device(void**) {
  use_pci();
  Tree tree = tree_of({device}, {});
  const std::string function = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  assert_string_equal(follow(tree, "sys/class/infiniband/dapple0/device").c_str(), function.c_str());
  assert_string_equal(follow(tree, "sys/class/infiniband_verbs/uverbs4096/device").c_str(), function.c_str());
  assert_string_equal(follow(tree, "sys/class/net/eth0/device").c_str(), function.c_str());
  assert_string_equal(follow(tree, "sys/bus/pci/devices/0000:3b:00.0").c_str(), function.c_str());
  assert_string_equal(follow(tree, "sys/bus/pci/drivers/mlx5_core/0000:3b:00.0").c_str(), function.c_str());
  assert_string_equal(follow(tree, "sys/class/infiniband/dapple0/device/driver").c_str(),
                      "sys/bus/pci/drivers/mlx5_core");
  assert_string_equal(follow(tree, "sys/class/infiniband/dapple0/device/subsystem").c_str(), "sys/bus/pci");
  assert_string_equal(follow(tree, "sys/class/net/eth0/device/infiniband/dapple0/subsystem").c_str(),
                      "sys/class/infiniband");
  assert_string_equal(follow(tree, "sys/class/infiniband/dapple0/device/net/eth0").c_str(),
                      (function + "/net/eth0").c_str());
  assert_string_equal(text_at(tree, function + "/vendor"), "0x15b3\n");
  assert_string_equal(text_at(tree, function + "/class"), "0x020000\n");
  assert_string_equal(text_at(tree, function + "/numa_node"), "1\n");
  assert_string_equal(text_at(tree, function + "/local_cpulist"), "0-15\n");
  assert_string_equal(text_at(tree, function + "/local_cpus"), "0000ffff\n");
  assert_string_equal(text_at(tree, function + "/max_link_speed"), "32.0 GT/s PCIe\n");
  assert_string_equal(text_at(tree, function + "/current_link_width"), "16\n");
  assert_string_equal(text_at(tree, function + "/infiniband/dapple0/hca_type"), "MT4129\n");
  assert_string_equal(text_at(tree, function + "/infiniband/dapple0/ports/1/rate"), "400 Gb/sec (4X NDR)\n");
  assert_non_null(tree.find(function + "/infiniband/dapple0/ports/1/hw_counters/np_cnp_sent"));
}

void tree_of__two_devices_of_a_netdev__the_first_one_has_it(void**) {
  use_pci();
  soft::DeviceInfo second_info = info;
  soft::DeviceAttributes second_attributes = attributes;
  strcpy(second_info.name, "dapple1");
  second_info.index = soft::kFirstRailIndex;
  second_info.rail = 1;
  second_attributes.pci_bus += 16;
  ShownDevice second = device;
  second.info = &second_info;
  second.attributes = &second_attributes;
  Tree tree = tree_of({device, second}, {});
  const std::string first = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  const std::string other = "sys/devices/pci0000:4a/0000:4a:00.0/0000:4b:00.0";
  assert_string_equal(follow(tree, "sys/class/net/eth0/device").c_str(), first.c_str());
  assert_string_equal(follow(tree, "sys/class/infiniband/dapple1/device").c_str(), other.c_str());
  assert_string_equal(follow(tree, "sys/class/infiniband/dapple1/device/net/eth0").c_str(),
                      (other + "/net/eth0").c_str());
  assert_string_equal(text_at(tree, follow(tree, "sys/class/infiniband_verbs/uverbs4352") + "/ibdev"), "dapple1\n");
}

void tree_of__netdev__has_the_real_ones_entries(void**) {
  use_pci();
  device.netdev_folder = "/sys/devices/virtual/net/eth0";
  device.netdev_entries = {"address", "device"};
  Tree tree = tree_of({device}, {});
  const std::string folder = follow(tree, "sys/class/net/eth0");
  assert_string_equal(text_at(tree, folder + "/address"), "/sys/devices/virtual/net/eth0/address");
  // This one is ours.
  assert_string_equal(text_at(tree, folder + "/device"), "../../../0000:3b:00.0");
}

void tree_of__kernels_devices__stand_beside_ours(void**) {
  const std::vector<KernelEntry> kernels = {
      {"sys/class/infiniband/mlx5_0", "/sys/devices/pci0000:00/x/infiniband/mlx5_0"},
      {"sys/class/infiniband/dapple0", "/sys/devices/virtual/infiniband/dapple0"}};
  Tree tree = tree_of({device}, kernels);
  assert_string_equal(text_at(tree, "sys/class/infiniband/mlx5_0"), "/sys/devices/pci0000:00/x/infiniband/mlx5_0");
  assert_string_equal(text_at(tree, "sys/class/infiniband/dapple0"), "../../devices/virtual/infiniband/dapple0");
}

void tree_of__no_device__has_the_classes(void**) {
  Tree tree = tree_of({}, {});
  assert_true(tree.find("sys/class/infiniband")->kind == NodeKind::kFolder);
  assert_non_null(tree.find("dev/infiniband/rdma_cm"));
}

void add_live_files__counters__are_all_in_the_tree(void**) {
  device.counts.sent_packets = 9;
  Tree live;
  add_live_files(live, device);
  Tree tree = tree_of({device}, {});
  for (const Node& node : live.nodes()) assert_true(*tree.find(node.path) == node);
  assert_string_equal(text_at(live, std::string(kFolder) + "/ports/1/hw_counters/sent_pkts"), "9\n");
}

void class_tree_of__device__needs_nothing_outside(void**) {
  use_pci();
  Tree tree = class_tree_of({device}, "/proc/self/ns/net");
  for (const Node& node : tree.nodes()) {
    assert_true(node.kind != NodeKind::kEmpty);
    assert_true(node.kind != NodeKind::kLink || node.text == "/proc/self/ns/net");
  }
  assert_string_equal(text_at(tree, "dapple0/device/numa_node"), "1\n");
  assert_string_equal(text_at(tree, "dapple0/ports/1/state"), "4: ACTIVE\n");
  assert_true(tree.find("dapple0/ports/1/gid_attrs/types/0")->kind == NodeKind::kLink);
  Tree live;
  add_live_class_files(live, device);
  for (const Node& node : live.nodes()) assert_non_null(tree.find(node.path));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup(tree_of__virtual_device__has_the_kernels_layout, start),
      cmocka_unit_test_setup(tree_of__profile_without_a_text__lacks_the_file, start),
      cmocka_unit_test_setup(tree_of__gids__empty_entries_cannot_be_read, start),
      cmocka_unit_test_setup(tree_of__uverbs__name_their_device, start),
      cmocka_unit_test_setup(tree_of__pci_function__is_behind_device, start),
      cmocka_unit_test_setup(tree_of__two_devices_of_a_netdev__the_first_one_has_it, start),
      cmocka_unit_test_setup(tree_of__netdev__has_the_real_ones_entries, start),
      cmocka_unit_test_setup(tree_of__kernels_devices__stand_beside_ours, start),
      cmocka_unit_test_setup(tree_of__no_device__has_the_classes, start),
      cmocka_unit_test_setup(add_live_files__counters__are_all_in_the_tree, start),
      cmocka_unit_test_setup(class_tree_of__device__needs_nothing_outside, start),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
