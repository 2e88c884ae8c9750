// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The transports of connections between two processes of one host, and the reasons that dapple-info gives for them.
// Whatever the transport is, the data arrives. Runs under dapple-run.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "provider/network/gid.hpp"
#include "tests/native/counter.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"
#include "tools/dapple-info/node_transports.hpp"

using namespace dapple;
using namespace dapple::tests;
using soft::Transport;

namespace {

constexpr double kPatience = 60;
constexpr uint8_t kAckTimeout = 17;  // 0.5 s: a busy machine may keep the peer from its CPU for as long
constexpr uid_t kNobody = 65534;
constexpr rlim_t kFewDescriptors = 512;
constexpr char kLoopback[] = "::ffff:127.0.0.1", kOther[] = "::ffff:10.9.9.1", kElsewhere[] = "::ffff:10.99.0.9";

struct Side {
  std::atomic<uint32_t> qpn{0};
  std::atomic<uint64_t> address{0};
  std::atomic<uint32_t> rkey{0};
  std::atomic<bool> connected{false};
};

struct Shared {
  Side sides[2];
  std::atomic<uint32_t> writes_wanted{0};
  std::atomic<uint32_t> writes_done{0};
  std::atomic<bool> over{false};
};

Shared* shared;
const char* dapple_info;

// Process 0 connects to process 1, and writes to its memory.
struct Scenario {
  const char* name;
  Transport transport;        // of process 0
  Transport peers_transport;  // kNone: process 1 does not connect
  const char* source = kLoopback;
  const char* destination = kLoopback;
  ibv_qp_type type = IBV_QPT_RC;
  bool to_itself = false;
  bool peer_first = false;  // process 0 connects last
  bool peer_last = false;
  std::function<bool(int number)> before_opening = nullptr;
  std::function<void(int number)> before_connecting = nullptr;
  std::function<void(int number)> when_connected = nullptr;
};

bool set_limit(int resource, rlim_t value) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0) return false;
  limit.rlim_cur = value;
  return setrlimit(resource, &limit) == 0;
}

// Used only in a process of a scenario.
std::vector<int> used_up;

void use_all_descriptors() {
  for (int fd; (fd = dup(0)) >= 0;) used_up.push_back(fd);
}

void free_descriptors() {
  for (int fd : used_up) close(fd);
}

struct Member {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
  alignas(4096) char buffer[kBufferSize] = {};

  bool open(const Scenario& scenario, Side& side) {
    context = open_loopback();
    if (context == nullptr) return false;
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
    if (pd == nullptr || cq == nullptr) return false;
    mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq;
    attr.cap = {4, 1, 1, 1, 0};
    attr.qp_type = scenario.type;
    qp = mr == nullptr ? nullptr : ibv_create_qp(pd, &attr);
    if (qp == nullptr) return false;
    side.address = reinterpret_cast<uintptr_t>(buffer);
    side.rkey = mr->rkey;
    side.qpn = qp->qp_num;
    return true;
  }

  bool connect_to(uint32_t remote, const char* from, const char* to) {
    ibv_gid source, destination, found;
    if (inet_pton(AF_INET6, from, source.raw) != 1 || inet_pton(AF_INET6, to, destination.raw) != 1) return false;
    for (uint8_t index = 0; ibv_query_gid(context, 1, index, &found) == 0; index++) {
      if (memcmp(found.raw, source.raw, sizeof found.raw) != 0) continue;
      return connect(qp, remote, kAckTimeout, index, destination);
    }
    return false;
  }

  bool write_to(const Side& peer) {
    ibv_sge piece = {reinterpret_cast<uintptr_t>(buffer), sizeof buffer, mr->lkey};
    ibv_send_wr request = {}, *bad = nullptr;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {peer.address, peer.rkey};
    if (ibv_post_send(qp, &request, &bad) != 0) return false;
    ibv_wc completion = {};
    if (!await(kPatience, [&] { return ibv_poll_cq(cq, 1, &completion) == 1; })) return false;
    if (completion.status != IBV_WC_SUCCESS) failed("a Write ends with", ibv_wc_status_str(completion.status));
    return completion.status == IBV_WC_SUCCESS;
  }
};

