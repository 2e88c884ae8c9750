// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/threads/machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "tests/sim/threads/source_lines.hpp"

namespace dapple::sim {
namespace {

constexpr uint32_t kWeaknesses[] = {0, 100, 300, 500, 700};
constexpr size_t kShownLines = 250;

const char* name_of(Order order) {
  switch (order) {
    case std::memory_order_relaxed:
      return "relaxed";
    case std::memory_order_consume:
    case std::memory_order_acquire:
      return "acquire";
    case std::memory_order_release:
      return "release";
    case std::memory_order_acq_rel:
      return "acq_rel";
    case std::memory_order_seq_cst:
      return "seq_cst";
  }
  return "?";
}

uint64_t part(uint64_t seed, uint64_t number) {
  return mixed(seed * 8 + number + 1);
}

uint32_t weakness_of(uint64_t seed) {
  Random random(part(seed, 4));
  return random.one_of(kWeaknesses);
}

}  // namespace

void Sites::note(uint64_t site, int order) {
  for (uint32_t i = 0; i < count; i++) {
    if (all[i].site != site) continue;
    all[i].count++;
    return;
  }
  if (count < kMax) all[count++] = {site, order, 1};
}

Machine::Machine(const Settings& set)
    : settings(set),
      random(part(set.seed, 1)),
      scheduler(part(set.seed, 2), [this] { stuck(); }),
      memory(part(set.seed, 3), weakness_of(set.seed), [this](const std::string& text) { fail("%s", text.c_str()); }) {
  current_ = this;
}

uint32_t Machine::spawn(std::string text, uint32_t process, Scheduler::Body body) {
  const uint32_t number = scheduler.spawn(std::move(text), process, std::move(body));
  memory.start(number, self());
  return number;
}

void Machine::point(uint64_t place, uint64_t rarity) {
  scheduler.point(place, rarity);
  memory.now = scheduler.now();
  if (scheduler.steps() > limit_) fail("the run does not end");
}

uint64_t Machine::site_in_module(Site site) const {
  const auto place = reinterpret_cast<uint64_t>(site);
  // A return address belongs to the instruction before.
  if (place - settings.base < settings.base_size) return place - settings.base - 1;
  if (place - settings.second_base < settings.base_size) return place - settings.second_base - 1;
  return place;
}

Order Machine::effective(Order order, Site site) {
  if (order == std::memory_order_consume) order = std::memory_order_acquire;
  if (order == std::memory_order_relaxed || (settings.sites == nullptr && settings.weakened.empty())) return order;
  const uint64_t place = site_in_module(site);
  if (settings.sites != nullptr) settings.sites->note(place, static_cast<int>(order));
  if (std::binary_search(settings.weakened.begin(), settings.weakened.end(), place)) return settings.weaker;
  return order;
}

bool Machine::is_own_stack(const void* address) {
  const Scheduler::Thread& thread = scheduler.thread(self());
  return static_cast<uint64_t>(static_cast<const char*>(address) - thread.stack) < thread.stack_size;
}

void Machine::name(const void* begin, size_t size, std::string text) {
  names_[reinterpret_cast<uint64_t>(begin)] = {size, std::move(text)};
}

std::string Machine::name_of(const void* address) const {
  const auto place = reinterpret_cast<uint64_t>(address);
  char text[64];
  auto found = names_.upper_bound(place);
  if (found != names_.begin() && place - (--found)->first < found->second.size) {
    snprintf(text, sizeof text, "+%" PRIu64, place - found->first);
    return found->second.text + text;
  }
  snprintf(text, sizeof text, "%#" PRIx64, place);
  return text;
}

void Machine::trace_operation(const char* what, const void* object, Order order, uint64_t value, uint64_t behind,
                              Site site) {
  // Addresses differ between runs of one seed.
  constexpr uint64_t kMinAddress = uint64_t{1} << 40;
  hash((value < kMinAddress ? value : 0) + behind * 31 + self());
  if (!settings.verbose) return;
  char line[256];
  char stale[48] = "";
  if (behind > 0) snprintf(stale, sizeof stale, ", %" PRIu64 " older than the newest", behind);
  snprintf(line, sizeof line, "%10.3f us  %-14s %s %s, %s: %#" PRIx64 "%s",
           static_cast<double>(scheduler.now() - 1'000'000'000) / 1000, scheduler.thread(self()).name.c_str(), what,
           object == nullptr ? "" : name_of(object).c_str(), dapple::sim::name_of(order), value, stale);
  lines_.emplace_back(line, site_in_module(site));
}

void Machine::note(const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  for (const char* at = text; *at != '\0'; at++) trace_ = trace_ * 131 + static_cast<unsigned char>(*at);
  if (!settings.verbose) return;
  char line[512];
  snprintf(line, sizeof line, "%10.3f us  %-14s -- %s", static_cast<double>(scheduler.now() - 1'000'000'000) / 1000,
           scheduler.thread(self()).name.c_str(), text);
  lines_.emplace_back(line, 0);
}

void Machine::report() {
  settings.verdict->trace = trace_;
  settings.verdict->steps = scheduler.steps();
  if (!settings.verbose) return;
  const size_t from =
      lines_.size() > kShownLines && getenv("SIM_WHOLE_TRACE") == nullptr ? lines_.size() - kShownLines : 0;
  std::vector<uint64_t> sites;
  for (size_t i = from; i < lines_.size(); i++) sites.push_back(lines_[i].second);
  const std::vector<std::string> places = source_lines(sites);
  if (from > 0) printf("(%zu earlier lines; SIM_WHOLE_TRACE=1 shows them)\n", from);
  for (size_t i = from; i < lines_.size(); i++)
    printf("%s%s%s\n", lines_[i].first.c_str(), places[i - from].empty() ? "" : "  at ", places[i - from].c_str());
  for (uint32_t i = 0; i < scheduler.count(); i++) {
    const Scheduler::Thread& thread = scheduler.thread(i);
    printf("thread %2u %-14s %s%s\n", i, thread.name.c_str(),
           thread.ended   ? "has ended"
           : thread.waits ? "waits for "
                          : "runs",
           !thread.ended && thread.waits ? thread.waits_for : "");
  }
  fflush(stdout);
}

void Machine::fail(const char* format, ...) {
  Verdict& verdict = *settings.verdict;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(verdict.reason, sizeof verdict.reason, format, arguments);
  va_end(arguments);
  verdict.failed = true;
  report();
  _exit(1);
}

void Machine::succeed() {
  report();
  _exit(0);
}

void Machine::stuck() {
  std::string who;
  for (uint32_t i = 0; i < scheduler.count(); i++) {
    const Scheduler::Thread& thread = scheduler.thread(i);
    if (thread.ended || thread.is_service) continue;
    who += (who.empty() ? "" : "; ") + thread.name + " waits for " + thread.waits_for;
  }
  fail("nobody can run: %s", who.c_str());
}

}  // namespace dapple::sim
