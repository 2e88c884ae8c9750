// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-info --ping between network namespaces: a peer that answers as a RoCE node does, and all kinds of obstacles.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>

#include "provider/member/daemon_link.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/unit/dapple-info/roce_peer.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "tools/dapple-info/ping/ends.hpp"
#include "tools/dapple-info/ping/ping.hpp"

using namespace dapple;
using namespace dapple::info;

namespace {

tests::VethPair veth;
int third = -1;  // a namespace behind the peer's: 10.78.0.2

constexpr uint16_t kRocePort = 4791;

enum class Mode { kHonest, kSilent, kDamaged, kOtherPort, kOtherAddress };

// A node that answers at an address of another namespace while the object lives.
struct Peer {
  pid_t process = -1;

  Peer(int where, const char* at, Mode mode) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) return;
    process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      live(where, at, mode, ready[1]);
    }
    close(ready[1]);
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
  }
  ~Peer() {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }

  [[noreturn]] static void live(int where, const char* at, Mode mode, int ready) {
    Address local{}, away{};
    if (setns(where, CLONE_NEWNET) != 0 || !resolve(at, local).empty() || !resolve("10.77.0.3", away).empty()) _exit(1);
    const int ear = socket(local.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const Address port = with_port(local, kRocePort);
    if (bind(ear, &port.any, size_of_address(port)) != 0) _exit(2);
    const int mouth = socket(local.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int dont_fragment = IP_PMTUDISC_DO;
    setsockopt(mouth, IPPROTO_IP, IP_MTU_DISCOVER, &dont_fragment, sizeof dont_fragment);
    const uint16_t source_port = 55410;
    const Address from = with_port(mode == Mode::kOtherAddress ? away : local, source_port);
    if (bind(mouth, &from.any, size_of_address(from)) != 0 || write(ready, "x", 1) != 1) _exit(3);
    for (;;) {
      std::byte bytes[8192];
      Address to{};
      socklen_t size = sizeof to;
      const ssize_t got = recvfrom(ear, bytes, sizeof bytes, 0, &to.any, &size);
      if (got <= 0 || mode == Mode::kSilent) continue;
      const std::span<const std::byte> packet(bytes, static_cast<size_t>(got));
      const uint16_t port_of_asker = ntohs(to.any.sa_family == AF_INET ? to.in.sin_port : to.in6.sin6_port);
      // A RoCE node drops packets that were changed on their way.
      if (!test::whole(packet, gid_of(to), gid_of(local), port_of_asker)) continue;
      const uint16_t claimed = mode == Mode::kOtherPort ? 1000 : source_port;
      auto answer = test::answer_to(packet, gid_of(local), gid_of(to), claimed);
      if (answer.empty()) continue;
      if (mode == Mode::kDamaged) answer.back() ^= std::byte{0x55}, answer[answer.size() - 3] ^= std::byte{0x33};
      const Address back = with_port(to, kRocePort);
      sendto(mouth, answer.data(), answer.size(), 0, &back.any, size_of_address(back));
    }
  }
};

// Runs a shell command in a namespace.
bool run_at(int where, const std::string& command) {
  const pid_t child = fork();
  if (child == 0) _exit(setns(where, CLONE_NEWNET) == 0 && tests::run(command.c_str()) ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

PingFacts ping_once(const char* peer, unsigned int count = 1) {
  const PingFacts facts = ping(peer, count, [](const std::string& line) { std::cout << "  " << line << "\n"; });
  std::cout << ping_for_people(facts) << std::flush;
  return facts;
}

int code_of(const PingFacts& facts) {
  return static_cast<int>(judge(facts));
}
constexpr int kGood = static_cast<int>(PingCode::kGood), kClosed = static_cast<int>(PingCode::kPortClosed),
              kSilence = static_cast<int>(PingCode::kSilence), kChanged = static_cast<int>(PingCode::kChanged),
              kMtu = static_cast<int>(PingCode::kMtu), kHere = static_cast<int>(PingCode::kHere),
              kUnreachable = static_cast<int>(PingCode::kUnreachable), kName = static_cast<int>(PingCode::kName);

void ping__node__answers() {
  for (const char* address : {"10.77.0.2", "fd77::2"}) {
    const Peer peer(veth.other, address, Mode::kHonest);
    const PingFacts facts = ping_once(address, 3);
    CHECK_EQUAL(code_of(facts), kGood);
    CHECK_EQUAL(facts.answers_us.size(), 3);
    CHECK_EQUAL(facts.netdev, "va");
    CHECK_EQUAL(facts.needed, 1104);
    CHECK_EQUAL(facts.passes, 1104);
  }
}

void ping__closed_port__is_told() {
  for (const char* address : {"10.77.0.2", "fd77::2"}) {
    const PingFacts facts = ping_once(address, 3);
    CHECK_EQUAL(code_of(facts), kClosed);
    CHECK_EQUAL(facts.teller, address);
    CHECK_EQUAL(facts.asked, 1);
  }
}

void ping__silence__is_told() {
  const Peer peer(veth.other, "10.77.0.2", Mode::kSilent);
  PingFacts facts = ping_once("10.77.0.2");
  CHECK_EQUAL(code_of(facts), kSilence);
  CHECK(facts.echo == Answered::kYes);
  // No answer arrives at all.
  CHECK(run_at(veth.other, "ip route add blackhole 10.77.0.1/32"));
  facts = ping_once("10.77.0.2");
  CHECK(run_at(veth.other, "ip route del blackhole 10.77.0.1/32"));
  CHECK_EQUAL(code_of(facts), kSilence);
  CHECK(facts.echo == Answered::kNo);
}

void ping__changed_on_the_way__is_told() {
  const struct {
    Mode mode;
    unsigned int PingFacts::*count;
  } cases[] = {{Mode::kDamaged, &PingFacts::bad_icrc},
               {Mode::kOtherPort, &PingFacts::changed_port},
               {Mode::kOtherAddress, &PingFacts::changed_address}};
  for (const auto& [mode, count] : cases) {
    const Peer peer(veth.other, "10.77.0.2", mode);
    const PingFacts facts = ping_once("10.77.0.2", 2);
    CHECK_EQUAL(code_of(facts), kChanged);
    CHECK_EQUAL(facts.*count, 2);
  }
}

void ping__small_mtu__is_told() {
  // A router reports the failure.
  if (third >= 0) {
    const Peer peer(third, "10.78.0.2", Mode::kHonest);
    const PingFacts facts = ping_once("10.78.0.2");
    CHECK_EQUAL(code_of(facts), kMtu);
    CHECK(facts.mtu_told);
    CHECK_EQUAL(facts.mtu_teller, "10.77.0.2");
    CHECK_EQUAL(facts.passes, 700);
  }
  // A link silently drops the packets.
  CHECK(run_at(veth.other, "ip link set vb mtu 1300"));
  CHECK(tests::run("ip link set va mtu 5000"));
  for (const char* address : {"10.77.0.2", "fd77::2"}) {
    const Peer peer(veth.other, address, Mode::kHonest);
    const PingFacts facts = ping_once(address);
    CHECK_EQUAL(code_of(facts), kMtu);
    CHECK(!facts.mtu_told);
    CHECK_EQUAL(facts.needed, 4176);
    CHECK_EQUAL(facts.passes, 1104);
  }
  CHECK(tests::run("ip link set va mtu 1500"));
  CHECK(run_at(veth.other, "ip link set vb mtu 1500"));
}

void ping__nowhere__is_told() {
  CHECK_EQUAL(code_of(ping_once("192.0.2.1")), kUnreachable);
  CHECK(tests::run("ip route add blackhole 192.0.2.0/24"));
  CHECK_EQUAL(code_of(ping_once("192.0.2.1")), kUnreachable);
  CHECK_EQUAL(code_of(ping_once("no such name")), kName);
  // Nobody has the address: the kernel looks for it for three seconds.
  const PingFacts facts = ping_once("10.77.0.99");
  CHECK_EQUAL(code_of(facts), kUnreachable);
  CHECK_EQUAL(facts.teller, "this host");
}

void ping__port_in_use_here__hears_errors_only() {
  const int taken = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(kRocePort);
  CHECK(bind(taken, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  CHECK_EQUAL(code_of(ping_once("10.77.0.2")), kClosed);
  {
    const Peer peer(veth.other, "10.77.0.2", Mode::kHonest);
    const PingFacts facts = ping_once("10.77.0.2");
    CHECK_EQUAL(code_of(facts), kHere);
    // The text names this process or the peer's, which has inherited the socket: the one with the lower id.
    CHECK(facts.deaf.find("(test-native-inf") != std::string::npos);
    CHECK_EQUAL(facts.passes, 1104);
  }
  close(taken);
  CHECK_EQUAL(code_of(ping_once("10.77.0.1")), kClosed);
}

// The other namespace runs a program with the software device.
struct Program {
  pid_t process = -1;

  explicit Program(int where) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) return;
    process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      soft::Problem problem;
      soft::Slot slot;
      std::unique_ptr<soft::DaemonLink> link;
      if (setns(where, CLONE_NEWNET) == 0) link = soft::DaemonLink::open(problem);
      if (link == nullptr || !link->slot(slot, problem)) std::cout << problem.line << std::endl, _exit(1);
      if (write(ready[1], "x", 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    close(ready[1]);
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
  }
  ~Program() {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
};

void ping__software_device__answers_and_asks() {
  {
    const Program there(veth.other);
    for (const char* address : {"10.77.0.2", "fd77::2"}) {
      const PingFacts facts = ping_once(address, 3);
      CHECK_EQUAL(code_of(facts), kGood);
      CHECK_EQUAL(facts.answers_us.size(), 3);
    }
    // dappled holds the port at this end, too.
    const Program here(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    for (const char* address : {"10.77.0.2", "fd77::2", "10.77.0.1", "::1"}) {
      const PingFacts facts = ping_once(address, 3);
      CHECK_EQUAL(code_of(facts), kGood);
      CHECK_EQUAL(facts.answers_us.size(), 3);
    }
  }
  const Program here(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  // The other dappled ends with its last program.
  PingFacts facts;
  for (int i = 0; i < 300; i++) {
    usleep(100000);
    facts = ping_once("10.77.0.2");
    if (facts.port_closed) break;
  }
  CHECK_EQUAL(code_of(facts), kClosed);
  {
    const Peer peer(veth.other, "10.77.0.2", Mode::kSilent);
    CHECK_EQUAL(code_of(ping_once("10.77.0.2")), kSilence);
  }
  const Peer peer(veth.other, "10.77.0.2", Mode::kDamaged);
  facts = ping_once("10.77.0.2", 2);
  CHECK_EQUAL(code_of(facts), kChanged);
  CHECK_EQUAL(facts.bad_icrc, 2);
}

// A third namespace is behind the other one, over a link with an MTU of 700.
int make_third() {
  int ready[2], done[2];
  if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(done, O_CLOEXEC) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char byte;
    if (unshare(CLONE_NEWNET) != 0 || write(ready[1], "x", 1) != 1 || read(done[0], &byte, 1) < 0) _exit(1);
    _exit(0);
  }
  char byte;
  int fd = -1;
  if (read(ready[0], &byte, 1) == 1) {
    const std::string process = std::to_string(child);
    fd = open(("/proc/" + process + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
    const bool good =
        run_at(veth.other,
               "echo 1 >/proc/sys/net/ipv4/ip_forward && ip link add vc mtu 700 type veth peer name vd mtu "
               "700 netns " +
                   process + " && ip addr add 10.78.0.1/24 dev vc && ip link set vc up") &&
        run_at(fd, "ip addr add 10.78.0.2/24 dev vd && ip link set vd up && ip route add default via 10.78.0.1") &&
        tests::run("ip route add 10.78.0.0/24 via 10.77.0.2");
    if (!good) {
      close(fd);
      fd = -1;
    }
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int end : {ready[0], ready[1], done[0], done[1]}) close(end);
  return fd;
}

}  // namespace

int main() {
  tests::need_new_namespace();
  veth = tests::make_veth_pair();
  if (veth.other < 0) tests::skip_program("no veth pair can be made");
  if (!run_at(veth.other, "ip addr add 10.77.0.3/24 dev vb")) tests::skip_program("no address can be added");
  third = make_third();
  if (third < 0) std::cout << "no third namespace with forwarding: a part is left out\n";
  const CMUnitTest all[] = {
      TEST(ping__node__answers),
      TEST(ping__closed_port__is_told),
      TEST(ping__silence__is_told),
      TEST(ping__changed_on_the_way__is_told),
      TEST(ping__small_mtu__is_told),
      TEST(ping__nowhere__is_told),
      TEST(ping__port_in_use_here__hears_errors_only),
      TEST(ping__software_device__answers_and_asks),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
