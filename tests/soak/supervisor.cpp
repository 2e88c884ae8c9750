// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/soak/supervisor.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/soak/crew.hpp"
#include "tests/soak/summary.hpp"

namespace dapple::soak {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMaxFailures = 5;
constexpr double kEndPatience = 180;  // seconds
constexpr uint64_t kTickMs = 10, kLongestTickMs = 1000;
constexpr uint64_t kSampleMs = 1000, kNewsMs = 10000;
// A killed program's descriptors go a moment later, and the next one's are there already.
constexpr Slack kDappledSlack = {2048, 24};

// The folder of a run, which is its own.
class Folder {
 public:
  explicit Folder(const std::string& named) : temporary_(named.empty()) {
    char name[] = "/tmp/dapple-soak-XXXXXX";
    path_ = temporary_ ? mkdtemp(name) : fs::absolute(named);
    fs::create_directories(work());
  }
  fs::path path() const { return path_; }
  fs::path work() const { return path_ / "work"; }
  // Called after a run without failures.
  void remove() const {
    fs::remove(work());
    if (temporary_) fs::remove_all(path_);
  }

 private:
  const bool temporary_;
  fs::path path_;
};

class Supervisor {
 public:
  Supervisor(const Settings& settings, Shared& shared)
      : settings_(settings),
        shared_(shared),
        folder_(settings.logs),
        plans_(plan_pairs(settings.seed, settings.pairs, settings.only)),
        window_ms_(std::clamp<uint64_t>(settings.seconds * 1000 / 6, 5000, 60000)),
        crew_(plans_, shared, folder_.path(), folder_.work(), window_ms_),
        dappled_flatness_(window_ms_, kDappledSlack) {}

  bool run() {
    fmt::print("seed {}, {} s, {} pairs, logs in {}\n", settings_.seed, settings_.seconds, plans_.size(),
               folder_.path().string());
    fflush(stdout);
    begin_ms_ = told_ms_ = sampled_ms_ = shared_.clock_ms;
    ticked_ = tests::now();
    const uint64_t end = begin_ms_ + settings_.seconds * 1000;
    for (uint64_t number = 0; shared_.clock_ms < end && !is_hopeless(); number++) play_round(number, end);
    finish();
    report();
    const bool good = tests::failures() == 0;
    if (good) folder_.remove();
    return good;
  }

 private:
  static bool is_hopeless() { return tests::failures() >= kMaxFailures; }

  void play_round(uint64_t number, uint64_t end) {
    const Round round = plan_round(settings_.seed, number, plans_);
    const uint64_t begin = shared_.clock_ms;
    const uint32_t failures = tests::failures();
    const auto play_until = [&](uint64_t time) {
      while (shared_.clock_ms < std::min(time, end) && !is_hopeless()) tick();
    };
    for (const Kill& kill : round.kills) {
      play_until(begin + kill.after_ms);
      if (kill.dappled) {
        shared_.dappled_killed_ms = shared_.clock_ms.load();
        dappleds_killed_ += watcher_.kill_dappled() ? 1U : 0U;
      } else {
        crew_.kill_worker(kill.pair, kill.worker);
      }
    }
    play_until(begin + round.length_ms);
    rounds_ = number + 1;
    if (tests::failures() != failures) {
      fmt::print("seed {}, round {}: {}\n", settings_.seed, number, text_of(round));
    }
  }

  void tick() {
    usleep(kTickMs * 1000);
    const double time = tests::now();
    shared_.clock_ms += std::min(static_cast<uint64_t>((time - ticked_) * 1000), kLongestTickMs);
    ticked_ = time;
    crew_.tend();
    if (shared_.clock_ms >= sampled_ms_ + kSampleMs) sample_dappled();
    if (shared_.clock_ms >= told_ms_ + kNewsMs) tell_news();
  }

  void sample_dappled() {
    sampled_ms_ = shared_.clock_ms;
    soft::StatusReply status;
    if (!watcher_.status(status)) return;
    const auto process = static_cast<pid_t>(status.process);
    watcher_.measure(process);
    if (process != dappled_) dappled_flatness_.restart(sampled_ms_);
    dappled_ = process;
    const Size size = {tests::resident_kib(process), tests::descriptors_of(process)};
    if (size.kib == 0) return;  // it has just ended
    if (const std::string grown = dappled_flatness_.add(sampled_ms_, size); !grown.empty())
      tests::failed("dappled grows", grown.c_str());
  }

  void tell_news() {
    told_ms_ = shared_.clock_ms;
    const Sums sums = sums_of(shared_, plans_.size());
    fmt::print("{:>6} s: round {}, {} connections, {} broken, {} transfers, {} MiB checked, {} + {} killed\n",
               (told_ms_ - begin_ms_) / 1000, rounds_, sums.whole, sums.others, sums.transfers, sums.checked >> 20,
               crew_.killed(), dappleds_killed_);
    fflush(stdout);
  }

  void finish() {
    shared_.stop = true;
    watcher_.close();
    if (!tests::await(
            kEndPatience, [&] { return crew_.living() == 0; }, [&] { tick_to_the_end(); }))
      tests::failed("workers do not end");
    tests::expect_nothing_left();
    if (!fs::is_empty(folder_.work())) tests::failed("a file is left in", folder_.work().c_str());
    expect_something_tested();
  }

  // A run in which nothing happened shows nothing.
  void expect_something_tested() {
    const Sums sums = sums_of(shared_, plans_.size());
    if (sums.whole == 0) tests::failed("no connection was complete");
    if (sums.checked == 0) tests::failed("no byte was checked");
    // Programs that are killed seldom live long enough.
    const bool some_stay = std::any_of(plans_.begin(), plans_.end(), [](const PairPlan& pair) {
      return pair.group == Group::kSteady || pair.group == Group::kLimited;
    });
    if (some_stay && crew_.windows() == 0) tests::failed("no size was compared with an earlier one");
  }

  // The workers measure their patience by the clock.
  void tick_to_the_end() {
    shared_.clock_ms += kTickMs;
    crew_.tend();
  }

  void report() {
    print_summary(shared_, plans_);
    const Sums sums = sums_of(shared_, plans_.size());
    fmt::print("{} rounds, {} bytes checked, {} workers and {} dappleds killed\n", rounds_, sums.checked,
               crew_.killed(), dappleds_killed_);
    fmt::print("flat sizes: {} windows of workers and {} of dappled, of {} s each\n", crew_.windows(),
               dappled_flatness_.windows(), window_ms_ / 1000);
    fmt::print("dappled: {} KiB and {} descriptors at most\n", watcher_.most_kib(), watcher_.most_descriptors());
    if (tests::failures() != 0) fmt::print("{} failures; seed {}\n", tests::failures(), settings_.seed);
    fflush(stdout);
  }

  const Settings& settings_;
  Shared& shared_;
  const Folder folder_;
  const std::vector<PairPlan> plans_;
  const uint64_t window_ms_;
  Crew crew_;
  tests::Watcher watcher_;
  Flatness dappled_flatness_;
  pid_t dappled_ = 0;
  uint64_t rounds_ = 0, begin_ms_ = 0, told_ms_ = 0, sampled_ms_ = 0;
  uint32_t dappleds_killed_ = 0;
  double ticked_ = 0;
};

}  // namespace

bool supervise(const Settings& settings) {
  Shared& shared = *tests::prepare_stage<Shared>();
  return Supervisor(settings, shared).run();
}

}  // namespace dapple::soak
