// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The file of a channel's journal.
#include "provider/dappled/rdma_cm/journal_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "provider/dappled/rdma_cm/journal.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::dappled::rdma_cm;

namespace {

using Entry = std::array<std::byte, kJournalEntrySize>;
constexpr soft::CmChannelName kName = {.key = 0x1122334455667788, .number = 7};

Entry filled(uint32_t value) {
  Entry entry;
  entry.fill(static_cast<std::byte>(value));
  return entry;
}

// Opens the file of another journal.
int open_same(JournalFile& journal, const JournalFile& of, soft::CmChannelName& name) {
  return journal.open(soft::OwnedFd(dup(of.fd())), name);
}

void write__many_entries__are_read_by_another_process(void**) {
  JournalFile journal;
  assert_int_equal(journal.create(kName), 0);
  constexpr uint32_t kMany = 1000;
  for (uint32_t i = 0; i < kMany; i++) journal.write(i, filled(i));
  for (uint32_t i = 0; i < kMany; i += 2) journal.write(i, filled(i + 1));
  JournalFile next;
  soft::CmChannelName name;
  assert_int_equal(open_same(next, journal, name), 0);
  assert_true(name.key == kName.key && name.number == kName.number);
  Entry entry;
  for (uint32_t i = 0; i < kMany; i++) {
    assert_true(next.read(i, entry));
    assert_true(entry == filled(i % 2 == 0 ? i + 1 : i));
  }
  assert_false(next.read(kMany, entry));
  next.cut(500);
  assert_true(next.read(499, entry));
  assert_false(next.read(500, entry));
  assert_false(next.read(kMany - 1, entry));
}

void write__without_memory__loses_only_these_entries(void**) {
  JournalFile journal;
  assert_int_equal(journal.create(kName), 0);
  const uint32_t first = journal.room();
  rlimit whole;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
  const rlimit full = {4096, whole.rlim_max};
  const auto before = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
  for (uint32_t i = 0; i < 3 * first; i++) journal.write(i, filled(1));
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
  signal(SIGXFSZ, before);
  journal.write(3 * first, filled(2));
  Entry entry;
  for (uint32_t i = 0; i <= 3 * first; i++) assert_int_equal(journal.read(i, entry), i < first || i == 3 * first);
  assert_true(entry == filled(2));
  journal.cut(first);
  assert_false(journal.read(3 * first, entry));
}

void open__of_another_file__is_refused(void**) {
  soft::CmChannelName name;
  JournalFile none, shrinkable, empty, strange;
  assert_int_equal(none.open(soft::OwnedFd(), name), EINVAL);
  soft::OwnedFd file(memfd_create("test", MFD_CLOEXEC));
  assert_int_equal(ftruncate(file.get(), 4096), 0);
  assert_int_equal(shrinkable.open(std::move(file), name), EINVAL);
  file.reset(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  assert_int_equal(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  assert_int_equal(empty.open(std::move(file), name), EINVAL);
  file.reset(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  assert_int_equal(ftruncate(file.get(), 4096), 0);
  assert_int_equal(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  assert_int_equal(strange.open(std::move(file), name), EINVAL);
}

void create__a_program_cannot_take_the_pages(void**) {
  JournalFile journal;
  assert_int_equal(journal.create(kName), 0);
  assert_int_equal(ftruncate(journal.fd(), 0), -1);
  assert_int_equal(errno, EPERM);
}

void write__killed_anywhere__leaves_a_whole_entry(void**) {
  for (int round = 0; round < 50; round++) {
    JournalFile journal;
    assert_int_equal(journal.create(kName), 0);
    journal.write(0, filled(0));
    const pid_t child = fork();
    if (child == 0) {
      for (uint32_t i = 0;; i++) journal.write(0, filled(i));
    }
    assert_true(child > 0);
    // The child has begun when the entry changes.
    Entry entry = filled(0);
    for (int i = 0; i < 100'000 && entry == filled(0); i++) {
      usleep(100);
      (void)journal.read(0, entry);
    }
    const bool has_begun = entry != filled(0);
    const timespec time = {0, 1'000'000 + round * 10'000};
    nanosleep(&time, nullptr);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    assert_true(has_begun);
    JournalFile next;
    soft::CmChannelName name;
    assert_int_equal(open_same(next, journal, name), 0);
    assert_true(next.read(0, entry));
    assert_true(std::all_of(entry.begin(), entry.end(), [&](std::byte byte) { return byte == entry[0]; }));
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(write__many_entries__are_read_by_another_process),
      cmocka_unit_test(open__of_another_file__is_refused),
      cmocka_unit_test(create__a_program_cannot_take_the_pages),
      cmocka_unit_test(write__without_memory__loses_only_these_entries),
      cmocka_unit_test(write__killed_anywhere__leaves_a_whole_entry),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
