// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Garbage, too many connections, and other users at dappled's socket.
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <memory>
#include <span>
#include <vector>

#include "provider/common/settings.hpp"
#include "provider/member/daemon_link.hpp"
#include "provider/protocol/unix_message.hpp"
#include "tests/native/dappled/member.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/remains.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;
using dapple::tests::Member;
using dapple::tests::status_of;

namespace {

int raw_connection() {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address;
  const socklen_t size = abstract_address(kDaemonName, address);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) return fd;
  close(fd);
  return -1;
}

// The reply's size; 0: the connection was ended; -1: no reply.
ssize_t answer_to(int fd, const void* bytes, size_t size, void* room, size_t room_size) {
  if (send(fd, bytes, size, MSG_NOSIGNAL) < 0) return 0;
  pollfd waiting = {fd, POLLIN, 0};
  if (poll(&waiting, 1, 20000) <= 0) return -1;
  return recv(fd, room, room_size, 0);
}

// False in a user namespace that maps only one user.
bool can_become_another_user() {
  const pid_t child = fork();
  if (child == 0) _exit(setgid(65534) == 0 && setuid(65534) == 0 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

void dappled__garbage__harms_nobody(void**) {
  Member member;
  assert_true(member.start());
  char room[4096];
  unsigned seed = 7;
  for (int i = 0; i < 500; i++) {
    const int fd = raw_connection();
    assert_true(fd >= 0);
    char bytes[3000];
    const size_t size = 1 + static_cast<size_t>(rand_r(&seed)) % sizeof bytes;
    for (size_t k = 0; k < size; k++) bytes[k] = static_cast<char>(rand_r(&seed));
    // Some inputs get as far as the check of the kinds.
    MessageHeader header;
    header.kind = static_cast<uint16_t>(rand_r(&seed) % 30);
    header.size = static_cast<uint32_t>(size);
    if (i % 2 == 0 && size >= sizeof header) memcpy(bytes, &header, sizeof header);
    const ssize_t got = answer_to(fd, bytes, size, room, sizeof room);
    // The connection was ended or, for an exact size by chance or a refusal, answered.
    assert_true(got >= 0);
    close(fd);
  }
  // Another version gets a refusal that it can read.
  const int fd = raw_connection();
  HeaderOnly request;
  seal(request, static_cast<uint16_t>(MessageKind::kDevices));
  request.header.version = 99;
  assert_int_equal(answer_to(fd, &request, sizeof request, room, sizeof room), sizeof(ErrorReply));
  ErrorReply reply;
  memcpy(&reply, room, sizeof reply);
  assert_int_equal(reply.header.error, EPROTONOSUPPORT);
  close(fd);
  assert_true(member.hears(5));
}

void dappled__thousands_of_connections__are_bounded(void**) {
  Member member;
  assert_true(member.start());
  // dappled takes 4,096, or as many as it has descriptors.
  rlimit files;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
  std::vector<pollfd> ends;
  for (int i = 0; i < 4500; i++) {
    const int fd = raw_connection();
    if (fd >= 0) ends.push_back({fd, POLLIN, 0});
  }
  // On one processor dappled may not have taken any of them yet.
  assert_true(poll(ends.data(), ends.size(), 60'000) > 0);
  assert_true(member.hears(6));
  for (const pollfd& end : ends) close(end.fd);
  assert_true(member.hears(7));
  Problem problem;
  std::unique_ptr<DaemonLink> link;
  for (int i = 0; i < 3000 && link == nullptr; i++) {
    usleep(10000);
    link = DaemonLink::open(problem);
  }
  assert_non_null(link.get());
  assert_true(status_of(*link).refused_connections > 0);
  assert_true(status_of(*link).members <= 3);
}

void dappled__another_user__is_refused(void**) {
  if (!can_become_another_user()) skip_test("no other user can be had");
  Member member;
  assert_true(member.start());
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(3);
    Problem problem;
    const bool linked = DaemonLink::open(problem) != nullptr;
    // The member's own library reports it; dappled reports it to a member that does not.
    const bool told = !linked && problem.error == EACCES && strstr(problem.line, "DAPPLE_TRUST_UID") != nullptr;
    const int fd = raw_connection();
    HeaderOnly request;
    seal(request, static_cast<uint16_t>(MessageKind::kSlot));
    ErrorReply reply;
    const ssize_t got = answer_to(fd, &request, sizeof request, &reply, sizeof reply);
    const bool refused = got == sizeof reply && reply.header.error == EACCES;
    if (!refused) _exit(1);
    setenv("DAPPLE_TRUST_UID", "0", 1);
    provider::read_settings_again();
    const bool trusting = DaemonLink::open(problem) != nullptr;
    _exit(told && trusting ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
  assert_true(member.hears(8));
}

// 0, or an exit code of a child that opens a link as another user.
int open_as_another_user() {
  constexpr int kNoDappled = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(3);
    const char* dappled = provider::settings().dappled;
    if (dappled == nullptr || access(dappled, X_OK) != 0) _exit(kNoDappled);
    Problem problem;
    const auto link = DaemonLink::open(problem);
    if (link == nullptr) print_error("%s\n", problem.line);
    _exit(link != nullptr && status_of(*link).uid == 65534 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == kNoDappled) skip_test("another user cannot start dappled in this folder");
  return status;
}

void dappled__without_programs__gives_way_to_another_user(void**) {
  if (!can_become_another_user()) skip_test("no other user can be had");
  for (int i = 0; i < 3; i++) {
    Problem problem;
    {
      const auto link = DaemonLink::open(problem);
      if (link == nullptr) print_error("%s\n", problem.line);
      assert_non_null(link.get());
      assert_int_equal(status_of(*link).uid, geteuid());
    }
    assert_int_equal(open_as_another_user(), 0);
  }
  // A long time is kept: see DAPPLED_LINGER in dapple-soft(7).
  setenv("DAPPLED_LINGER", "5", 1);
  provider::read_settings_again();
  Problem problem;
  assert_non_null(DaemonLink::open(problem).get());
  const int status = open_as_another_user();
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  unsetenv("DAPPLED_LINGER");
  provider::read_settings_again();
}

// The limit of dappled's descriptors. Returns the one before, or 0.
rlim_t limit_descriptors(pid_t process, rlim_t limit) {
  rlimit limits;
  if (prlimit(process, RLIMIT_NOFILE, nullptr, &limits) != 0) return 0;
  const rlim_t before = limits.rlim_cur;
  limits.rlim_cur = limit;
  return prlimit(process, RLIMIT_NOFILE, &limits, nullptr) == 0 ? before : 0;
}

double cpu_seconds(pid_t process) {
  clockid_t clock;
  timespec time = {};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 1e9;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

enum class Fate { kServed, kRefused, kWaits };

// What becomes of a connection that asks for dappled's status.
Fate fate_of(int fd, int wait) {
  HeaderOnly request;
  seal(request, static_cast<uint16_t>(MessageKind::kStatus));
  if (send(fd, &request, sizeof request, MSG_NOSIGNAL) < 0) return Fate::kRefused;
  pollfd waiting = {fd, POLLIN, 0};
  if (poll(&waiting, 1, wait) <= 0) return Fate::kWaits;
  StatusReply reply;
  return recv(fd, &reply, sizeof reply, 0) == sizeof reply ? Fate::kServed : Fate::kRefused;
}

void dappled__no_descriptor_left__others_are_refused(void**) {
  constexpr rlim_t kLimit = 64;
  constexpr size_t kMany = 100;
  Problem problem;
  const auto link = DaemonLink::open(problem);
  Member member;
  assert_true(link != nullptr && member.start());
  const auto process = static_cast<pid_t>(status_of(*link).process);
  const uint64_t refused_before = status_of(*link).refused_connections;
  const rlim_t before = limit_descriptors(process, kLimit);
  assert_int_not_equal(before, 0);
  int fds[kMany];
  for (int& fd : fds) {
    fd = raw_connection();
    assert_true(fd >= 0);
  }
  size_t served = 0;
  for (const int fd : fds) {
    const Fate fate = fate_of(fd, 20000);
    assert_true(fate != Fate::kWaits);
    served += fate == Fate::kServed ? 1 : 0;
  }
  assert_in_range(served, 1, kLimit);
  assert_int_equal(status_of(*link).refused_connections - refused_before, kMany - served);
  assert_true(member.hears(9));
  for (const int fd : fds) close(fd);
  limit_descriptors(process, before);
  Member fresh;
  assert_true(fresh.start());
  assert_true(fresh.hears(10));
}

// A connection that can be neither accepted nor refused stays in the queue.
void dappled__no_descriptor_for_a_refusal__connection_waits(void**) {
  Problem problem;
  const auto link = DaemonLink::open(problem);
  assert_non_null(link.get());
  const auto process = static_cast<pid_t>(status_of(*link).process);
  // Even the number that a refusal needs is beyond this limit.
  const rlim_t before = limit_descriptors(process, 1);
  assert_int_not_equal(before, 0);
  const double used_before = cpu_seconds(process);
  const int fd = raw_connection();
  assert_true(fate_of(fd, 1000) == Fate::kWaits);
  // A loop that looks into the queue again and again would need most of that second.
  assert_true(cpu_seconds(process) - used_before < 0.3);
  assert_int_equal(status_of(*link).process, process);
  limit_descriptors(process, before);
  // The question waits, too, and this asks a second time.
  assert_true(fate_of(fd, 20000) == Fate::kServed);
  close(fd);
}

// The errno in dappled's answer; EPIPE if it ends the connection.
int error_of_answer(int fd, std::span<const std::byte> request, std::span<const int> descriptors = {}) {
  if (send_message(fd, request, descriptors) != 0) return EPIPE;
  pollfd waiting = {fd, POLLIN, 0};
  ErrorReply reply;
  if (poll(&waiting, 1, 20000) <= 0) return ETIMEDOUT;
  if (recv(fd, &reply, sizeof reply, 0) < static_cast<ssize_t>(sizeof reply.header)) return EPIPE;
  return static_cast<int>(reply.header.error);
}

// The same for an announcement of a slot, on a connection of its own.
int error_of_announcement(uint32_t slot, std::span<const int> descriptors) {
  AnnounceRequest request;
  request.slot = slot;
  const OwnedFd fd(raw_connection());
  return error_of_answer(fd.get(), seal(request, static_cast<uint16_t>(MessageKind::kAnnounce)), descriptors);
}

void dappled__announcements_of_other_slots__are_refused(void**) {
  Member member;
  Slot own;
  assert_true(member.start());
  const auto link = tests::link_with_slot(own);
  assert_non_null(link.get());
  const int descriptors[] = {own.bundle[0], own.bundle[1], own.counters_file};
  assert_int_equal(error_of_announcement(member.slot, std::span(descriptors).first(1)), EINVAL);
  assert_int_equal(error_of_announcement(kMaxSlots, descriptors), EINVAL);
  assert_int_equal(error_of_announcement(member.slot, descriptors), EBUSY);
  // Nobody holds the name of this one, and dappled has not given it away.
  uint32_t unused = 1;
  while (unused == member.slot || unused == own.number) unused++;
  assert_int_equal(error_of_announcement(unused, descriptors), EBUSY);
  assert_true(member.hears(11));
}

void dappled__second_slot_on_a_connection__is_refused(void**) {
  Member member;
  assert_true(member.start());
  HeaderOnly request;
  AnnounceRequest announcement;
  const OwnedFd fd(raw_connection());
  const auto slot = static_cast<uint16_t>(MessageKind::kSlot);
  assert_int_equal(error_of_answer(fd.get(), seal(request, slot)), 0);
  assert_int_equal(error_of_answer(fd.get(), seal(request, slot)), EEXIST);
  announcement.slot = member.slot;
  assert_int_equal(error_of_answer(fd.get(), seal(announcement, static_cast<uint16_t>(MessageKind::kAnnounce))), EPIPE);
  assert_true(member.hears(12));
}

// The first announcement to a new dappled brings the port's sockets.
void dappled__announced_sockets_of_another_port__are_refused(void**) {
  assert_true(tests::ends_soon());
  Problem problem;
  const auto link = DaemonLink::open(problem);
  assert_non_null(link.get());
  for (const int family : {AF_INET, AF_UNIX}) {
    for (uint32_t count = 0; count <= 2; count++) {
      int ends[2];
      assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
      for (uint32_t i = 0; i < count; i++) {
        // bundle.cpp: an entry.
        const uint32_t entry[] = {kMagic, i};
        const OwnedFd other(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        const int handed[] = {other.get()};
        assert_int_equal(send_message(ends[0], std::as_bytes(std::span(entry)), handed), 0);
      }
      const int descriptors[] = {ends[0], ends[1], ends[1]};
      assert_int_equal(error_of_announcement(1, descriptors), EINVAL);
      close(ends[0]);
      close(ends[1]);
    }
  }
  assert_int_equal(status_of(*link).takeovers, 0);
  Member member;
  assert_true(member.start());
  assert_true(member.hears(13));
}

}  // namespace

int main() {
  tests::need_new_namespace();
  const CMUnitTest all[] = {
      cmocka_unit_test(dappled__garbage__harms_nobody),
      cmocka_unit_test(dappled__thousands_of_connections__are_bounded),
      cmocka_unit_test(dappled__another_user__is_refused),
      cmocka_unit_test(dappled__without_programs__gives_way_to_another_user),
      cmocka_unit_test(dappled__no_descriptor_left__others_are_refused),
      cmocka_unit_test(dappled__no_descriptor_for_a_refusal__connection_waits),
      cmocka_unit_test(dappled__announcements_of_other_slots__are_refused),
      cmocka_unit_test(dappled__second_slot_on_a_connection__is_refused),
      cmocka_unit_test(dappled__announced_sockets_of_another_port__are_refused),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
