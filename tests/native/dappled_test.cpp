// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappled and the deaths of its members, in network namespaces of this test's own.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "provider/soft/counters_file.hpp"
#include "provider/soft/daemon_link.hpp"
#include "provider/soft/unix_message.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/remains.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;

namespace {

const char* program_name;

double milliseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

StatusReply status_of(DaemonLink& link) {
  StatusReply status;
  Problem problem;
  if (!link.status(status, problem)) fprintf(stderr, "status: %s\n", problem.line);
  return status;
}

// Sends one packet with a number to a slot.
void send_to(uint32_t slot, uint32_t number, bool ipv6 = false) {
  static int fds[2] = {-1, -1};
  int& fd = fds[ipv6 ? 1 : 0];
  if (fd < 0) fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  unsigned char bytes[20] = {4};
  bytes[5] = static_cast<unsigned char>(slot);
  bytes[7] = 7;
  memcpy(bytes + 12, &number, sizeof number);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(kRocePort);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 to6 = {};
  to6.sin6_family = AF_INET6;
  to6.sin6_port = htons(kRocePort);
  to6.sin6_addr = in6addr_loopback;
  if (ipv6) {
    sendto(fd, bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&to6), sizeof to6);
  } else {
    sendto(fd, bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
  }
}

// A process with a slot. It passes the numbers that arrive at its slot on to the test, and reconnects to dappled.
struct Member {
  pid_t process = -1;
  int from = -1;
  uint32_t slot = 0;

  bool start() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(ends[0]);
      live(ends[1]);
    }
    close(ends[1]);
    from = ends[0];
    return next(slot) && slot != 0;
  }

  [[noreturn]] static void live(int to) {
    Problem problem;
    const auto link = DaemonLink::open(problem);
    Slot mine;
    if (link == nullptr || !link->slot(mine, problem)) {
      fprintf(stderr, "member: %s\n", problem.line);
      _exit(1);
    }
    uint32_t number = mine.number;
    while (write(to, &number, sizeof number) == sizeof number) {
      pollfd waiting[2] = {{mine.receive_socket, POLLIN, 0}, {link->fd(), POLLIN, 0}};
      while (poll(waiting, 2, -1) < 0) {
      }
      if (waiting[1].revents != 0 && !link->check(problem)) fprintf(stderr, "member: %s\n", problem.line);
      unsigned char bytes[64];
      while (recv(mine.receive_socket, bytes, sizeof bytes, MSG_DONTWAIT) != 20) {
        waiting[1].fd = link->fd();
        if (poll(waiting, 2, -1) > 0 && waiting[1].revents != 0) link->check(problem);
      }
      memcpy(&number, bytes + 12, sizeof number);
    }
    _exit(0);
  }

  // The next number that has arrived; false if none arrives.
  bool next(uint32_t& number, int wait = 2000) const {
    pollfd waiting = {from, POLLIN, 0};
    return poll(&waiting, 1, wait) > 0 && read(from, &number, sizeof number) == sizeof number;
  }

  bool hears(uint32_t number, bool ipv6 = false) const {
    send_to(slot, number, ipv6);
    uint32_t heard;
    return next(heard) && heard == number;
  }

  void end(int number = SIGKILL) {
    if (process > 0) {
      kill(process, number);
      waitpid(process, nullptr, 0);
    }
    if (from >= 0) close(from);
    process = from = -1;
  }
  ~Member() { end(); }
};

void dappled__one_program__is_quick_and_leaves_nothing(void**) {
  assert_true(tests::nothing_left());
  Problem problem;
  std::unique_ptr<DaemonLink> link;
  // The best of several times, so that other programs on the machine do not matter.
  double took = 1e9;
  for (int i = 0; i < 5 && took >= 100; i++) {
    link.reset();
    assert_true(tests::ends_soon());
    const double begin = milliseconds();
    link = DaemonLink::open(problem);
    Slot slot;
    assert_true(link != nullptr && link->slot(slot, problem));
    took = milliseconds() - begin;
  }
  printf("started and answered after %.1f ms\n", took);
  assert_true(took < 100);
  assert_true(waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD);
  DeviceList devices;
  DeviceInfo device;
  assert_true(link->devices(devices, problem));
  assert_int_equal(devices.count, 1);
  assert_true(link->device(devices.indexes[0], device, problem));
  assert_string_equal(device.name, "dapple0");
  assert_string_equal(device.netdev, "lo");
  assert_true(device.loopback && device.up && device.guid != 0);
  assert_false(link->device(kFirstDeviceIndex + 77, device, problem));
  assert_int_equal(problem.error, ENODEV);
  link.reset();
  assert_true(tests::ends_soon());
}

