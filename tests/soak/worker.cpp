// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/soak/worker.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <optional>

#include "tests/native/kills/watcher.hpp"
#include "tests/soak/exchange.hpp"
#include "tests/soak/memory_limit.hpp"

namespace dapple::soak {
namespace {

constexpr uint16_t kFirstPort = 7300;
constexpr uint64_t kListenPatienceMs = 30000;
// The time after which a kill no longer matters: dappled repeats a lost DREQ for six seconds.
constexpr uint64_t kAftermathMs = 20000;
// The time by which one side's end of a connection may precede the other's next beginning.
constexpr uint64_t kOtherSideMs = 3000;
constexpr uint32_t kHeadroomBits = 25;
constexpr uint64_t kUnlimitedConnections = 3;  // they load libraries
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanLimit = false;  // the runtime ends a program that has too little memory
#else
constexpr bool kCanLimit = true;
#endif

class Worker {
 public:
  Worker(const PairPlan& plan, uint32_t pair, bool server, uint32_t life, Shared& shared)
      : plan_(plan),
        place_{server, static_cast<uint16_t>(kFirstPort + pair)},
        shared_(shared),
        pair_(shared.pairs[pair]),
        news_(pair_.workers[server ? 0 : 1]),
        peer_(pair_.workers[server ? 1 : 0]),
        random_(mix(plan.seed) + 2 * uint64_t{life} + (server ? 0 : 1)) {}

  int run() {
    try {
      open();
      news_.upset_ms = shared_.clock_ms.load();
      while (!shared_.stop) connect_once();
      if (station_ != nullptr) station_->close();
      return 0;
    } catch (const Ended& ended) {
      if (ended.end == End::kStopped) return 0;
      note(ended, "");
      return kWorkerFailed;
    }
  }

 private:
  // A killed predecessor may hold the port for a moment.
  void open() {
    const uint64_t end = shared_.clock_ms + kListenPatienceMs;
    while (station_ == nullptr) {
      try {
        station_ = plan_.kind == Kind::kVerbs   ? verbs_station(place_)
                   : plan_.kind == Kind::kUdapl ? udapl_station(place_)
                                                : rpma_station(place_);
      } catch (const Ended& ended) {
        if (ended.end != End::kRefused || shared_.clock_ms > end) throw;
        if (shared_.stop) end_with(End::kStopped, "the test ends");
        usleep(50000);
      }
    }
  }

  void connect_once() {
    std::optional<MemoryLimit> limit;
    limited_ =
        kCanLimit && plan_.group == Group::kLimited && connections_ >= kUnlimitedConnections && random_.one_in(2);
    if (limited_) limit.emplace(random_.size(kHeadroomBits));
    const uint64_t begin = shared_.clock_ms;
    if (!place_.server) quiet_ms_ = begin;
    const std::unique_ptr<Link> link = station_->link();
    Exchange exchange(*link, place_.server, plan_.kind == Kind::kVerbs, plan_.kind != Kind::kUdapl, random_.next(),
                      news_, shared_);
    Ended ended;
    bool asked = true;
    try {
      asked = exchange.run();
      ended.end = End::kWhole;
    } catch (const Ended& thrown) {
      ended = thrown;
    } catch (const std::bad_alloc&) {
      ended.end = End::kNoMemory;
    }
    if (ended.end != End::kWhole) news_.upset_ms = shared_.clock_ms.load();
    // Freeing may have to start the next dappled.
    limit.reset();
    link->close();
    news_.steps++;
    if (!asked || ended.end == End::kWhole) quiet_ms_ = begin;
    if (!asked) return;
    connections_++;
    judge(ended, exchange, begin);
    rest(ended.end);
  }

  void judge(const Ended& ended, const Exchange& exchange, uint64_t begin) {
    news_.ends[static_cast<size_t>(ended.end)]++;
    if (ended.end == End::kWhole || ended.end == End::kStopped) return;
    char text[80];
    snprintf(text, sizeof text, "%s seed %llu", exchange.connected() ? "connected," : "connecting,",
             static_cast<unsigned long long>(exchange.seed()));
    if (ended.end == End::kWrong || !is_excused(ended.end, exchange.connected(), begin)) {
      note(ended, text);
      _exit(kWorkerFailed);
    }
    printf("%s: %s (%s)\n", name_of(ended.end), ended.text, text);
  }

  bool is_excused(End end, bool connected, uint64_t begin) const {
    if (shared_.stop) return true;
    if (limited_) return true;  // the end itself is a documented one
    if (end == End::kNoMemory) return false;
    if (peer_.upset_ms == 0) return true;  // it has not begun to listen
    if (pair_.killed_ms + kAftermathMs >= begin || peer_.upset_ms + kOtherSideMs >= quiet_ms_) return true;
    return !connected && shared_.dappled_killed_ms + kAftermathMs >= begin;
  }

  void note(const Ended& ended, const char* more) {
    snprintf(news_.problem, sizeof news_.problem, "%s: %s; %s", name_of(ended.end), ended.text, more);
    printf("FAILED: %s\n", news_.problem);
    fflush(stdout);
  }

  void rest(End end) {
    news_.kib = tests::resident_kib(getpid());
    news_.descriptors = tests::descriptors_of(getpid());
    news_.rests++;
    if (!place_.server && end != End::kWhole) usleep(20000 + random_.below(100000));
  }

  const PairPlan& plan_;
  const Place place_;
  Shared& shared_;
  PairNews& pair_;
  WorkerNews& news_;
  const WorkerNews& peer_;
  Random random_;
  std::unique_ptr<Station> station_;
  uint64_t connections_ = 0;
  // No older request for a connection can be in the server's queue, where the client may have left it.
  uint64_t quiet_ms_ = 0;
  bool limited_ = false;
};

}  // namespace

int work(const PairPlan& plan, uint32_t pair, bool server, uint32_t life, Shared& shared) {
  if (!plan.faults.empty()) setenv("DAPPLE_FAULTS", plan.faults.c_str(), 1);
  setvbuf(stdout, nullptr, _IOLBF, 4096);
  return Worker(plan, pair, server, life, shared).run();
}

}  // namespace dapple::soak
