// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// programs KIND DEVICE: what programs of three kinds learn of a device before they call verbs, one line for each fact.
//   topology    the devices of a transfer engine: the character device, the place in the machine, the NUMA node
//   gid         the choice of a GID of a collective library: each type up to the first entry that cannot be read
//   walk        a storage client: the netdevs of all ports, by iterating the folders
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

namespace fs = std::filesystem;

namespace {

const std::string kClass = "/sys/class/infiniband/";

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? line : "nothing";
}

void topology(const std::string& wanted) {
  DIR* folder = opendir(kClass.c_str());
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name[0] == '.' || name != wanted) continue;
    char place[PATH_MAX];
    const bool has_place = realpath((kClass + name + "/../..").c_str(), place) != nullptr;
    std::cout << name << " place " << (has_place ? place : strerror(errno)) << '\n';
    std::cout << name << " node " << line_of(kClass + name + "/device/numa_node") << '\n';
    std::cout << name << " link layer " << line_of(kClass + name + "/ports/1/link_layer") << '\n';
  }
  closedir(folder);
  folder = opendir("/dev/infiniband");
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    const std::string path = std::string("/dev/infiniband/") + entry->d_name;
    struct stat status;
    if (strncmp(entry->d_name, "uverbs", 6) != 0 || stat(path.c_str(), &status) != 0) continue;
    const bool usable = S_ISCHR(status.st_mode) && access(path.c_str(), R_OK | W_OK) == 0;
    std::cout << "device file " << (usable ? "usable" : "unusable") << '\n';
  }
  if (folder != nullptr) closedir(folder);
}

void gid(const std::string& device) {
  for (int i = 0; i < 4096; i++) {
    const std::string path = kClass + device + "/ports/1/gid_attrs/types/" + std::to_string(i);
    char text[64] = "";
    const int fd = open(path.c_str(), O_RDONLY);
    if (fd < 0) {
      std::cout << "open " << i << ": " << strerror(errno) << '\n';
      return;
    }
    const ssize_t size = read(fd, text, sizeof text - 1);
    const int error = errno;
    close(fd);
    if (size < 0 && error == EINVAL) {
      std::cout << "empty entry\n";
      return;
    }
    text[strcspn(text, "\n")] = '\0';
    std::cout << "type " << i << ' ' << (size < 0 ? strerror(error) : text) << '\n';
  }
}

void walk(const std::string& wanted) {
  for (const auto& device : fs::directory_iterator(kClass)) {
    if (device.path().filename() != wanted) continue;
    for (const auto& port : fs::directory_iterator(device.path() / "ports")) {
      const fs::path entry = port.path() / "gid_attrs/ndevs/0";
      std::cout << port.path().filename().string() << ' ' << line_of(entry.string()) << ' '
                << line_of((port.path() / "state").string()) << ' '
                << fs::is_directory(fs::path("/sys/class/net") / line_of(entry.string())) << '\n';
    }
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::string kind = words[1];
  if (kind == "topology") topology(words[2]);
  if (kind == "gid") gid(words[2]);
  if (kind == "walk") walk(words[2]);
}
