// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/packets/captures.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using dapple::dappled::rdma_cm::Captures;

namespace {

constexpr size_t kPacket = 44;
// A record's header, the one with the direction, IPv4, UDP.
constexpr off_t kRecord = 16 + 16 + 20 + 8 + kPacket;

struct Files {
  Captures captures;
  char names[2][64];

  soft::OwnedFd open(int which, int flags = O_WRONLY | O_APPEND) {
    return soft::OwnedFd(::open(names[which], flags | O_CLOEXEC));
  }
  off_t size(int which) {
    struct stat status;
    assert_int_equal(stat(names[which], &status), 0);
    return status.st_size;
  }
  void write() {
    const std::byte packet[kPacket] = {};
    captures.write(soft::PacketTap::Direction::kSent, {}, 0, 64, packet);
  }
};

int setup(void** state) {
  Files* files = new Files;
  for (auto& name : files->names) {
    strcpy(name, "/tmp/captures-XXXXXX");
    const int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
  }
  *state = files;
  return 0;
}

int teardown(void** state) {
  Files* files = static_cast<Files*>(*state);
  for (const auto& name : files->names) unlink(name);
  delete files;
  return 0;
}

Files& files_of(void** state) {
  return *static_cast<Files*>(*state);
}

void add__two_files__each_has_each_packet(void** state) {
  Files& files = files_of(state);
  files.write();
  assert_int_equal(files.captures.add(1, files.open(0)), 0);
  assert_int_equal(files.captures.add(2, files.open(1)), 0);
  files.write();
  files.captures.remove(1);
  files.write();
  assert_int_equal(files.size(0), kRecord);
  assert_int_equal(files.size(1), 2 * kRecord);
  files.captures.remove(1);
  files.captures.remove(2);
  assert_int_equal(files.captures.count(), 0);
}

void add__one_file_of_two_owners__has_each_packet_once(void** state) {
  Files& files = files_of(state);
  assert_int_equal(files.captures.add(1, files.open(0)), 0);
  assert_int_equal(files.captures.add(2, files.open(0)), 0);
  files.write();
  assert_int_equal(files.size(0), kRecord);
  files.captures.remove(1);
  files.write();
  assert_int_equal(files.size(0), 2 * kRecord);
}

void add__again__takes_the_place(void** state) {
  Files& files = files_of(state);
  assert_int_equal(files.captures.add(1, files.open(0)), 0);
  assert_int_equal(files.captures.add(1, files.open(1)), 0);
  assert_int_equal(files.captures.count(), 1);
  files.write();
  assert_int_equal(files.size(0), 0);
  assert_int_equal(files.size(1), kRecord);
}

void add__other_kinds__are_refused(void** state) {
  Files& files = files_of(state);
  assert_int_equal(files.captures.add(1, soft::OwnedFd()), EINVAL);
  assert_int_equal(files.captures.add(1, files.open(0, O_RDONLY | O_APPEND)), EINVAL);
  assert_int_equal(files.captures.add(1, files.open(0, O_WRONLY)), EINVAL);
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const soft::OwnedFd reader(ends[0]);
  assert_int_equal(fcntl(ends[1], F_SETFL, O_APPEND), 0);
  assert_int_equal(files.captures.add(1, soft::OwnedFd(ends[1])), EINVAL);
  assert_int_equal(files.captures.count(), 0);
}

void add__too_many__is_refused(void** state) {
  Files& files = files_of(state);
  for (uint32_t i = 0; i < Captures::kMax; i++) assert_int_equal(files.captures.add(i, files.open(0)), 0);
  assert_int_equal(files.captures.add(Captures::kMax, files.open(0)), ENFILE);
  assert_int_equal(files.captures.add(0, files.open(1)), 0);
  files.write();
  assert_int_equal(files.size(0), kRecord);
  assert_int_equal(files.size(1), kRecord);
}

}  // namespace

#define CAPTURES_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main() {
  const CMUnitTest tests[] = {
      CAPTURES_TEST(add__two_files__each_has_each_packet),
      CAPTURES_TEST(add__one_file_of_two_owners__has_each_packet_once),
      CAPTURES_TEST(add__again__takes_the_place),
      CAPTURES_TEST(add__other_kinds__are_refused),
      CAPTURES_TEST(add__too_many__is_refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