void dappled__addresses_change__keep_their_places(void**) {
  Problem problem;
  const auto link = DaemonLink::open(problem);
  DeviceList before, after;
  DeviceInfo device;
  assert_true(link->devices(before, problem));
  if (!tests::run("ip addr add 10.9.9.1/32 dev lo && ip addr add 10.9.9.2/32 dev lo && ip addr del 10.9.9.1/32 dev lo"
                  " && ip addr add 10.9.9.3/32 dev lo")) {
    skip();
  }
  assert_true(link->devices(after, problem));
  assert_int_not_equal(before.generation, after.generation);
  assert_true(link->device(after.indexes[0], device, problem));
  uint32_t places[4] = {99, 99, 99, 99};
  for (uint32_t i = 0; i < kMaxGids; i++) {
    const uint8_t* gid = device.gids[i].gid;
    if (device.gids[i].valid != 0 && gid[12] == 10 && gid[13] == 9 && gid[15] < 4) places[gid[15]] = i;
  }
  assert_int_equal(places[1], 99);
  assert_int_not_equal(places[2], 99);
  assert_int_not_equal(places[3], 99);
  tests::run("ip addr del 10.9.9.2/32 dev lo; ip addr del 10.9.9.3/32 dev lo");
  assert_true(link->device(after.indexes[0], device, problem));
  for (uint32_t i = 0; i < kMaxGids; i++) assert_true(device.gids[i].valid == 0 || device.gids[i].gid[12] != 10);
}

void dappled__members_killed__others_hear_everything(void**) {
  constexpr size_t kMembers = 20;  // more than dappled has slots at its start
  std::vector<Member> members(kMembers);
  for (Member& member : members) assert_true(member.start());
  uint32_t number = 1;
  for (Member& member : members) {
    assert_true(member.hears(number++));
    assert_true(member.hears(number++, true));
  }
  for (size_t i = 0; i < kMembers; i += 2) {
    kill(members[i].process, SIGKILL);
    for (size_t k = 1; k < kMembers; k += 2) assert_true(members[k].hears(number++, k % 4 == 1));
    members[i].end();
  }
  for (size_t k = 1; k < kMembers; k += 2) assert_true(members[k].hears(number++));
  // Other members get the slots of the dead, without any of the packets for the dead.
  for (size_t i = 0; i < kMembers; i += 2) {
    assert_true(members[i].start());
    assert_true(members[i].hears(number++));
  }
  Problem problem;
  auto link = DaemonLink::open(problem);
  assert_int_equal(status_of(*link).slots_in_use, kMembers);
  assert_true(status_of(*link).slots < 40);
  members.clear();
  link.reset();
  assert_true(tests::ends_soon());
}

