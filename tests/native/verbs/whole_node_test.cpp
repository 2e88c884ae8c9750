// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// 1,024 programs of one network namespace have the device open, and 32 pairs of them talk, one after the other. Their
// round trip takes about as long as among 10 programs. Prints the pairs' times, and the cost of an idle program.
// PROGRAMS is another number of programs. Runs under dapple-run.
#include <dirent.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <limits>
#include <memory>
#include <vector>

#include "provider/member/daemon_link.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint32_t kFew = 10, kUsual = 1024;
constexpr uint32_t kMaxTalks = 32;  // pairs of programs
constexpr uint32_t kParts = 20, kRounds = 200;
constexpr uint32_t kSize = 8;
constexpr uint8_t kAckTimeout = 18;
constexpr double kLongTime = 300;  // a busy machine starts 1,024 programs
// Other programs of the machine disturb the two measurements differently.
constexpr double kMaxTimes = 4, kSlack = 5e-6;
// The socket of its slot, and the connections of the plug-in and the doors.
constexpr uint32_t kFilesOfAProgram = 3;

struct Shared {
  std::atomic<uint32_t> qpn[kMaxTalks][2];
  std::atomic<uint32_t> open{0};        // programs
  std::atomic<uint32_t> large{0};       // those that have a large slot
  std::atomic<uint32_t> joined{0};      // ends of the present talk
  std::atomic<uint32_t> turn{0};        // the present talk
  std::atomic<double> best[kMaxTalks];  // seconds of a round trip
};

Shared* shared;

uint32_t talks_of(uint32_t programs) {
  return std::min(kMaxTalks, programs / 2);
}

bool await_receive(End& end) {
  ibv_wc completion;
  do {
    if (!wait_for(end.cq, completion) || completion.status != IBV_WC_SUCCESS) return false;
  } while (completion.opcode != IBV_WC_RECV);
  return post_receive(end, 0, 0, kSize) == 0;
}

