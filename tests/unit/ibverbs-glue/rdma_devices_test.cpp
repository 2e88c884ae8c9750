// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// rdma_devices_test [DEVICE NETDEV]: a tree that looks like sysfs, and with arguments the machine's only device.
#include "ibverbs-glue/rdma_devices.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

namespace {

namespace fs = std::filesystem;
using dapple::verbs::netdev_of_port;
using dapple::verbs::rdma_devices;
using dapple::verbs::rdma_devices_by_netlink;
using dapple::verbs::rdma_devices_by_sysfs;
using dapple::verbs::RdmaDevice;

std::string root;
const char* device_name;
const char* netdev_name;

void write(const std::string& name, const std::string& text) {
  const fs::path path = root + "/class/infiniband/" + name;
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text << '\n';
}

int make_tree(void**) {
  char folder[] = "/tmp/dapple-sysfs.XXXXXX";
  if (!mkdtemp(folder)) return -1;
  root = folder;
  write("mlx5_0/node_type", "1: CA");
  write("mlx5_0/node_guid", "b8ce:f603:0012:3456");
  write("mlx5_0/fw_ver", "16.35.2000");
  fs::create_directories(root + "/drivers/mlx5_core");
  fs::create_directories(root + "/class/infiniband/mlx5_0/device");
  fs::create_symlink("../../../drivers/mlx5_core", root + "/class/infiniband/mlx5_0/device/driver");
  for (const char* port : {"1", "2", "10"}) {
    write(std::string("mlx5_0/ports/") + port + "/state", "4: ACTIVE");
    write(std::string("mlx5_0/ports/") + port + "/phys_state", "5: LinkUp");
    write(std::string("mlx5_0/ports/") + port + "/link_layer", "Ethernet");
  }
  write("mlx5_0/ports/1/gid_attrs/ndevs/0", "eth5");
  write("mlx5_0/ports/2/state", "1: DOWN");
  write("mlx5_0/ports/nonsense/state", "4: ACTIVE");
  write("iw0/node_type", "4: RNIC");
  write("iw0/ports/1/link_layer", "Ethernet");
  write("bare0/x", "");
  return 0;
}

int remove_tree(void**) {
  unsetenv("SYSFS_PATH");
  fs::remove_all(root);
  return 0;
}

void by_sysfs__everything_that_is_there(void**) {
  const auto devices = rdma_devices_by_sysfs(root);
  assert_int_equal(devices.size(), 3);
  assert_string_equal(devices[0].name.c_str(), "bare0");
  assert_int_equal(devices[0].ports.size(), 0);
  assert_string_equal(devices[0].protocol.c_str(), "");
  assert_string_equal(devices[1].name.c_str(), "iw0");
  assert_string_equal(devices[1].protocol.c_str(), "iw");
  const RdmaDevice& card = devices[2];
  assert_string_equal(card.name.c_str(), "mlx5_0");
  assert_string_equal(card.driver.c_str(), "mlx5_core");
  assert_string_equal(card.protocol.c_str(), "roce");
  assert_string_equal(card.firmware.c_str(), "16.35.2000");
  assert_string_equal(card.node_guid.c_str(), "b8ce:f603:0012:3456");
  assert_false(card.by_netlink);
  assert_int_equal(card.ports.size(), 3);
  assert_int_equal(card.ports[0].number, 1);
  assert_string_equal(card.ports[0].state.c_str(), "ACTIVE");
  assert_string_equal(card.ports[0].physical_state.c_str(), "LinkUp");
  assert_string_equal(card.ports[0].netdev.c_str(), "eth5");
  assert_int_equal(card.ports[1].number, 2);
  assert_string_equal(card.ports[1].state.c_str(), "DOWN");
  assert_string_equal(card.ports[1].netdev.c_str(), "");
  assert_int_equal(card.ports[2].number, 10);
}

void by_sysfs__nothing_there(void**) {
  assert_int_equal(rdma_devices_by_sysfs(root + "/absent").size(), 0);
  assert_int_equal(rdma_devices_by_sysfs("").size(), 0);
}

// Devices that netlink does not list, or a kernel where it does not answer.
void rdma_devices__of_another_sysfs(void**) {
  setenv("SYSFS_PATH", root.c_str(), 1);
  assert_string_equal(netdev_of_port("mlx5_0", 1).c_str(), "eth5");
  assert_string_equal(netdev_of_port("mlx5_0", 2).c_str(), "");
  assert_string_equal(netdev_of_port("mlx5_0", 3).c_str(), "");
  assert_string_equal(netdev_of_port("absent0", 1).c_str(), "");
  unsetenv("SYSFS_PATH");
}

// Both ways give the same result, except the driver, which sysfs does not show for a device without hardware.
void by_netlink__as_by_sysfs(void**) {
  if (!device_name) skip_test("no device was named");
  const auto told = rdma_devices_by_netlink();
  assert_true(told.has_value());
  assert_int_equal(told->size(), 1);
  const RdmaDevice& device = told->front();
  assert_string_equal(device.name.c_str(), device_name);
  assert_string_equal(device.driver.c_str(), "rxe");
  assert_true(device.by_netlink);
  const auto shown = rdma_devices_by_sysfs("/sys");
  assert_int_equal(shown.size(), 1);
  assert_string_equal(device.protocol.c_str(), shown[0].protocol.c_str());
  assert_string_equal(device.node_guid.c_str(), shown[0].node_guid.c_str());
  assert_int_equal(device.ports.size(), 1);
  assert_int_equal(shown[0].ports.size(), 1);
  assert_int_equal(device.ports[0].number, 1);
  assert_string_equal(device.ports[0].netdev.c_str(), netdev_name);
  assert_string_equal(device.ports[0].state.c_str(), shown[0].ports[0].state.c_str());
  assert_string_equal(device.ports[0].state.c_str(), "ACTIVE");
  assert_string_equal(device.ports[0].physical_state.c_str(), shown[0].ports[0].physical_state.c_str());
  assert_string_equal(device.ports[0].netdev.c_str(), shown[0].ports[0].netdev.c_str());
  assert_string_equal(netdev_of_port(device_name, 1).c_str(), netdev_name);
  // A device that is listed twice appears only once.
  assert_int_equal(rdma_devices().size(), 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) {
    device_name = argv[1];
    netdev_name = argv[2];
  }
  const CMUnitTest tests[] = {
      cmocka_unit_test(by_sysfs__everything_that_is_there),
      cmocka_unit_test(by_sysfs__nothing_there),
      cmocka_unit_test(rdma_devices__of_another_sysfs),
      cmocka_unit_test(by_netlink__as_by_sysfs),
  };
  return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