void dappled__killed__members_go_on(void**) {
  std::vector<Member> members(5);
  for (Member& member : members) assert_true(member.start());
  Problem problem;
  auto link = DaemonLink::open(problem);
  DeviceList devices;
  DeviceInfo before, after;
  assert_true(link->devices(devices, problem));
  assert_true(link->device(devices.indexes[0], before, problem));
  uint32_t number = 1000;
  for (int round = 0; round < 10; round++) {
    kill(static_cast<pid_t>(status_of(*link).process), SIGKILL);
    for (const Member& member : members) assert_true(member.hears(number++));
    const double begin = milliseconds();
    assert_true(link->check(problem));
    assert_true(milliseconds() - begin < 1000);
    assert_true(link->device(devices.indexes[0], after, problem));
    assert_true(before.guid == after.guid);
    for (const Member& member : members) assert_true(member.hears(number++, round % 2 == 0));
    // A new program gets a slot that nobody has, although some members may not have reconnected yet.
    Member fresh;
    assert_true(fresh.start());
    for (const Member& member : members) assert_int_not_equal(fresh.slot, member.slot);
    assert_true(fresh.hears(number++));
    for (const Member& member : members) assert_true(member.hears(number++));
  }
  // dappled and a member die together: the slot is free for the next member.
  const uint32_t dead = members[2].slot;
  kill(static_cast<pid_t>(status_of(*link).process), SIGKILL);
  members[2].end();
  assert_true(link->check(problem));
  for (int i = 0; i < 200 && status_of(*link).slots_in_use != 4; i++) usleep(10000);
  assert_int_equal(status_of(*link).slots_in_use, 4);
  assert_true(status_of(*link).takeovers == 1);
  bool again = false;
  std::vector<Member> more(8);
  for (Member& member : more) {
    assert_true(member.start());
    again = again || member.slot == dead;
    assert_true(member.hears(number++));
  }
  assert_true(again);
  for (size_t i = 0; i < members.size(); i++) assert_true(i == 2 || members[i].hears(number++));
  members.clear();
  more.clear();
  link.reset();
  assert_true(tests::ends_soon());
}

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
  if (poll(&waiting, 1, 2000) <= 0) return -1;
  return recv(fd, room, room_size, 0);
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
    header.kind = static_cast<uint16_t>(rand_r(&seed) % 12);
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
  std::vector<int> fds;
  for (int i = 0; i < 3000; i++) {
    const int fd = raw_connection();
    if (fd >= 0) fds.push_back(fd);
  }
  assert_true(member.hears(6));
  for (const int fd : fds) close(fd);
  assert_true(member.hears(7));
  Problem problem;
  std::unique_ptr<DaemonLink> link;
  for (int i = 0; i < 100 && link == nullptr; i++) {
    usleep(10000);
    link = DaemonLink::open(problem);
  }
  assert_non_null(link.get());
  assert_true(status_of(*link).refused_connections > 0);
  assert_true(status_of(*link).members <= 3);
}

