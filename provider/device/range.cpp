// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/range.hpp"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "provider/common/host_guards.hpp"
#include "provider/device/machine/lines.hpp"
#include "provider/device/machine/memory_location.hpp"
#include "provider/device/refusal.hpp"

namespace dapple::provider {
namespace {

constexpr std::string_view kDeleted = " (deleted)";
// The kernel's ABI: STATX_ATTR_DAX, since Linux 5.8.
constexpr uint64_t kStatxDax = 0x00200000;

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

// True for the file system of shared anonymous memory, memfd and System V's shared memory, which is not mounted
// anywhere.
bool is_kernels_own_tmpfs(dev_t device) {
  static constexpr char kName[] = "dapple";
  const int file = memfd_create(kName, MFD_CLOEXEC);
  if (file < 0) return false;
  struct stat status;
  const bool same = fstat(file, &status) == 0 && status.st_dev == device;
  close(file);
  return same;
}

// True if the file system of a mapping keeps its files in memory. The folder of the file, present or former, identifies
// the file system.
bool is_in_ram(const Path& path, dev_t device) {
  Path folder = path;
  while (folder.go_up()) {
    struct stat status;
    if (stat(folder.c_str(), &status) != 0) continue;
    struct statfs file_system;
    if (status.st_dev != device || statfs(folder.c_str(), &file_system) != 0) return false;
    return file_system.f_type == TMPFS_MAGIC || file_system.f_type == RAMFS_MAGIC ||
           file_system.f_type == HUGETLBFS_MAGIC;
  }
  return false;
}

MappedFile look_at_character_device(const Path& root, dev_t number) {
  if (number == makedev(1, 5)) return {MappedFile::Kind::kZero, Path()};
  MappedFile file = {MappedFile::Kind::kCharacterDevice,
                     find_numbered_device(root, "char", major(number), minor(number))};
  Path bus;
  if (bus.resolve(file.device + "/subsystem") && bus.name() == "dax") file.kind = MappedFile::Kind::kDaxDevice;
  return file;
}

// "/sys/devices/pci0000:00/.../resource2_wc": the number of a PCI device's memory.
bool is_pci_resource(std::string_view name, bool& write_combining) {
  constexpr std::string_view kResource = "/resource";
  const size_t at = name.rfind('/');
  if (!begins(name, "/sys/devices/") || !begins(name.substr(at), kResource)) return false;
  std::string_view rest = name.substr(at + kResource.size());
  if (rest.empty() || !isdigit(static_cast<unsigned char>(rest[0]))) return false;
  rest.remove_prefix(1);
  write_combining = rest == "_wc";
  return rest.empty() || write_combining;
}

// Decides by the NUMA nodes of the present pages.
dappledv_answer is_mapping_on_cxl(const Path& root, uintptr_t begin) {
  dappledv_answer answer = has_cxl(root);
  if (answer == DAPPLEDV_ANSWER_NO) return answer;
  Lines lines(root + "/proc/self/numa_maps");
  while (const char* line = lines.next()) {
    char* at = nullptr;
    if (strtoull(line, &at, 16) != begin) continue;
    while ((at = strstr(at, " N")) != nullptr) {
      at += 2;
      if (!isdigit(static_cast<unsigned char>(*at))) continue;
      if (is_node_on_cxl(root, static_cast<unsigned>(strtoul(at, &at, 10))) == DAPPLEDV_ANSWER_YES) {
        return DAPPLEDV_ANSWER_YES;
      }
    }
    break;
  }
  return answer;
}

dappledv_range_attr answer(dappledv_memory memory, dappledv_caching caching, const char* explanation) {
  dappledv_range_attr attr = {};
  attr.memory = memory;
  attr.caching = caching;
  attr.explanation = explanation;
  return attr;
}

dappledv_range_attr write_back(dappledv_memory memory, const char* explanation) {
  return answer(memory, DAPPLEDV_CACHING_WRITE_BACK, explanation);
}

dappledv_range_attr judge_file(const Mapping& mapping, const MappedFile& file) {
  switch (file.kind) {
    case MappedFile::Kind::kRam:
      return write_back(DAPPLEDV_MEMORY_PAGE_CACHE, "a file of a file system that keeps its files in memory");
    case MappedFile::Kind::kPageCache:
      return write_back(DAPPLEDV_MEMORY_PAGE_CACHE,
                        "a file, and the kernel says that it is not mapped directly (no DAX)");
    case MappedFile::Kind::kDax:
      return write_back(DAPPLEDV_MEMORY_DAX_FILE, "a file that the kernel maps directly (statx says DAX)");
    case MappedFile::Kind::kDaxDevice:
      return write_back(DAPPLEDV_MEMORY_DAX_DEVICE, "a device of the dax bus");
    case MappedFile::Kind::kZero:
      return write_back(DAPPLEDV_MEMORY_ANONYMOUS, "a mapping of /dev/zero");
    case MappedFile::Kind::kCharacterDevice:
      if (mapping.device) {
        return answer(DAPPLEDV_MEMORY_DEVICE, DAPPLEDV_CACHING_UNKNOWN,
                      "a driver's mapping of its device; the kernel does not report its caching");
      }
      return answer(DAPPLEDV_MEMORY_UNKNOWN, DAPPLEDV_CACHING_UNKNOWN, "a driver's mapping of unknown kind");
    case MappedFile::Kind::kUnknown:
      break;
  }
  return answer(DAPPLEDV_MEMORY_UNKNOWN, DAPPLEDV_CACHING_UNKNOWN, "a file; no source reports how it is mapped");
}

}  // namespace

MappedFile look_at_file(const Path& root, const Mapping& mapping) {
  MappedFile file;
  const dev_t device = makedev(mapping.major, mapping.minor);
  std::string_view name = mapping.name.view();
  if (mapping.inode == 0 || !begins(name, "/")) return file;
  const bool deleted = name.size() > kDeleted.size() && name.substr(name.size() - kDeleted.size()) == kDeleted;
  if (deleted) name.remove_suffix(kDeleted.size());
  const Path path = root + name;

  struct statx status = {};
  // Another file may have the name by now.
  if (!deleted && statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO, &status) == 0 &&
      status.stx_ino == mapping.inode && status.stx_dev_major == mapping.major &&
      status.stx_dev_minor == mapping.minor) {
    if (S_ISCHR(status.stx_mode)) {
      return look_at_character_device(root, makedev(status.stx_rdev_major, status.stx_rdev_minor));
    }
    if ((status.stx_attributes & kStatxDax) != 0) {
      return {MappedFile::Kind::kDax, find_numbered_device(root, "block", mapping.major, mapping.minor)};
    }
    if (is_in_ram(path, device)) return {MappedFile::Kind::kRam, Path()};
    if ((status.stx_attributes_mask & kStatxDax) != 0) return {MappedFile::Kind::kPageCache, Path()};
  } else if (is_kernels_own_tmpfs(device) || is_in_ram(path, device)) {
    return {MappedFile::Kind::kRam, Path()};
  }
  // A device that cannot do DAX has no file with DAX.
  Path block = find_numbered_device(root, "block", mapping.major, mapping.minor);
  char buffer[8];
  std::string_view dax = read_line(block + "/queue/dax", buffer);
  if (dax.empty() && block.go_up()) dax = read_line(block + "/queue/dax", buffer);  // of a partition's disk
  if (dax == "0") file.kind = MappedFile::Kind::kPageCache;
  return file;
}