// Returns null, or what went wrong.
const char* talk(ibv_context* context, uint32_t number, uint32_t side) {
  static End end;
  ibv_pd* pd = ibv_alloc_pd(context);
  end.cq = ibv_create_cq(context, 2 * kDepth, nullptr, nullptr, 0);
  end.mr = pd == nullptr ? nullptr : ibv_reg_mr(pd, end.buffer, sizeof end.buffer, int{IBV_ACCESS_LOCAL_WRITE});
  if (end.cq == nullptr || end.mr == nullptr) return "no completion queue or region";
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = end.cq;
  attr.cap = {kDepth, kDepth, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  end.qp = ibv_create_qp(pd, &attr);
  if (end.qp == nullptr) return "no queue pair";
  shared->qpn[number][side] = end.qp->qp_num;
  const std::atomic<uint32_t>& peer = shared->qpn[number][1 - side];
  if (!await(kLongTime, [&] { return peer != 0; }) || !connect(end.qp, peer, kAckTimeout)) return "no connection";
  if (post_receive(end, 0, 0, kSize) != 0 || post_receive(end, 0, 0, kSize) != 0) return "no receive";
  shared->joined++;
  if (!await(kLongTime, [] { return shared->joined == 2; })) return "no peer";
  double best = std::numeric_limits<double>::max();
  for (uint32_t part = 0; part < kParts; part++) {
    const double begin = now();
    for (uint32_t round = 0; round < kRounds; round++) {
      if (side == 1 && !await_receive(end)) return "no question";
      if (post_send(end, 0, IBV_WR_SEND, 0, kSize) != 0) return "no send";
      if (side == 0 && !await_receive(end)) return "no answer";
    }
    best = std::min(best, (now() - begin) / kRounds);
  }
  if (side == 0) shared->best[number] = best;
  return nullptr;
}

// The process ends when `stop` has an end of file.
int live(uint32_t program, uint32_t count, int stop) {
  ibv_context* context = open_loopback();
  ibv_device_attr limits;
  if (context == nullptr || ibv_query_device(context, &limits) != 0) return 1;
  const auto most = static_cast<uint32_t>(limits.max_qp);
  if (most == soft::qpns_of(0) - 1) {
    shared->large++;
  } else if (most != soft::qpns_of(soft::kLargeSlots) - 1) {
    return 4;
  }
  shared->open++;
  const uint32_t talks = talks_of(count);
  for (uint32_t number = 0; number < talks; number++) {
    const uint32_t first = number * (count / 2 / talks);
    const uint32_t ends[] = {first, count - 1 - first};
    for (uint32_t side = 0; side < 2; side++) {
      if (ends[side] != program) continue;
      if (!await(kLongTime, [&] { return shared->turn == number + 1; })) return 2;
      if (const char* wrong = talk(context, number, side); wrong != nullptr) {
        failed(wrong);
        return 3;
      }
      shared->joined--;
    }
  }
  char byte;
  while (read(stop, &byte, 1) > 0) {
  }
  return 0;
}

uint32_t files_of(pid_t process) {
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/fd", process);
  DIR* folder = opendir(name);
  if (folder == nullptr) return 0;
  uint32_t count = 0;
  while (readdir(folder) != nullptr) count++;
  closedir(folder);
  return count - 2;
}

// The sum of a process' amounts with these names. 0 if the kernel does not tell them.
long kilobytes_of(pid_t process, std::initializer_list<const char*> amounts) {
  char name[64], line[256];
  snprintf(name, sizeof name, "/proc/%d/smaps_rollup", process);
  FILE* file = fopen(name, "re");
  if (file == nullptr) return 0;
  long sum = 0;
  while (fgets(line, sizeof line, file) != nullptr) {
    for (const char* amount : amounts) {
      if (strncmp(line, amount, strlen(amount)) == 0) sum += strtol(line + strlen(amount), nullptr, 10);
    }
  }
  fclose(file);
  return sum;
}

// Those that dappled's file of counters takes.
long shared_kilobytes_of(pid_t process) {
  for (int fd = 0; fd < 256; fd++) {
    char name[64], target[64] = "";
    struct stat status;
    snprintf(name, sizeof name, "/proc/%d/fd/%d", process, fd);
    if (readlink(name, target, sizeof target - 1) > 0 && strstr(target, "dapple-counters") != nullptr)
      return stat(name, &status) == 0 ? static_cast<long>(status.st_blocks) / 2 : 0;
  }
  return 0;
}

struct Costs {
  double round_trip = 0;       // seconds, of the fastest pair
  uint32_t files = 0;          // of dappled
  long kilobytes = 0;          // without those of files
  long shared_kilobytes = 0;   // in the file of counters
  long program_kilobytes = 0;  // of an idle program, that no other process has
};

void measure(pid_t idle_program, Costs& costs) {
  soft::Problem problem;
  soft::StatusReply status;
  const auto link = soft::DaemonLink::open(problem, soft::DaemonLink::Start::kNever);
  if (link == nullptr || !link->status(status, problem)) return failed("dappled's status", problem.line);
  const auto process = static_cast<pid_t>(status.process);
  costs.files = files_of(process);
  costs.kilobytes = kilobytes_of(process, {"Anonymous:"});
  costs.shared_kilobytes = shared_kilobytes_of(process);
  costs.program_kilobytes = kilobytes_of(idle_program, {"Private_Clean:", "Private_Dirty:"});
}

Costs run(uint32_t count) {
  Costs costs;
  int stop[2];
  if (pipe(stop) != 0) failed("pipe");
  shared->open = shared->large = shared->joined = shared->turn = 0;
  for (auto& talk : shared->qpn) talk[0] = talk[1] = 0;
  std::vector<pid_t> programs;
  for (uint32_t i = 0; i < count; i++) {
    programs.push_back(start_process([&] {
      close(stop[1]);
      return live(i, count, stop[0]);
    }));
  }
  if (!await(kLongTime, [&] { return shared->open == count; })) failed("some programs did not open the device");
  if (shared->large != std::min(count, soft::kLargeSlots - 1)) failed("max_qp of some programs");
  measure(programs[count / 2], costs);
  std::vector<double> times;
  for (uint32_t number = 0; number < talks_of(count) && failures() == 0; number++) {
    shared->best[number] = 0;
    shared->turn = number + 1;
    if (!await(kLongTime, [&] { return shared->best[number] > 0 && shared->joined == 0; })) failed("a pair's talk");
    times.push_back(shared->best[number]);
  }
  std::sort(times.begin(), times.end());
  costs.round_trip = times.empty() ? 0 : times.front();
  close(stop[0]);
  close(stop[1]);
  for (const pid_t program : programs) {
    if (!ends_with(program, 0)) failed("a program");
  }
  expect_nothing_left();
  if (times.empty()) return costs;
  printf(
      "%u programs: a round trip of %zu pairs takes %.2f to %.2f us, the median is %.2f; dappled has %u descriptors "
      "and "
      "%ld KiB\n",
      count, times.size(), times.front() * 1e6, times.back() * 1e6, times[times.size() / 2] * 1e6, costs.files,
      costs.kilobytes);
  return costs;
}

}  // namespace

int main() {
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  const auto programs = static_cast<uint32_t>(number_from("PROGRAMS", kUsual));
  if (files.rlim_max < (kFilesOfAProgram + 1) * programs) {
    printf("SKIP: the hard limit of open files is %lu\n", static_cast<unsigned long>(files.rlim_max));
    return 77;
  }
  shared = prepare_stage<Shared>();
  const Costs few = run(kFew), many = run(programs);
  const double more = programs - kFew;
  printf("an idle program: %.1f descriptors and %.1f KiB of dappled, %.1f KiB that both share, %ld KiB of its own\n",
         (many.files - few.files) / more, static_cast<double>(many.kilobytes - few.kilobytes) / more,
         static_cast<double>(many.shared_kilobytes - few.shared_kilobytes) / more, many.program_kilobytes);
  if (many.files - few.files > kFilesOfAProgram * programs) failed("dappled has too many descriptors");
  if (many.round_trip > kMaxTimes * few.round_trip + kSlack) failed("many programs are slow");
  return failures() == 0 ? 0 : 1;
}