int live(const Scenario& scenario, int number) {
  if (scenario.before_opening != nullptr && !scenario.before_opening(number)) return 77;
  const auto member = std::make_unique<Member>();
  Side& own = shared->sides[number];
  Side& peer = shared->sides[1 - number];
  if (!member->open(scenario, own) || !await(kPatience, [&] { return peer.qpn != 0; })) return 1;
  const bool waits = number == 0 ? scenario.peer_first : scenario.peer_last;
  if (waits && !await(kPatience, [&] { return peer.connected.load(); })) return 2;
  if (scenario.before_connecting != nullptr) scenario.before_connecting(number);
  const bool connects = number == 0 || scenario.peers_transport != Transport::kNone;
  const char* from = number == 0 ? scenario.source : scenario.destination;
  const char* to = number == 0 ? scenario.destination : scenario.source;
  if (connects && !member->connect_to(scenario.to_itself ? own.qpn : peer.qpn, from, to)) return 3;
  if (scenario.when_connected != nullptr) scenario.when_connected(number);
  own.connected = true;
  uint32_t written = 0;
  const bool good = await(kPatience, [&] {
    if (number == 0 && written < shared->writes_wanted) {
      memset(member->buffer, static_cast<int>(++written), sizeof member->buffer);
      if (!member->write_to(peer)) return true;
      shared->writes_done++;
    }
    return shared->over.load();
  });
  if (!good || (number == 0 && written != shared->writes_done)) return 4;
  // An unreliable connection does not tell when the last bytes have arrived.
  const char last = static_cast<char>(shared->writes_done);
  const auto arrived = [&] {
    return std::all_of(std::begin(member->buffer), std::end(member->buffer),
                       [last](char byte) { return byte == last; });
  };
  return await(kPatience, arrived) ? 0 : 5;
}

class Stage {
 public:
  explicit Stage(const Scenario& scenario) : scenario_(scenario) {
    // The processes of the last scenario have used this memory.
    new (shared) Shared;
    for (int number : {0, 1}) processes_[number] = start_process([&] { return live(scenario, number); });
  }

