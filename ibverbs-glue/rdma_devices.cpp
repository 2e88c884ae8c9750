// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "ibverbs-glue/rdma_devices.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace dapple::verbs {
namespace {

// A device must not seem to be missing for want of a descriptor or of memory. The C++ library's own streams and folders
// take a shortage of memory for the end of what there is, or for the end of the program.
void throw_at_shortage(int error) {
  if (error == EMFILE || error == ENFILE || error == ENOMEM) throw std::bad_alloc();
}

// Empty if there is none or the kernel refuses to say.
std::string first_line(const std::string& file) {
  int fd = -1;
  do {
    fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    throw_at_shortage(errno);
    return {};
  }
  char text[4096];  // sysfs has no more, and gives it at once
  ssize_t size = 0;
  do {
    size = ::read(fd, text, sizeof text);
  } while (size < 0 && errno == EINTR);
  const int error = errno;
  ::close(fd);
  if (size < 0) throw_at_shortage(error);
  return size < 0 ? std::string() : std::string(text, std::find(text, text + size, '\n'));
}

// sysfs writes "4: ACTIVE".
std::string after_number(const std::string& line) {
  const size_t colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

// The names of the entries of a folder; none if it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (!open) throw_at_shortage(errno);
  if (!open) return names;
  while (const dirent* entry = ::readdir(open.get()))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

// The last part of what a symbolic link leads to; empty if there is none.
std::string name_behind(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(link.c_str(), target, sizeof target);
  if (size < 0) return {};
  const std::string path(target, static_cast<size_t>(size));
  return path.substr(path.rfind('/') + 1);
}

RdmaDevice device_in(const std::string& devices, const std::string& device_name) {
  const std::string folder = devices + "/" + device_name;
  RdmaDevice device;
  device.name = device_name;
  device.node_guid = first_line(folder + "/node_guid");
  device.firmware = first_line(folder + "/fw_ver");
  device.driver = name_behind(folder + "/device/driver");
  const bool iwarp = after_number(first_line(folder + "/node_type")) == "RNIC";
  for (const std::string& name : names_in(folder + "/ports")) {
    RdmaPort port;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), port.number);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
    const std::string at = folder + "/ports/" + name;
    port.state = after_number(first_line(at + "/state"));
    port.physical_state = after_number(first_line(at + "/phys_state"));
    port.netdev = first_line(at + "/gid_attrs/ndevs/0");
    const std::string layer = first_line(at + "/link_layer");
    if (device.protocol.empty())
      device.protocol = iwarp ? "iw" : layer == "Ethernet" ? "roce" : layer.empty() ? "" : "ib";
    device.ports.push_back(port);
  }
  std::sort(device.ports.begin(), device.ports.end(),
            [](const RdmaPort& a, const RdmaPort& b) { return a.number < b.number; });
  return device;
}

// As libibverbs does it: a tree of another place is for programs that are not privileged.
std::string sysfs_root() {
  const char* path = secure_getenv("SYSFS_PATH");
  return path && *path ? path : "/sys";
}

std::string folder_of_devices(const std::string& sysfs) {
  return sysfs + "/class/infiniband";
}

bool lists(const std::vector<RdmaDevice>& devices, const std::string& name) {
  return std::any_of(devices.begin(), devices.end(), [&](const RdmaDevice& device) { return device.name == name; });
}

}  // namespace

std::vector<RdmaDevice> rdma_devices_by_sysfs(const std::string& sysfs) {
  std::vector<RdmaDevice> devices;
  const std::string folder = folder_of_devices(sysfs);
  for (const std::string& name : names_in(folder)) devices.push_back(device_in(folder, name));
  return devices;
}

std::vector<RdmaDevice> rdma_devices() {
  std::vector<RdmaDevice> shown = rdma_devices_by_sysfs(sysfs_root());
  auto told = rdma_devices_by_netlink();
  if (!told) return shown;
  for (RdmaDevice& device : shown) {
    if (!lists(*told, device.name)) told->push_back(std::move(device));
  }
  return *std::move(told);
}

std::string netdev_of_port(const std::string& device, uint32_t port) {
  auto devices = rdma_devices_by_netlink();
  if (!devices || !lists(*devices, device)) devices = {device_in(folder_of_devices(sysfs_root()), device)};
  for (const RdmaDevice& candidate : *devices) {
    if (candidate.name != device) continue;
    for (const RdmaPort& at : candidate.ports) {
      if (at.number == port) return at.netdev;
    }
  }
  return {};
}

}  // namespace dapple::verbs