dappledv_range_attr judge_mapping(const Mapping& mapping, const MappedFile& file) {
  const std::string_view name = mapping.name.view();
  bool write_combining = false;
  if (begins(name, "/dmabuf:")) {
    return answer(DAPPLEDV_MEMORY_DMABUF, DAPPLEDV_CACHING_UNKNOWN,
                  "a dma-buf; its exporter decides its caching, and the kernel does not report it");
  }
  if (is_pci_resource(name, write_combining)) {
    return write_combining ? answer(DAPPLEDV_MEMORY_DEVICE, DAPPLEDV_CACHING_WRITE_COMBINING,
                                    "a PCI device's memory, by its file resource*_wc in sysfs")
                           : answer(DAPPLEDV_MEMORY_DEVICE, DAPPLEDV_CACHING_UNCACHED,
                                    "a PCI device's memory, by its file resource* in sysfs");
  }
  // So far mapping.shared does not matter: a private mapping of a device's memory shows that memory, and no copies.
  if (!mapping.has_flags) {
    return answer(DAPPLEDV_MEMORY_UNKNOWN, DAPPLEDV_CACHING_UNKNOWN, "this kernel shows no flags of mappings");
  }
  const bool anonymous = mapping.inode == 0 && !begins(name, "[v");
  if (anonymous && !mapping.device && !mapping.mixed) {
    return write_back(DAPPLEDV_MEMORY_ANONYMOUS, "memory of the program");
  }
  if (mapping.huge_pages && !mapping.shared && begins(name, "/anon_hugepage")) {
    return write_back(DAPPLEDV_MEMORY_ANONYMOUS, "memory of the program in huge pages");
  }
  if (mapping.huge_pages) return write_back(DAPPLEDV_MEMORY_PAGE_CACHE, "huge pages of hugetlbfs");
  if (mapping.inode == 0) {
    return answer(DAPPLEDV_MEMORY_UNKNOWN, DAPPLEDV_CACHING_UNKNOWN, "a mapping of the kernel's own");
  }
  dappledv_range_attr attr = judge_file(mapping, file);
  const bool dax = attr.memory == DAPPLEDV_MEMORY_DAX_FILE || attr.memory == DAPPLEDV_MEMORY_DAX_DEVICE;
  if (dax) attr.persistence = persistence_of(file.device);
  if (dax && attr.memory == DAPPLEDV_MEMORY_DAX_FILE && !mapping.shared) {
    attr.explanation =
        "a private mapping of a file that the kernel maps directly; pages that were written to are copies";
    attr.persistence = DAPPLEDV_PERSISTENCE_UNSPECIFIED;
  }
  return attr;
}