  // False if a process ends before: it may lack a right.
  bool connected() {
    const auto both = [] { return shared->sides[0].connected && shared->sides[1].connected; };
    const auto ended = [this] {
      siginfo_t info = {};
      const auto process = static_cast<id_t>(processes_[0]);
      return waitid(P_PID, process, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
    };
    return await(kPatience, [&] { return both() || ended(); }) && both();
  }

  void expect_transport(int number, Transport transport) {
    Transport seen = Transport::kNone;
    uint32_t queue_pairs = 0;
    const bool as_expected = await(kPatience, [&] {
      queue_pairs = 0;
      for (const info::ProgramTransports& program : transports().programs) {
        if (program.process != static_cast<uint32_t>(processes_[number])) continue;
        for (const soft::TransportRow& row : program.rows) {
          seen = row.transport;
          queue_pairs += row.queue_pairs;
        }
      }
      return seen == transport && queue_pairs == 1;
    });
    if (!as_expected) say("transport", soft::name_of(seen).key);
  }

  void expect_data() {
    const uint32_t wanted = ++shared->writes_wanted;
    if (!await(kPatience, [wanted] { return shared->writes_done == wanted; })) say("data does not arrive");
  }

  void kill_peer() {
    kill(processes_[1], SIGKILL);
    waitpid(processes_[1], nullptr, 0);
    processes_[1] = 0;
  }

  info::NodeTransports transports() {
    soft::Problem problem;
    if (link_ == nullptr) link_ = soft::DaemonLink::open(problem, soft::DaemonLink::Start::kNever);
    return link_ == nullptr ? info::NodeTransports{} : info::read_transports(*link_);
  }

  bool packets_by_ring() {
    soft::StatusReply status;
    soft::Problem problem;
    return link_ != nullptr && link_->status(status, problem) && counter(status, "same_host_sent_packets") > packets_;
  }
  void note_packets() {
    soft::StatusReply status;
    soft::Problem problem;
    if (transports(); link_ != nullptr && link_->status(status, problem))
      packets_ = counter(status, "same_host_sent_packets");
  }

  // The exit code of process 0.
  int end() {
    shared->over = true;
    int status = 0, code = 0;
    for (int number : {1, 0}) {
      if (processes_[number] == 0) continue;
      waitpid(processes_[number], &status, 0);
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
      if (code != 0 && code != 77) say("a process ends with", std::to_string(code).c_str());
    }
    return code;
  }

  void say(const char* what, const char* more = "") {
    failed((std::string(scenario_.name) + ": " + what).c_str(), more);
  }

 private:
  const Scenario& scenario_;
  pid_t processes_[2];
  std::unique_ptr<soft::DaemonLink> link_;
  uint64_t packets_ = 0;
};

void play(const Scenario& scenario) {
  Stage stage(scenario);
  if (!stage.connected()) {
    if (stage.end() == 77) {
      printf("SKIP: %s: not allowed here\n", scenario.name);
    } else {
      stage.say("no connection");
    }
    return;
  }
  stage.expect_transport(0, scenario.transport);
  if (scenario.peers_transport != Transport::kNone) {
    stage.expect_transport(1, scenario.peers_transport);
    stage.note_packets();
    stage.expect_data();
    const bool ring =
        scenario.transport == Transport::kSharedMemory || scenario.peers_transport == Transport::kSharedMemory;
    if (stage.packets_by_ring() != ring) stage.say(ring ? "no packet went by a ring" : "packets went by a ring");
  }
  stage.end();
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char room[4096];
  for (size_t size; pipe != nullptr && (size = fread(room, 1, sizeof room, pipe)) > 0;) text.append(room, size);
  if (pipe != nullptr) pclose(pipe);
  return text;
}

void dapple_info_shows_them() {
  const Scenario scenario = {"dapple-info", Transport::kSharedMemory, Transport::kSharedMemory};
  Stage stage(scenario);
  if (!stage.connected()) stage.say("no connection");
  // Under dapple-run it would be one more program.
  const std::string command = std::string("env -u LD_PRELOAD ") + dapple_info;
  const std::string text = output_of(command);
  for (const char* part : {"132 KiB of at most 256 MiB\n", "  127.0.0.1  127.0.0.1  ", "  shared memory  "}) {
    if (text.find(part) == std::string::npos) stage.say("no such text", part);
  }
  const Json json = Json::parse(output_of(command + " --json"), nullptr, false);
  const Json& device = json.is_object() ? json["software_device"] : json;
  if (!device.is_object() || device["transports"].size() != 2 ||
      device["transports"][0]["transport"] != "shared_memory" || device["programs"].size() != 2 ||
      device["programs"][0]["shared_memory_bytes"] != 132 * 1024) {
    stage.say("JSON", device.dump().c_str());
  }
  stage.end();
}

void address_is_removed__data_arrives() {
  const Scenario scenario = {"removed address", Transport::kSharedMemory, Transport::kSharedMemory, kLoopback, kOther};
  Stage stage(scenario);
  if (!stage.connected()) stage.say("no connection");
  stage.expect_data();
  if (!run("ip address del 10.9.9.1/32 dev lo")) stage.say("the address stays");
  stage.expect_data();
  stage.expect_transport(0, Transport::kSharedMemory);
  if (!run("ip address add 10.9.9.1/32 dev lo")) stage.say("the address does not come back");
  stage.end();
}

void peer_is_killed__udp() {
  const Scenario scenario = {"killed peer", Transport::kPeerGone, Transport::kSharedMemory};
  Stage stage(scenario);
  if (!stage.connected()) stage.say("no connection");
  stage.expect_data();
  stage.kill_peer();
  stage.expect_transport(0, Transport::kPeerGone);
  const info::NodeTransports transports = stage.transports();
  if (transports.programs.size() != 1) stage.say("the killed program is listed");
  stage.end();
}

void play_all() {
  const auto with = [](const char* name, const char* value) {
    return [name, value](int number) { return number != 0 || setenv(name, value, 1) == 0; };
  };
  char capture[] = "/tmp/dapple-transports-XXXXXX";
  const int file = mkstemp(capture);
  const Scenario scenarios[] = {
      {"one address", Transport::kSharedMemory, Transport::kSharedMemory},
      {"two addresses", Transport::kSharedMemory, Transport::kSharedMemory, kLoopback, kOther},
      {"two IPv6 addresses", Transport::kSharedMemory, Transport::kSharedMemory, "::1", "fd77::9"},
      {"UC", Transport::kSharedMemory, Transport::kSharedMemory, kLoopback, kLoopback, IBV_QPT_UC},
      {"another host", Transport::kOtherHost, Transport::kNone, kLoopback, kElsewhere},
      {"UD", Transport::kDatagrams, Transport::kNone, kLoopback, kLoopback, IBV_QPT_UD},
      {.name = "same process",
       .transport = Transport::kSameProcess,
       .peers_transport = Transport::kNone,
       .to_itself = true},
      {.name = "off",
       .transport = Transport::kSwitchedOff,
       .peers_transport = Transport::kPeerTakesNone,
       .before_opening = with("DAPPLE_SAME_HOST", "off")},
      {.name = "capture",
       .transport = Transport::kCapture,
       .peers_transport = Transport::kPeerTakesNone,
       .before_opening = with("DAPPLE_PCAP", capture)},
      {.name = "faults",
       .transport = Transport::kFaults,
       .peers_transport = Transport::kPeerTakesNone,
       .before_opening = with("DAPPLE_FAULTS", "delay=10us")},
      {.name = "cap",
       .transport = Transport::kCap,
       .peers_transport = Transport::kSharedMemory,
       .before_opening = with("DAPPLE_SAME_HOST_MIB", "0")},
      {.name = "another user",
       .transport = Transport::kOtherUser,
       .peers_transport = Transport::kOtherUser,
       .before_opening = [](int number) { return number != 0 || setresuid(kNobody, kNobody, kNobody) == 0; }},
      {.name = "no memory",
       .transport = Transport::kNoMemory,
       .peers_transport = Transport::kSharedMemory,
       .before_connecting =
           [](int number) {
             if (number == 0) set_limit(RLIMIT_FSIZE, 64 * 1024);
           }},
      {.name = "no descriptor",
       .transport = Transport::kNoDescriptor,
       .peers_transport = Transport::kSharedMemory,
       .peer_last = true,  // process 0 must have a descriptor for its ring again
       .before_opening = [](int) { return set_limit(RLIMIT_NOFILE, kFewDescriptors); },
       .before_connecting =
           [](int number) {
             if (number == 0) use_all_descriptors();
           },
       .when_connected = [](int) { free_descriptors(); }},
      {.name = "peer without descriptors",
       .transport = Transport::kPeerNoDescriptor,
       .peers_transport = Transport::kSharedMemory,
       .peer_first = true,
       .before_opening = [](int) { return set_limit(RLIMIT_NOFILE, kFewDescriptors); },
       .when_connected =
           [](int number) {
             if (number == 1) use_all_descriptors();
           }},
  };
  for (const Scenario& scenario : scenarios) play(scenario);
  close(file);
  unlink(capture);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  dapple_info = argv[1];
  shared = prepare_stage<Shared>();
  // Users do not matter for dappled here.
  setenv("DAPPLE_TRUST_UID", "0,65534", 1);
  if (!run("ip address add 10.9.9.1/32 dev lo") || !run("ip address add fd77::9/128 dev lo nodad")) {
    skip_program("no address can be added to lo");
  }
  play_all();
  dapple_info_shows_them();
  address_is_removed__data_arrives();
  peer_is_killed__udp();
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
