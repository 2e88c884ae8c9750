// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The file systems of the test's files are as the test says. No file of it is a dma-buf for the kernel.
#include "provider/soft/objects/mapped_dmabuf.hpp"

#include <errno.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::MappedDmabuf;

constexpr size_t kSize = size_t{1} << 16;  // at least a page on all machines
constexpr long kDmabufs = 0x444d4142, kTmpfs = 0x01021994;

long system_of_files = kTmpfs;

int make_file() {
  const int file = memfd_create("file", MFD_CLOEXEC);
  assert_true(file >= 0 && ftruncate(file, kSize) == 0);
  return file;
}

}  // namespace

extern "C" {

int fstatfs(int, struct statfs* status) noexcept {
  *status = {};
  status->f_type = system_of_files;
  return 0;
}

// As a driver that answers each request that it does not know so.
int ioctl(int, unsigned long, ...) noexcept {
  errno = EINVAL;
  return -1;
}
}

namespace {

void map__file_of_another_driver__is_no_dmabuf(void**) {
  system_of_files = kTmpfs;
  const int file = make_file();
  MappedDmabuf mapped;
  assert_int_equal(mapped.map(file, 0, kSize, true), EINVAL);
  assert_null(mapped.bytes());
  close(file);
}

void map__dmabuf__gives_its_bytes_and_a_descriptor(void**) {
  system_of_files = kDmabufs;
  const int file = make_file();
  MappedDmabuf mapped;
  assert_int_equal(mapped.map(file, 100, kSize - 100, true), 0);
  assert_int_equal(mapped.size(), kSize);
  assert_int_not_equal(mapped.fd(), file);
  mapped.bytes()[0] = std::byte{7};
  char written = 0;
  assert_int_equal(pread(file, &written, 1, 100), 1);
  assert_int_equal(written, 7);
  close(file);
}

void map__bytes_beyond_the_end__are_refused(void**) {
  system_of_files = kDmabufs;
  const int file = make_file();
  for (const size_t offset : {size_t{1}, kSize + 1, SIZE_MAX}) {
    MappedDmabuf mapped;
    assert_int_equal(mapped.map(file, offset, kSize, false), EINVAL);
  }
  MappedDmabuf mapped;
  assert_int_equal(mapped.map(file, 0, 0, false), EINVAL);
  close(file);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(map__file_of_another_driver__is_no_dmabuf),
      cmocka_unit_test(map__dmabuf__gives_its_bytes_and_a_descriptor),
      cmocka_unit_test(map__bytes_beyond_the_end__are_refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
