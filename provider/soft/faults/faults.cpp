// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/faults.hpp"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <new>
#include <string_view>

#include "provider/common/settings.hpp"
#include "provider/member/random.hpp"
#include "provider/soft/faults/fault_plan.hpp"

namespace dapple::soft {
namespace {

constexpr uint64_t kMaxDelay = 10'000'000'000;
// A reordered packet lets packets pass that arrive within this time.
constexpr uint64_t kReorderDelay = 200'000;

// strtod() would want a comma where the program's locale has one.
bool number_of(std::string_view text, double& value, std::string_view& rest) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::general);
  if (error != std::errc()) return false;
  rest = text.substr(static_cast<size_t>(end - text.data()));
  return true;
}

bool probability_of(std::string_view text, double& value) {
  std::string_view rest;
  return number_of(text, value, rest) && rest.empty() && value >= 0 && value <= 1;
}

bool parse_one(std::string_view entry, FaultSettings& settings) {
  const size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = entry.substr(0, equals), value = entry.substr(equals + 1);
  if (name == "drop") return probability_of(value, settings.drop);
  if (name == "dup") return probability_of(value, settings.duplicate);
  if (name == "reorder") return probability_of(value, settings.reorder);
  if (name == "corrupt") return probability_of(value, settings.corrupt);
  if (name == "delay") return parse_delay(value, settings.delay_ns);
  if (name == "order") return settings.disorders_writes = value == "random";
  if (name == "seed") return parse_seed(value, settings.seed);
  return false;
}

// Heaps of the standard library have the greatest first.
bool later(const DelayQueue::Packet* a, const DelayQueue::Packet* b) {
  return a->due != b->due ? a->due > b->due : a->order > b->order;
}

}  // namespace

bool parse_delay(std::string_view text, uint64_t& nanoseconds) {
  double number;
  std::string_view unit;
  if (!number_of(text, number, unit)) return false;
  double factor;
  if (unit == "ns") {
    factor = 1;
  } else if (unit == "us") {
    factor = 1e3;
  } else if (unit == "ms") {
    factor = 1e6;
  } else if (unit == "s") {
    factor = 1e9;
  } else {
    return false;
  }
  if (!(number * factor <= static_cast<double>(kMaxDelay))) return false;
  nanoseconds = static_cast<uint64_t>(number * factor);
  return true;
}

bool parse_faults(const char* text, FaultSettings& settings, Problem& problem) {
  settings = {};
  settings.seed = seed_of_process().value_or(settings.seed);
  const std::unique_ptr<FaultPlan> plan(new (std::nothrow) FaultPlan);
  if (plan == nullptr) {
    problem.set(ENOMEM, "DAPPLE_FAULTS: no memory");
    return false;
  }
  std::string_view rest = text;
  for (;;) {
    const size_t comma = rest.find(',');
    const std::string_view entry = rest.substr(0, comma);
    if (!parse_one(entry, settings) && !plan->add(entry)) {
      if (plan->is_overfull()) {
        problem.set(EINVAL, "DAPPLE_FAULTS: more than %zu calls, completions and events are planned", FaultPlan::kMax);
        return false;
      }
      problem.set(EINVAL,
                  "DAPPLE_FAULTS: \"%.*s\" is none of drop=, dup=, reorder=, corrupt= (0 to 1), delay= (such as 1ms, "
                  "at most 10s), order=random, seed=, VERB@N=ERRNO, completion@N=STATUS, event@N=NAME, link@N=TIME, "
                  "registered=BYTES",
                  static_cast<int>(std::min<size_t>(entry.size(), 30)), entry.data());
      return false;
    }
    if (comma == std::string_view::npos) return true;
    rest = rest.substr(comma + 1);
  }
}

const FaultSettings& program_faults() {
  static const FaultSettings settings = [] {
    FaultSettings read;
    Problem problem;
    const char* text = provider::settings().faults;
    return text != nullptr && parse_faults(text, read, problem) ? read : FaultSettings();
  }();
  return settings;
}

Fate FaultSource::next(size_t packet_size) {
  Fate fate;
  fate.dropped = random_.happens(settings_.drop);
  fate.duplicated = random_.happens(settings_.duplicate);
  fate.delay_ns = settings_.delay_ns + (random_.happens(settings_.reorder) ? kReorderDelay : 0);
  const bool damaged = random_.happens(settings_.corrupt);
  const uint64_t bit = random_.next();
  if (damaged && packet_size > 0) fate.damaged_bit = static_cast<uint32_t>(bit % (packet_size * 8));
  return fate;
}

std::unique_ptr<DelayQueue> DelayQueue::create() {
  std::unique_ptr<DelayQueue> queue(new (std::nothrow) DelayQueue);
  if (queue == nullptr) return nullptr;
  queue->packets_.reset(new (std::nothrow) Packet[kPlaces]);
  if (queue->packets_ == nullptr) return nullptr;
  for (size_t i = 0; i < kPlaces; i++) queue->heap_[i] = &queue->packets_[i];
  return queue;
}

bool DelayQueue::put(uint64_t due, std::span<const std::byte> meta, std::span<const std::byte> bytes) {
  if (count_ == kPlaces || bytes.size() > kPacketSize || meta.size() > sizeof(Packet::meta)) return false;
  Packet& packet = *heap_[count_++];
  packet.due = due;
  packet.order = order_++;
  packet.size = bytes.size();
  if (!meta.empty()) memcpy(packet.meta, meta.data(), meta.size());
  memcpy(packet.bytes, bytes.data(), bytes.size());
  std::push_heap(heap_, heap_ + count_, later);
  return true;
}

const DelayQueue::Packet* DelayQueue::take(uint64_t now) {
  if (next_due() > now) return nullptr;
  assert(count_ > 0 && count_ <= kPlaces);
  std::pop_heap(heap_, heap_ + count_, later);
  return heap_[--count_];
}

uint64_t DelayQueue::next_due() const {
  return count_ == 0 ? UINT64_MAX : heap_[0]->due;
}

}  // namespace dapple::soft
