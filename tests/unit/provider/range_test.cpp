// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kind of memory at an address: the decision for every kind of mapping, for machines made of files, and for this
// process.
#include "provider/device/range.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "provider/device/machine/memory_location.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::provider;

namespace {

namespace fs = std::filesystem;
using Kind = MappedFile::Kind;

std::string root;

int make_root(void**) {
  char folder[] = "/tmp/dapple-range.XXXXXX";
  if (mkdtemp(folder) == nullptr) return -1;
  root = folder;
  return 0;
}

int remove_root(void**) {
  std::error_code ignored;
  fs::remove_all(root, ignored);
  return 0;
}

void write(const std::string& path, const std::string& content) {
  fs::create_directories(fs::path(root + path).parent_path());
  std::ofstream(root + path) << content;
}

void link(const std::string& path, const std::string& target) {
  fs::create_directories(fs::path(root + path).parent_path());
  fs::create_symlink(target, root + path);
}

struct Case {
  const char* name;
  uint64_t inode;
  bool shared, device, mixed, huge_pages;
  Kind kind;
  dappledv_memory memory;
  dappledv_caching caching;
};

void judge_mapping__every_kind(void**) {
  constexpr auto kWb = DAPPLEDV_CACHING_WRITE_BACK;
  constexpr auto kNo = DAPPLEDV_CACHING_UNKNOWN;
  const Case cases[] = {
      {"", 0, false, false, false, false, Kind::kUnknown, DAPPLEDV_MEMORY_ANONYMOUS, kWb},
      {"[heap]", 0, false, false, false, false, Kind::kUnknown, DAPPLEDV_MEMORY_ANONYMOUS, kWb},
      {"[vvar]", 0, false, true, false, false, Kind::kUnknown, DAPPLEDV_MEMORY_UNKNOWN, kNo},
      {"[vdso]", 0, false, false, false, false, Kind::kUnknown, DAPPLEDV_MEMORY_UNKNOWN, kNo},
      // A driver that replaces the pages of an anonymous mapping.
      {"", 0, false, true, false, false, Kind::kUnknown, DAPPLEDV_MEMORY_UNKNOWN, kNo},
      {"/data/file", 7, true, false, false, false, Kind::kPageCache, DAPPLEDV_MEMORY_PAGE_CACHE, kWb},
      {"/dev/shm/x (deleted)", 7, true, false, false, false, Kind::kRam, DAPPLEDV_MEMORY_PAGE_CACHE, kWb},
      {"/data/file", 7, true, false, true, false, Kind::kDax, DAPPLEDV_MEMORY_DAX_FILE, kWb},
      {"/data/file", 7, true, false, false, false, Kind::kUnknown, DAPPLEDV_MEMORY_UNKNOWN, kNo},
      {"/dev/dax0.0", 7, true, false, false, false, Kind::kDaxDevice, DAPPLEDV_MEMORY_DAX_DEVICE, kWb},
      {"/dev/zero", 7, false, false, false, false, Kind::kZero, DAPPLEDV_MEMORY_ANONYMOUS, kWb},
      {"/dev/mem", 7, true, true, false, false, Kind::kCharacterDevice, DAPPLEDV_MEMORY_DEVICE, kNo},
      {"/dev/video0", 7, true, false, false, false, Kind::kCharacterDevice, DAPPLEDV_MEMORY_UNKNOWN, kNo},
      {"/dev/infiniband/uverbs0", 7, true, true, false, false, Kind::kCharacterDevice, DAPPLEDV_MEMORY_DEVICE, kNo},
      {"/dmabuf:", 7, true, true, false, false, Kind::kUnknown, DAPPLEDV_MEMORY_DMABUF, kNo},
      {"/dmabuf:system", 7, true, false, false, false, Kind::kUnknown, DAPPLEDV_MEMORY_DMABUF, kNo},
      {"/anon_hugepage (deleted)", 7, false, false, false, true, Kind::kUnknown, DAPPLEDV_MEMORY_ANONYMOUS, kWb},
      {"/mnt/huge/x", 7, true, false, false, true, Kind::kRam, DAPPLEDV_MEMORY_PAGE_CACHE, kWb},
      {"/sys/devices/pci0000:00/0000:00:02.0/resource2_wc", 7, true, true, false, false, Kind::kUnknown,
       DAPPLEDV_MEMORY_DEVICE, DAPPLEDV_CACHING_WRITE_COMBINING},
      {"/sys/devices/pci0000:00/0000:00:02.0/resource0", 7, true, true, false, false, Kind::kUnknown,
       DAPPLEDV_MEMORY_DEVICE, DAPPLEDV_CACHING_UNCACHED},
      {"/var/resource0", 7, true, false, false, false, Kind::kPageCache, DAPPLEDV_MEMORY_PAGE_CACHE, kWb},
  };
  for (const Case& each : cases) {
    Mapping mapping;
    mapping.name = Path(each.name);
    mapping.inode = each.inode;
    mapping.shared = each.shared;
    mapping.has_flags = true;
    mapping.device = each.device;
    mapping.mixed = each.mixed;
    mapping.huge_pages = each.huge_pages;
    const dappledv_range_attr attr = judge_mapping(mapping, {each.kind, Path()});
    print_message("%s\n", each.name);
    assert_int_equal(attr.memory, each.memory);
    assert_int_equal(attr.caching, each.caching);
    assert_int_equal(attr.persistence, DAPPLEDV_PERSISTENCE_UNSPECIFIED);
    assert_non_null(attr.explanation);
    mapping.has_flags = false;
    if (each.memory == DAPPLEDV_MEMORY_ANONYMOUS) {
      assert_int_equal(judge_mapping(mapping, {each.kind, Path()}).memory, DAPPLEDV_MEMORY_UNKNOWN);
    }
  }
}

constexpr char kRegion[] = "/sys/devices/LNXSYSTM:00/ndbus0/region3";

void judge_mapping__persistent_memory(void**) {
  write(std::string(kRegion) + "/persistence_domain", "memory_controller\n");
  write(std::string(kRegion) + "/namespace3.0/block/pmem3/queue/dax", "1\n");
  Mapping mapping;
  mapping.name = Path("/pmem/log");
  mapping.inode = 7;
  mapping.has_flags = mapping.shared = true;
  const MappedFile file = {Kind::kDax, Path(root + kRegion + "/namespace3.0/block/pmem3")};
  dappledv_range_attr attr = judge_mapping(mapping, file);
  assert_int_equal(attr.memory, DAPPLEDV_MEMORY_DAX_FILE);
  assert_int_equal(attr.persistence, DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER);
  // A write to a private mapping does not reach the file.
  mapping.shared = false;
  attr = judge_mapping(mapping, file);
  assert_int_equal(attr.persistence, DAPPLEDV_PERSISTENCE_UNSPECIFIED);
  // Firmware's e820 table: the region's domain is unknown.
  write("/sys/devices/platform/e820_pmem/ndbus1/region0/size", "1\n");
  assert_int_equal(persistence_of(Path(root + "/sys/devices/platform/e820_pmem/ndbus1/region0")),
                   DAPPLEDV_PERSISTENCE_UNSPECIFIED);
  assert_int_equal(persistence_of(Path()), DAPPLEDV_PERSISTENCE_UNSPECIFIED);
}

void cxl__devices_and_nodes(void**) {
  const std::string cxl = "/sys/devices/platform/ACPI0017:00/root0/decoder0.0/region0/dax_region0/dax0.0";
  write(cxl + "/target_node", "2\n");
  link("/sys/devices/platform/ACPI0017:00/root0/subsystem", "../../../../bus/cxl");
  fs::create_directories(root + "/sys/bus/cxl");
  fs::create_directories(root + "/sys/bus/acpi/devices");
  assert_true(is_on_cxl(Path(root + cxl)));
  assert_false(is_on_cxl(Path(root + kRegion)));
  assert_false(is_on_cxl(Path()));
  // The firmware describes no domain.
  assert_int_equal(is_node_on_cxl(Path(root), 0), DAPPLEDV_ANSWER_NO);
  link("/sys/bus/acpi/devices/ACPI0017:00", "../../../devices/LNXSYSTM:00/ACPI0017:00");
  assert_int_equal(is_node_on_cxl(Path(root), 0), DAPPLEDV_ANSWER_UNKNOWN);
  link("/sys/bus/dax/devices/dax0.0", "../../../.." + cxl);
  assert_int_equal(is_node_on_cxl(Path(root), 2), DAPPLEDV_ANSWER_YES);
  assert_int_equal(is_node_on_cxl(Path(root), 1), DAPPLEDV_ANSWER_UNKNOWN);

  // A mapping whose pages are partly on that node.
  write("/proc/self/smaps", "1000-3000 rw-p 00000000 00:00 0 \nVmFlags: rd wr mr mw me ac \n");
  write("/proc/self/numa_maps", "1000 default anon=2 dirty=2 N0=1 N2=1 kernelpagesize_kB=4\n");
  dappledv_range_attr attr;
  assert_int_equal(query_range(Path(root), 0x2000, 0x5000, &attr), 0);
  assert_int_equal(attr.cxl, DAPPLEDV_ANSWER_YES);
  assert_int_equal(attr.length, 0x1000);
  write("/proc/self/numa_maps", "1000 default anon=2 dirty=2 N0=2 kernelpagesize_kB=4\n");
  assert_int_equal(query_range(Path(root), 0x2000, 1, &attr), 0);
  assert_int_equal(attr.cxl, DAPPLEDV_ANSWER_UNKNOWN);
}

void find_mapping__lines_of_smaps(void**) {
  const std::string long_name(9000, 'x');
  write("/proc/self/smaps",
        "1000-2000 r--p 00000000 fe:00 42                         /usr/lib/a b (deleted)\nSize: 4 kB\nVmFlags: rd mr \n"
        "2000-3000 rw-s 00000000 00:05 9 /dev/infiniband/uverbs0\nSize: 4 kB\nVmFlags: rd wr sh io dc pf \n"
        "3000-4000 rw-p 00000000 00:05 9 /" +
            long_name +
            "\nVmFlags: rd \n"
            "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\nVmFlags: ex \n");
  const Path file(root + "/proc/self/smaps");
  Mapping mapping;
  assert_int_equal(find_mapping(file, 0x1fff, mapping), 0);
  assert_string_equal(mapping.name.c_str(), "/usr/lib/a b (deleted)");
  assert_int_equal(mapping.major, 0xfe);
  assert_int_equal(mapping.inode, 42);
  assert_true(mapping.has_flags && !mapping.device && !mapping.shared);
  assert_int_equal(find_mapping(file, 0x2000, mapping), 0);
  assert_true(mapping.device && mapping.shared);
  assert_int_equal(mapping.end, 0x3000);
  assert_int_equal(find_mapping(file, 0x4000, mapping), EFAULT);
  assert_int_equal(find_mapping(file, 0xfff, mapping), EFAULT);
  assert_int_equal(find_mapping(file, 0xffffffffff600000, mapping), 0);
  assert_string_equal(mapping.name.c_str(), "[vsyscall]");
  assert_int_equal(find_mapping(Path(root + "/absent"), 0, mapping), ENOENT);
  // The last line without a newline, and a kernel without VmFlags.
  write("/proc/self/smaps", "1000-2000 rw-p 00000000 00:00 0");
  assert_int_equal(find_mapping(file, 0x1000, mapping), 0);
  assert_false(mapping.has_flags);
}

void look_at_file__by_the_block_device(void**) {
  write("/data/gone-again", "x");
  Mapping mapping;
  mapping.name = Path("/data/file (deleted)");
  mapping.inode = 5;
  mapping.major = 259;
  mapping.minor = 3;
  assert_true(look_at_file(Path(root), mapping).kind == Kind::kUnknown);
  write("/sys/devices/pci0000:00/nvme0n1/queue/dax", "0\n");
  write("/sys/devices/pci0000:00/nvme0n1/nvme0n1p3/partition", "3\n");
  link("/sys/dev/block/259:3", "../../devices/pci0000:00/nvme0n1/nvme0n1p3");
  assert_true(look_at_file(Path(root), mapping).kind == Kind::kPageCache);
  write("/sys/devices/pci0000:00/nvme0n1/queue/dax", "1\n");
  assert_true(look_at_file(Path(root), mapping).kind == Kind::kUnknown);
}

void this_process__files_of_each_kind(void**) {
  const Path here;
  dappledv_range_attr attr;
  // A memfd, shared memory that was unlinked, and an ordinary file in the test's folder.
  const int ram = memfd_create("range", MFD_CLOEXEC);
  assert_int_equal(ftruncate(ram, 4096), 0);
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ram, 0);
  assert_ptr_not_equal(memory, MAP_FAILED);
  if (query_range(here, reinterpret_cast<uintptr_t>(memory), 4096, &attr) == ENOENT)
    skip_test("this kernel has no smaps");
  assert_int_equal(attr.memory, DAPPLEDV_MEMORY_PAGE_CACHE);
  assert_int_equal(attr.caching, DAPPLEDV_CACHING_WRITE_BACK);
  munmap(memory, 4096);
  close(ram);

