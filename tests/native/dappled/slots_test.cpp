// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappled's table of slots, in the test's own process.
#include "provider/dappled/slots.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/native/namespaces.hpp"
#include "tests/native/remains.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::dappled;
using namespace dapple::soft;

namespace {

// The first access to a page without memory could end in SIGBUS.
void take__beyond_the_first_slots__has_memory_for_the_counters(void**) {
  Slots slots;
  Problem problem;
  OwnedFd leases[20];
  struct stat status;
  uint32_t slot = 0;
  for (OwnedFd& lease : leases) {
    assert_true(slots.take(slot, lease, problem) == Slots::Grant::kGranted);
    assert_int_equal(fstat(slots.counters_file(), &status), 0);
    assert_true(status.st_blocks * 512 >= static_cast<blkcnt_t>((slot + 1) * kSlotFirstSize));
    assert_non_null(slots.counters().at(slot));
  }
  assert_null(slots.counters().at(slots.group().size()));
}

// dappled needs a descriptor to find out whether an owner lives.
void leave__without_a_descriptor__keeps_the_slot_of_a_living_owner(void**) {
  assert_true(tests::ends_soon());
  Slots slots;
  Problem problem;
  OwnedFd lease;
  uint32_t slot = 0;
  assert_true(slots.take(slot, lease, problem) == Slots::Grant::kGranted);
  rlimit before;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  slots.leave(slot);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  assert_int_equal(slots.in_use(), 1);
  assert_true(slots.tidy());
  lease.reset();
  assert_false(slots.tidy());
  assert_int_equal(slots.in_use(), 0);
}

void set_files(rlim_t most) {
  const rlimit files = {most, most};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

// The last byte of the packet that has come to the socket; -1 without one.
int come(int socket) {
  unsigned char bytes[64];
  const ssize_t size = recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
  return size < 1 ? -1 : bytes[size - 1];
}

// Sends a packet to a queue pair, whose last byte is `mark`.
void send_to(uint32_t qpn, unsigned char mark) {
  static const OwnedFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const unsigned char bytes[16] = {4,
                                   0,
                                   0,
                                   0,
                                   0,
                                   static_cast<unsigned char>(qpn >> 16),
                                   static_cast<unsigned char>(qpn >> 8),
                                   static_cast<unsigned char>(qpn),
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   mark};
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(kRocePort);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_int_equal(sendto(socket.get(), bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&to), sizeof to),
                   sizeof bytes);
}

// The first and the last number of each slot lead to its socket, also after another dappled has taken the sockets over.
void expect_ways_to_all(const Slots& slots) {
  for (uint32_t slot = 1; slot < kMaxSlots; slot++) {
    const int socket = slots.group().socket(slot);
    send_to(first_qpn(slot), 1);
    send_to(first_qpn(slot) + qpns_of(slot) - 1, 2);
    assert_int_equal(come(socket), 1);
    assert_int_equal(come(socket), 2);
    assert_int_equal(come(socket), -1);
  }
}

void take__all_slots__each_gets_its_packets(void**) {
  constexpr uint32_t kPrograms = kMaxSlots - 1;
  assert_true(kPrograms >= 1024);
  assert_true(tests::ends_soon());
  rlimit files;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max < 5 * kPrograms) {
    print_message("SKIP: the hard limit of open files is %lu\n", static_cast<unsigned long>(files.rlim_max));
    skip();
  }
  set_files(files.rlim_max);
  Problem problem;
  static OwnedFd leases[kPrograms];
  OwnedFd lease;
  Descriptors handed;
  uint32_t slot = 0;
  {
    Slots slots;
    for (uint32_t i = 0; i < kPrograms; i++) {
      assert_true(slots.take(slot, leases[i], problem) == Slots::Grant::kGranted);
      // The large slots go first.
      assert_int_equal(slot, i + 1);
    }
    assert_true(slots.take(slot, lease, problem) == Slots::Grant::kRefused);
    assert_int_equal(problem.error, ENOSPC);
    assert_string_equal(problem.line,
                        "all 1150 slots of UDP port 4791 are in use; end a program, or use another network namespace");
    expect_ways_to_all(slots);
    assert_non_null(slots.counters().at(kMaxSlots - 1));

    // A small slot and a large one are free; the large one goes first.
    leases[199].reset();
    slots.leave(200);
    leases[99].reset();
    slots.leave(100);
    assert_true(slots.take(slot, leases[99], problem) == Slots::Grant::kGranted);
    assert_int_equal(slot, 100);
    assert_true(slots.take(slot, leases[199], problem) == Slots::Grant::kGranted);
    assert_int_equal(slot, 200);

    handed.fds[0].reset(dup(slots.group().bundle().writer()));
    handed.fds[1].reset(dup(slots.group().bundle().queue()));
    handed.fds[2].reset(dup(slots.counters_file()));
    handed.count = kAnnounceDescriptors;
  }
  Slots next;
  assert_true(next.announce(1, handed, problem));
  assert_int_equal(next.group().size(), kMaxSlots);
  assert_int_equal(next.in_use(), kPrograms);
  handed.count = 0;
  for (uint32_t i = 2; i <= kPrograms; i++) assert_true(next.announce(i, handed, problem));
  expect_ways_to_all(next);
  assert_non_null(next.counters().at(kMaxSlots - 1));
  for (OwnedFd& each : leases) each.reset();
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

}  // namespace

int main() {
  tests::need_new_namespace();
  const CMUnitTest all[] = {
      cmocka_unit_test(take__beyond_the_first_slots__has_memory_for_the_counters),
      cmocka_unit_test(leave__without_a_descriptor__keeps_the_slot_of_a_living_owner),
      cmocka_unit_test(take__all_slots__each_gets_its_packets),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
