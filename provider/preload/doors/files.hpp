// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The paths of the kernel's doors: /dev/infiniband/uverbsN, /dev/infiniband/rdma_cm and the few files below /sys that
// libibverbs and librdmacm read.
#pragma once

#include <stdint.h>
#include <string.h>
#include <sys/types.h>

namespace dapple::doors {

inline constexpr char kUverbsPath[] = "/dev/infiniband/uverbs";
inline constexpr char kRdmaCmPath[] = "/dev/infiniband/rdma_cm";
inline constexpr char kClassPath[] = "/sys/class/infiniband/dapple";
inline constexpr char kRdmaCmAbiPath[] = "/sys/class/misc/rdma_cm/abi_version";

namespace detail {

// SYSFS_PATH, the folder that libibverbs takes for /sys, without slashes at its end. The size is negative if libibverbs
// uses /sys.
extern char sysfs[257];
extern ssize_t sysfs_size;

inline bool maybe_in_sysfs(const char* path) {
  const auto size = static_cast<size_t>(sysfs_size);
  return sysfs_size >= 0 && strncmp(path, sysfs, size) == 0 && strncmp(path + size, "/class/", 7) == 0;
}

}  // namespace detail

// True if a path may be one of ours. The first test of each wrapper.
inline bool maybe_ours(const char* path) {
  if (path == nullptr) return false;
  if (detail::maybe_in_sysfs(path)) return true;
  return path[0] == '/' && ((path[1] == 'd' && (strncmp(path, kUverbsPath, sizeof kUverbsPath - 1) == 0 ||
                                                strcmp(path, kRdmaCmPath) == 0)) ||
                            (path[1] == 's' && (strncmp(path, kClassPath, sizeof kClassPath - 1) == 0 ||
                                                strcmp(path, kRdmaCmAbiPath) == 0)));
}

// True for a file of a device of the kernel, whose devices have smaller numbers than ours: /dev/infiniband/uverbs0.
bool names_kernel_device(const char* path);

// The object behind such a path.
enum class Target : uint8_t {
  kOther,    // not ours: the kernel answers
  kMissing,  // ours, and there is no such file
  kUverbs,
  kRdmaCm,
  kText,
};

struct File {
  Target target = Target::kOther;
  uint32_t device = 0;  // kUverbs: DeviceInfo::index
  char text[64] = {};   // kText
};

File look_up(const char* path);

// A descriptor for the file; -1 with errno. `flags` are those of open().
int open_file(const File& file, int flags);

// A descriptor that the doors have not opened is now a door if it is one of an open device, from this process or
// another.
bool adopt_uverbs(int fd);

// The number of a device's character device, and of rdma_cm.
dev_t device_number(uint32_t index);
dev_t rdma_cm_number();

}  // namespace dapple::doors