// A user namespace with one user has no other user.
bool can_become_another_user() {
  const pid_t child = fork();
  if (child == 0) _exit(setgid(65534) == 0 && setuid(65534) == 0 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

void dappled__another_user__is_refused(void**) {
  if (!can_become_another_user()) skip();
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
    const bool trusting = DaemonLink::open(problem) != nullptr;
    _exit(told && trusting ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
  assert_true(member.hears(8));
}

void dappled__port_taken__is_told(void**) {
  assert_true(tests::ends_soon());
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(kRocePort);
  assert_int_equal(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  Problem problem;
  auto link = DaemonLink::open(problem);
  Slot slot;
  assert_non_null(link.get());
  const double begin = milliseconds();
  assert_false(link->slot(slot, problem));
  assert_int_equal(problem.error, EADDRINUSE);
  char process[32];
  snprintf(process, sizeof process, "Process %d (", getpid());
  assert_non_null(strstr(problem.line, process));
  // rdma_cm would wait silently.
  int ends[2];
  CmChannelName name;
  OwnedFd journal;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  problem.clear();
  assert_false(link->cm_open(ends[1], name, journal, problem));
  assert_int_equal(problem.error, EADDRINUSE);
  assert_non_null(strstr(problem.line, process));
  // Nobody waited for members of an earlier dappled.
  assert_true(milliseconds() - begin < 1500);
  close(ends[0]);
  close(ends[1]);
  // The port is free again: the same link gets its slot.
  close(fd);
  assert_true(link->slot(slot, problem));
}

void dappled__port_held_by_a_ping__is_awaited(void**) {
  assert_true(tests::ends_soon());
  int ready[2];
  assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
  const pid_t ping = fork();
  if (ping == 0) {
    prctl(PR_SET_NAME, "dapple-info");
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(kRocePort);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || write(ready[1], "r", 1) != 1) _exit(1);
    usleep(500000);
    _exit(0);
  }
  close(ready[1]);
  char byte;
  assert_int_equal(read(ready[0], &byte, 1), 1);
  Problem problem;
  auto link = DaemonLink::open(problem);
  Slot slot;
  assert_non_null(link.get());
  assert_true(link->slot(slot, problem));
  int status = 1;
  assert_int_equal(waitpid(ping, &status, 0), ping);
  assert_int_equal(status, 0);
  close(ready[0]);
}

void dappled__pipe_of_its_starter__is_closed(void**) {
  const std::string command = std::string("DAPPLED_LINGER=20 ") + program_name + " --member | cat >/dev/null";
  const double begin = milliseconds();
  assert_true(tests::run(command.c_str()));
  assert_true(milliseconds() - begin < 5000);
  Problem problem;
  auto link = DaemonLink::open(problem, DaemonLink::Start::kNever);
  assert_non_null(link.get());
  const auto process = static_cast<pid_t>(status_of(*link).process);
  char path[64], folder[64] = "";
  snprintf(path, sizeof path, "/proc/%d/cwd", process);
  assert_true(readlink(path, folder, sizeof folder - 1) > 0);
  assert_string_equal(folder, "/");
  assert_int_not_equal(getsid(process), getsid(0));
  link.reset();
  kill(process, SIGTERM);
  assert_true(tests::ends_soon());
}

// True if the member is notified of a change within two seconds.
bool told_of_change(DaemonLink& link) {
  Problem problem;
  pollfd waiting = {link.fd(), POLLIN, 0};
  return poll(&waiting, 1, 2000) == 1 && link.check(problem) && link.take_changed();
}

void dappled__changes__are_told_to_members(void**) {
  Problem problem;
  auto member = DaemonLink::open(problem);
  auto guest = DaemonLink::open(problem);
  Slot slot;
  DeviceList list;
  assert_true(member->slot(slot, problem));
  assert_true(member->take_changed());  // a new connection may have missed any change
  guest->take_changed();
  if (!tests::run("ip addr add 10.9.9.1/32 dev lo")) skip();
  assert_true(told_of_change(*member));
  // dappled notifies once, until the member has asked.
  assert_true(tests::run("ip addr del 10.9.9.1/32 dev lo && ip addr add 10.9.9.2/32 dev lo"));
  pollfd waiting = {member->fd(), POLLIN, 0};
  assert_int_equal(poll(&waiting, 1, 200), 0);
  assert_true(member->devices(list, problem));
  assert_true(tests::run("ip addr del 10.9.9.2/32 dev lo"));
  assert_true(told_of_change(*member));
  // An answer that arrives after the notification is still the answer.
  for (int i = 0; i < 50; i++) {
    assert_true(tests::run(i % 2 == 0 ? "ip addr add 10.9.9.1/32 dev lo" : "ip addr del 10.9.9.1/32 dev lo"));
    assert_true(member->devices(list, problem));
    assert_true(status_of(*member).slots > 0);
  }
  // A new dappled may have missed changes, so the member is notified.
  member->take_changed();
  kill(static_cast<pid_t>(status_of(*member).process), SIGKILL);
  assert_true(told_of_change(*member));
  // A program without a slot gets no notification, and none remains in its socket.
  assert_false(guest->changed());
  assert_true(guest->devices(list, problem));
  member.reset();
  guest.reset();
  assert_true(tests::ends_soon());
}

// As in a container whose root file system is nearly empty.
void dappled__no_dev_null__starts(void**) {
  assert_true(tests::ends_soon());
  const pid_t child = fork();
  if (child == 0) {
    const bool hidden = unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                        mount("tmpfs", "/dev", "tmpfs", 0, nullptr) == 0;
    if (!hidden || access("/dev/null", F_OK) == 0) _exit(77);
    Problem problem;
    const auto link = DaemonLink::open(problem);
    Slot slot;
    if (link == nullptr || !link->slot(slot, problem)) {
      fprintf(stderr, "%s\n", problem.line);
      _exit(1);
    }
    // No socket of dappled may have one of the first descriptor numbers.
    char path[64];
    const unsigned process = status_of(*link).process;
    for (int fd = 0; fd <= 2; fd++) {
      char target[16] = "";
      snprintf(path, sizeof path, "/proc/%u/fd/%d", process, fd);
      if (readlink(path, target, sizeof target - 1) <= 0 || strcmp(target, "/") != 0) _exit(2);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 77) skip();
  assert_int_equal(status, 0);
  assert_true(tests::ends_soon());
}

uint64_t counted_runts(DaemonLink& link) {
  for (size_t i = 0; i < kCounterCount; i++) {
    if (strcmp(kCounterNames[i].key, "runts") == 0) return status_of(link).counters[i];
  }
  return UINT64_MAX;
}

void dappled__counters__outlive_programs_and_dappled(void**) {
  Problem problem;
  auto link = DaemonLink::open(problem);
  assert_non_null(link.get());
  assert_int_equal(counted_runts(*link), 0);
  // A program counts, and is killed.
  const pid_t program = fork();
  if (program == 0) {
    const auto own = DaemonLink::open(problem);
    Slot slot;
    if (own == nullptr || !own->slot(slot, problem)) _exit(1);
    slot.counters->wire.runts.add(5);
    slot.counters->wire.send_error.set(11);
    _exit(0);
  }
  int status = 1;
  waitpid(program, &status, 0);
  assert_int_equal(status, 0);
  assert_int_equal(counted_runts(*link), 5);
  // dappled is killed, and this program, which is a member, passes the counters on.
  Slot slot;
  assert_true(link->slot(slot, problem));
  slot.counters->wire.runts.add(2);
  assert_int_equal(counted_runts(*link), 7);
  kill(static_cast<pid_t>(status_of(*link).process), SIGKILL);
  assert_true(link->check(problem));
  assert_int_equal(counted_runts(*link), 7);
  slot.counters->wire.runts.add();
  assert_int_equal(counted_runts(*link), 8);
  // A file that could be truncated is ignored.
  const OwnedFd plain(memfd_create("plain", MFD_CLOEXEC));
  assert_int_equal(ftruncate(plain.get(), kCountersFileSize), 0);
  assert_false(is_counters_file(plain.get()));
  assert_null(map_counters(plain.get(), 1));
  assert_null(map_counters(slot.counters_file, kMaxSlots));
  link.reset();
  assert_true(tests::ends_soon());
}

// A child that does not use the link holds its descriptors: no other program may get the slot.
void dappled__forked_child__keeps_the_slot_of_its_parent(void**) {
  int told[2], hold[2];
  assert_int_equal(pipe2(told, O_CLOEXEC) + pipe2(hold, O_CLOEXEC), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    close(hold[1]);
    Problem problem;
    const auto link = DaemonLink::open(problem);
    Slot slot;
    if (link == nullptr || !link->slot(slot, problem)) _exit(1);
    if (fork() == 0) {
      // The child waits until the test closes its end.
      char byte;
      while (read(hold[0], &byte, 1) < 0) {
      }
      _exit(0);
    }
    _exit(write(told[1], &slot.number, sizeof slot.number) < 0 ? 1 : 0);
  }
  uint32_t slot_number = 0;
  assert_int_equal(read(told[0], &slot_number, sizeof slot_number), sizeof slot_number);
  waitpid(parent, nullptr, 0);
  std::vector<Member> members(10);
  for (Member& member : members) {
    assert_true(member.start());
    assert_int_not_equal(member.slot, slot_number);
    assert_true(member.hears(member.slot));
  }
  members.clear();
  assert_false(tests::nothing_left());
  for (const int fd : {told[0], told[1], hold[0], hold[1]}) close(fd);
  assert_true(tests::ends_soon());
}

}  // namespace

int main(int argc, char** argv) {
  program_name = argv[0];
  if (argc > 1 && strcmp(argv[1], "--member") == 0) {
    Problem problem;
    const auto link = DaemonLink::open(problem);
    Slot slot;
    return link != nullptr && link->slot(slot, problem) ? 0 : 1;
  }
  tests::need_new_namespace();
  const CMUnitTest all[] = {
      cmocka_unit_test(dappled__one_program__is_quick_and_leaves_nothing),
      cmocka_unit_test(dappled__addresses_change__keep_their_places),
      cmocka_unit_test(dappled__members_killed__others_hear_everything),
      cmocka_unit_test(dappled__killed__members_go_on),
      cmocka_unit_test(dappled__garbage__harms_nobody),
      cmocka_unit_test(dappled__thousands_of_connections__are_bounded),
      cmocka_unit_test(dappled__another_user__is_refused),
      cmocka_unit_test(dappled__port_taken__is_told),
      cmocka_unit_test(dappled__port_held_by_a_ping__is_awaited),
      cmocka_unit_test(dappled__pipe_of_its_starter__is_closed),
      cmocka_unit_test(dappled__changes__are_told_to_members),
      cmocka_unit_test(dappled__no_dev_null__starts),
      cmocka_unit_test(dappled__counters__outlive_programs_and_dappled),
      cmocka_unit_test(dappled__forked_child__keeps_the_slot_of_its_parent),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