int query_range(const Path& root, uintptr_t address, size_t length, dappledv_range_attr* attr) noexcept {
  if (attr == nullptr) return refuse(EINVAL, "attr is NULL.\nPass the address of a struct dappledv_range_attr.");
  if (length == 0) return refuse(EINVAL, "length is 0.\nPass the number of the range's bytes.");
  if (length - 1 > UINTPTR_MAX - address)
    return refuse(EINVAL, "%zu bytes at 0x%zx go beyond the address space.\nPass a range of the program's memory.",
                  length, static_cast<size_t>(address));
  const ErrnoGuard keep;
  Mapping mapping;
  if (const int error = find_mapping(root + "/proc/self/smaps", address, mapping))
    return refuse(error,
                  "the address 0x%zx is not mapped, or /proc/self/smaps cannot be read.\nPass an address of the "
                  "program's memory.",
                  static_cast<size_t>(address));
  const MappedFile file = look_at_file(root, mapping);
  *attr = judge_mapping(mapping, file);
  attr->length = mapping.end - address < length ? mapping.end - address : length;
  const bool dax = attr->memory == DAPPLEDV_MEMORY_DAX_FILE || attr->memory == DAPPLEDV_MEMORY_DAX_DEVICE;
  if (dax && is_on_cxl(file.device)) {
    attr->cxl = DAPPLEDV_ANSWER_YES;
  } else if (dax) {
    attr->cxl = static_cast<uint8_t>(file.device.empty() ? has_cxl(root) : DAPPLEDV_ANSWER_NO);
  } else {
    attr->cxl = static_cast<uint8_t>(is_mapping_on_cxl(root, mapping.begin));
  }
  return 0;
}

}  // namespace dapple::provider
