// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/files.hpp"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cassert>

#include "provider/preload/doors/devices.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/process/real.hpp"
#include "provider/preload/doors/rdma_cm.hpp"
#include "provider/protocol/identity.hpp"
#include "provider/system/uverbs_file.hpp"

namespace dapple::doors {
namespace detail {

constinit char sysfs[257] = "";
constinit ssize_t sysfs_size = -1;

}  // namespace detail

namespace {

// The number in a text of digits only; otherwise -1.
int64_t number_of(const char* text) {
  if (*text == '\0') return -1;
  int64_t number = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9' || number > UINT32_MAX) return -1;
    number = number * 10 + (*text - '0');
  }
  return number;
}

File look_up_uverbs(const char* digits) {
  const int64_t number = number_of(digits);
  // The kernel's own devices have smaller numbers.
  if (number < soft::kFirstUverbs || number >= soft::kFirstUverbs + 65536) return {};
  const auto index = static_cast<uint32_t>(number - soft::kFirstUverbs) + soft::kFirstDeviceIndex;
  soft::DeviceInfo device;
  if (!get_device(index, device)) return {.target = Target::kMissing};
  return {.target = Target::kUverbs, .device = index};
}

// libibverbs reads this file of each device. An answer without the rendered tree saves its rendering. `name` begins
// with the device's name.
File look_up_class(const char* name) {
  constexpr char kPkeys[] = "/ports/1/pkeys/";
  const char* slash = strchr(name, '/');
  if (slash == nullptr || strncmp(slash, kPkeys, sizeof kPkeys - 1) != 0 || number_of(slash + sizeof kPkeys - 1) != 0) {
    return {};
  }
  soft::DeviceInfo device;
  if (!get_device_named(name, static_cast<size_t>(slash - name), device)) return {};
  File file = {.target = Target::kText};
  strcpy(file.text, "0xffff\n");
  return file;
}

[[gnu::constructor(102)]] void find_sysfs() {
  const char* folder = secure_getenv("SYSFS_PATH");
  if (folder == nullptr) return;
  // libibverbs shortens the value in the same way.
  size_t size = strnlen(folder, sizeof detail::sysfs - 1);
  while (size > 0 && folder[size - 1] == '/') size--;
  if (size == 4 && memcmp(folder, "/sys", 4) == 0) return;
  memcpy(detail::sysfs, folder, size);
  detail::sysfs_size = static_cast<ssize_t>(size);
}

// A file in memory that no process can write.
int sealed_file(const char* name, const char* text, unsigned flags) {
  const int fd = memfd_create(name, MFD_ALLOW_SEALING | flags);
  if (fd < 0) return -1;
  const size_t size = strlen(text);
  assert(size < sizeof File::text);
  if (real.write(fd, text, size) == static_cast<ssize_t>(size) && lseek(fd, 0, SEEK_SET) == 0 &&
      real.fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0) {
    return fd;
  }
  const int error = errno;
  real.close(fd);
  errno = error;
  return -1;
}

}  // namespace

bool names_kernel_device(const char* path) {
  if (strncmp(path, kUverbsPath, sizeof kUverbsPath - 1) != 0) return false;
  const int64_t number = number_of(path + sizeof kUverbsPath - 1);
  return number >= 0 && number < soft::kFirstUverbs;
}

File look_up(const char* path) {
  char usual[128];
  if (detail::maybe_in_sysfs(path)) {
    const size_t size = strlen(path + detail::sysfs_size);
    if (size > sizeof usual - sizeof "/sys") return {};
    memcpy(usual, "/sys", 4);
    memcpy(usual + 4, path + detail::sysfs_size, size + 1);
    const bool ours = strncmp(usual, kClassPath, sizeof kClassPath - 1) == 0 || strcmp(usual, kRdmaCmAbiPath) == 0;
    if (!ours) return {};
    path = usual;
  }
  if (strcmp(path, kRdmaCmPath) == 0) return {.target = Target::kRdmaCm};
  if (strcmp(path, kRdmaCmAbiPath) == 0) {
    File file = {.target = Target::kText};
    snprintf(file.text, sizeof file.text, "%d\n", RDMA_USER_CM_ABI_VERSION);
    return file;
  }
  return path[1] == 'd' ? look_up_uverbs(path + sizeof kUverbsPath - 1)
                        : look_up_class(path + sizeof kClassPath - 1 - strlen("dapple"));
}

int open_file(const File& file, int flags) {
  const unsigned memory_flags = (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0;
  switch (file.target) {
    case Target::kText:
      if ((flags & O_ACCMODE) != O_RDONLY) {
        errno = EACCES;
        return -1;
      }
      return sealed_file("dapple", file.text, memory_flags);
    case Target::kUverbs: {
      // The file has its own inode; a write() that bypasses the wrappers fails.
      char text[soft::UverbsFile::kSize + 1];
      soft::UverbsFile{file.device, getpid(), soft::network_of_process()}.write(text);
      const int fd = sealed_file("dapple-uverbs", text, memory_flags);
      if (fd < 0 || track(fd, {.kind = Kind::kUverbs, .device = file.device})) return fd;
      const int error = errno;
      real.close(fd);
      errno = error;
      return -1;
    }
    case Target::kRdmaCm:
      return rdma_cm_open(flags);
    default:
      errno = ENOENT;
      return -1;
  }
}

bool adopt_uverbs(int fd) {
  soft::UverbsFile file;
  if (!owns_table() || !file.read(fd) || file.device < soft::kFirstDeviceIndex) return false;
  return track(fd, {.kind = Kind::kUverbs, .device = file.device});
}

dev_t device_number(uint32_t index) {
  assert(index >= soft::kFirstDeviceIndex);
  return makedev(soft::kUverbsMajor, index - soft::kFirstDeviceIndex);
}

dev_t rdma_cm_number() {
  return makedev(soft::kRdmaCmMajor, 0);
}

}  // namespace dapple::doors
