// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The exporter of a dma-buf hears of each access: DMA_BUF_IOCTL_SYNC goes to the test. The memory is that of a file.
#include <errno.h>
#include <linux/dma-buf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "provider/soft/memory/fault_tolerant_stores.hpp"
#include "provider/soft/memory/memory_table.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using namespace dapple::roce;

namespace {

constexpr uint32_t kDomain = 7;
constexpr Accessor kOwner = {kDomain, 0x10011};
constexpr uint32_t kAllRights = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;
constexpr uint64_t kIova = 0x700000000000;
constexpr int kDmabuf = 1'000'000;  // no descriptor of the test

// A call of the exporter, and the first word of the memory then.
struct Call {
  uint64_t flags;
  uint64_t word;
};

std::vector<Call>* calls = nullptr;
int interrupted = 0;  // the number of calls that fail with EINTR before the next one succeeds
MemoryTable* table = nullptr;
int file = -1;
size_t size = 0;
std::byte* memory = nullptr;
bool has_gone = false;
uint32_t key = 0;

uint64_t first_word() {
  uint64_t word = 0;
  if (!has_gone) memcpy(&word, memory, sizeof word);
  return word;
}

int begin_region(void**) {
  size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  has_gone = false;
  file = memfd_create("dma-buf", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) return -1;
  memory = static_cast<std::byte*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  calls = new std::vector<Call>;
  table = new MemoryTable(1);
  const RegionConfig config = {.domain = kDomain,
                               .memory = memory,
                               .length = size,
                               .iova = kIova,
                               .access = kAllRights,
                               .kind = RegionKind::kDmabuf,
                               .dmabuf = kDmabuf};
  return table->add_region(config, key);
}

int end_region(void**) {
  delete table;
  delete calls;
  munmap(memory, size);
  close(file);
  return 0;
}

}  // namespace

extern "C" int ioctl(int descriptor, unsigned long request, ...) noexcept {
  va_list rest;
  va_start(rest, request);
  const auto* sync = va_arg(rest, const dma_buf_sync*);
  va_end(rest);
  if (descriptor != kDmabuf || request != DMA_BUF_IOCTL_SYNC) {
    errno = ENOTTY;
    return -1;
  }
  if (interrupted > 0) {
    --interrupted;
    errno = EINTR;
    return -1;
  }
  calls->push_back({sync->flags, first_word()});
  return 0;
}

namespace {

// The access begins and ends once, and changes the first word from `before` to `after` in between.
void expect_one_access(uint64_t direction, uint64_t before, uint64_t after) {
  assert_int_equal(calls->size(), 2);
  assert_int_equal((*calls)[0].flags, DMA_BUF_SYNC_START | direction);
  assert_int_equal((*calls)[0].word, before);
  assert_int_equal((*calls)[1].flags, DMA_BUF_SYNC_END | direction);
  assert_int_equal((*calls)[1].word, after);
  calls->clear();
}

void access__of_each_kind__is_told_to_the_exporter(void**) {
  uint64_t word = 0x11;
  auto* bytes = reinterpret_cast<std::byte*>(&word);
  const RemoteRange range = {key, kIova, sizeof word};
  const Segment segment = {kIova, sizeof word, key};
  assert_int_equal(table->write(kOwner, range, bytes), Fault::kNone);
  expect_one_access(DMA_BUF_SYNC_RW, 0, 0x11);
  word = 0;
  assert_int_equal(table->read(kOwner, range, bytes), Fault::kNone);
  assert_int_equal(word, 0x11);
  expect_one_access(DMA_BUF_SYNC_READ, 0x11, 0x11);
  assert_int_equal(table->gather(kOwner, {&segment, 1}, 0, bytes, sizeof word), Fault::kNone);
  expect_one_access(DMA_BUF_SYNC_READ, 0x11, 0x11);
  word = 0x22;
  assert_int_equal(table->scatter(kOwner, {&segment, 1}, 0, bytes, sizeof word), Fault::kNone);
  expect_one_access(DMA_BUF_SYNC_RW, 0x11, 0x22);
  assert_int_equal(table->fetch_add(kOwner, key, kIova, 1, word), Fault::kNone);
  expect_one_access(DMA_BUF_SYNC_RW, 0x22, 0x23);
  // A datagram that a thread of the device stores.
  const FaultTolerantStores tolerant(true);
  word = 0x24;
  assert_int_equal(table->scatter(kOwner, {&segment, 1}, 0, bytes, sizeof word), Fault::kNone);
  expect_one_access(DMA_BUF_SYNC_RW, 0x23, 0x24);
}

void access__refused__is_not_told(void**) {
  std::byte bytes[8] = {};
  assert_int_equal(table->write(kOwner, {key, kIova + size - 7, 8}, bytes), Fault::kAccess);
  assert_int_equal(table->write({kDomain + 1, 1}, {key, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(calls->size(), 0);
}

void access__the_exporter_is_interrupted__is_told_again(void**) {
  std::byte bytes[8] = {};
  interrupted = 3;
  errno = 0;
  assert_int_equal(table->read(kOwner, {key, kIova, 8}, bytes), Fault::kNone);
  assert_int_equal(errno, 0);
  expect_one_access(DMA_BUF_SYNC_READ, 0, 0);
}

// As with a driver whose device has gone.
void access__memory_has_gone__is_a_fault(void**) {
  std::byte bytes[8] = {};
  const Segment segment = {kIova, sizeof bytes, key};
  has_gone = true;
  assert_int_equal(ftruncate(file, 0), 0);
  assert_int_equal(table->write(kOwner, {key, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(table->read(kOwner, {key, kIova, 8}, bytes), Fault::kAccess);
  assert_int_equal(table->scatter(kOwner, {&segment, 1}, 0, bytes, sizeof bytes), Fault::kAccess);
  assert_int_equal(table->gather(kOwner, {&segment, 1}, 0, bytes, sizeof bytes), Fault::kAccess);
  // Each access has ended.
  assert_int_equal(calls->size(), 8);
  for (size_t i = 0; i < calls->size(); ++i)
    assert_int_equal((*calls)[i].flags & DMA_BUF_SYNC_END, i % 2 == 0 ? 0 : DMA_BUF_SYNC_END);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(access__of_each_kind__is_told_to_the_exporter, begin_region, end_region),
      cmocka_unit_test_setup_teardown(access__refused__is_not_told, begin_region, end_region),
      cmocka_unit_test_setup_teardown(access__the_exporter_is_interrupted__is_told_again, begin_region, end_region),
      cmocka_unit_test_setup_teardown(access__memory_has_gone__is_a_fault, begin_region, end_region),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
