// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/soak/crew.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "tests/native/kills/stage.hpp"
#include "tests/soak/worker.hpp"

namespace dapple::soak {
namespace {

// Longer than any wait of a worker.
constexpr uint64_t kHangMs = 150000;
constexpr uint64_t kNothingWholeMs = 240000;
constexpr size_t kLogTail = 2000;  // bytes

std::string tail_of(const std::string& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  return text.size() <= kLogTail ? text : "... " + text.substr(text.size() - kLogTail);
}

}  // namespace

Crew::Crew(const std::vector<PairPlan>& plans, Shared& shared, std::string logs, std::string work, uint64_t window_ms)
    : plans_(plans), shared_(shared), logs_(std::move(logs)), work_(std::move(work)) {
  const Flatness flat(window_ms, {});
  for (size_t i = 0; i < plans.size(); i++) pairs_.push_back({{{.flatness = flat}, {.flatness = flat}}});
}

std::string Crew::log_of(uint32_t pair, uint32_t worker) const {
  return fmt::format("{}/{}-{}-{}-{}.log", logs_, pair, name_of(plans_[pair].kind), name_of(plans_[pair].group),
                     worker == 0 ? "server" : "client");
}

void Crew::fail(uint32_t pair, uint32_t worker, const std::string& expected) {
  const WorkerNews& news = shared_.pairs[pair].workers[worker];
  const std::string text =
      fmt::format("{} of pair {} ({}, {}): {}; {}", worker == 0 ? "the server" : "the client", pair,
                  name_of(plans_[pair].kind), name_of(plans_[pair].group), expected, news.problem);
  tests::failed(text.c_str());
  fmt::print("--- the end of {}:\n{}---\n", log_of(pair, worker), tail_of(log_of(pair, worker)));
}

void Crew::start(uint32_t pair, uint32_t worker) {
  Process& process = pairs_[pair].ends[worker];
  const std::string log = log_of(pair, worker);
  const uint32_t life = process.life++;
  process.killed = false;
  process.moved_ms = shared_.clock_ms;
  process.flatness.restart(shared_.clock_ms);
  process.id = tests::start_process([&] {
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    if (chdir(work_.c_str()) != 0) return 1;
    return work(plans_[pair], pair, worker == 0, life, shared_);
  });
}

void Crew::ended(uint32_t pair, uint32_t worker, int status) {
  Process& process = pairs_[pair].ends[worker];
  process.id = 0;
  if (process.killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return;
  if (shared_.stop && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFSIGNALED(status)) return fail(pair, worker, fmt::format("it died of signal {}", WTERMSIG(status)));
  fail(pair, worker, fmt::format("it ended with {}", WEXITSTATUS(status)));
}

void Crew::reap() {
  int status;
  for (pid_t id; (id = waitpid(-1, &status, WNOHANG)) > 0;) {
    // The other children are dappleds: this process inherits them.
    for (uint32_t i = 0; i < pairs_.size(); i++) {
      for (uint32_t worker = 0; worker < 2; worker++) {
        if (pairs_[i].ends[worker].id == id) ended(i, worker, status);
      }
    }
  }
}

void Crew::look_after(uint32_t pair, uint32_t worker) {
  Process& process = pairs_[pair].ends[worker];
  const WorkerNews& news = shared_.pairs[pair].workers[worker];
  const uint64_t time = shared_.clock_ms;
  if (news.steps != process.steps) process.moved_ms = time;
  process.steps = news.steps;
  if (!process.killed && time > process.moved_ms + kHangMs) {
    fail(pair, worker, fmt::format("it has made no step for {} s", kHangMs / 1000));
    process.killed = true;
    kill(process.id, SIGKILL);
  }
  const uint64_t rests = news.rests;
  const bool lives_long = plans_[pair].group == Group::kSteady || plans_[pair].group == Group::kLimited;
  if (!lives_long || rests == process.rests) return;
  process.rests = rests;
  const std::string grown = process.flatness.add(time, {news.kib, news.descriptors});
  if (!grown.empty()) fail(pair, worker, "it grows: " + grown);
}

void Crew::look_after(uint32_t pair) {
  Pair& it = pairs_[pair];
  const uint64_t time = shared_.clock_ms;
  const uint64_t whole = shared_.pairs[pair].workers[1].ends[static_cast<size_t>(End::kWhole)];
  if (whole != it.whole || it.whole_ms == 0) it.whole_ms = time;
  it.whole = whole;
  if (time <= it.whole_ms + kNothingWholeMs) return;
  it.whole_ms = time;
  fail(pair, 1, fmt::format("no connection was whole for {} s", kNothingWholeMs / 1000));
}

void Crew::tend() {
  reap();
  for (uint32_t i = 0; i < pairs_.size(); i++) {
    for (uint32_t worker = 0; worker < 2; worker++) {
      if (pairs_[i].ends[worker].id != 0) {
        look_after(i, worker);
      } else if (!shared_.stop) {
        start(i, worker);
      }
    }
    if (!shared_.stop) look_after(i);
  }
}

bool Crew::kill_worker(uint32_t pair, uint32_t worker) {
  Process& process = pairs_[pair].ends[worker];
  if (process.id == 0 || process.killed) return false;
  shared_.pairs[pair].killed_ms = shared_.clock_ms.load();
  process.killed = true;
  killed_++;
  return kill(process.id, SIGKILL) == 0;
}

uint32_t Crew::living() const {
  uint32_t count = 0;
  for (const Pair& pair : pairs_) count += (pair.ends[0].id != 0 ? 1U : 0U) + (pair.ends[1].id != 0 ? 1U : 0U);
  return count;
}

uint32_t Crew::windows() const {
  uint32_t count = 0;
  for (const Pair& pair : pairs_) count += pair.ends[0].flatness.windows() + pair.ends[1].flatness.windows();
  return count;
}

}  // namespace dapple::soak