  const int file = open((root + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal(ftruncate(file, 4096), 0);
  memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  assert_int_equal(query_range(here, reinterpret_cast<uintptr_t>(memory), 4096, &attr), 0);
  // With some file systems stat() reports another device than the mapping has.
  assert_true(attr.memory == DAPPLEDV_MEMORY_PAGE_CACHE || attr.memory == DAPPLEDV_MEMORY_UNKNOWN);
  munmap(memory, 4096);
  close(file);

  const int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
  memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
  assert_int_equal(query_range(here, reinterpret_cast<uintptr_t>(memory), 4096, &attr), 0);
  assert_int_equal(attr.memory, DAPPLEDV_MEMORY_ANONYMOUS);
  munmap(memory, 4096);
  close(zero);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(judge_mapping__every_kind),
      cmocka_unit_test_setup_teardown(judge_mapping__persistent_memory, make_root, remove_root),
      cmocka_unit_test_setup_teardown(cxl__devices_and_nodes, make_root, remove_root),
      cmocka_unit_test_setup_teardown(find_mapping__lines_of_smaps, make_root, remove_root),
      cmocka_unit_test_setup_teardown(look_at_file__by_the_block_device, make_root, remove_root),
      cmocka_unit_test_setup_teardown(this_process__files_of_each_kind, make_root, remove_root),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
