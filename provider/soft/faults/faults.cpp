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
#include <string>
#include <string_view>

#include "provider/common/settings.hpp"
#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/faults/weak_order.hpp"
#include "provider/system/random.hpp"

namespace dapple::soft {
namespace {

// A reordered packet lets packets pass that arrive within this time.
constexpr uint64_t kReorderDelay = 200'000;

constexpr size_t kMaxShownWord = 80;

constexpr std::string_view kOrder = "order=";
constexpr std::string_view kWeak = "weak";

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

constexpr const char* kProbability = "a probability is a number from 0 to 1";

// A word that is none of the plan. Null, or the reason why it is malformed. `known`: the word has a name of these.
const char* read_one(std::string_view name, std::string_view value, FaultSettings& settings, bool& known) {
  known = true;
  if (name == "drop") return probability_of(value, settings.drop) ? nullptr : kProbability;
  if (name == "dup") return probability_of(value, settings.duplicate) ? nullptr : kProbability;
  if (name == "reorder") return probability_of(value, settings.reorder) ? nullptr : kProbability;
  if (name == "corrupt") return probability_of(value, settings.corrupt) ? nullptr : kProbability;
  if (name == "delay") {
    return parse_delay(value, settings.delay_ns) ? nullptr
                                                 : "a delay is a number with ns, us, ms or s, and 10s at most";
  }
  if (name == "order") {
    settings.disorders_writes = value == "random";
    return settings.disorders_writes || value == kWeak ? nullptr : "an order is random or weak";
  }
  if (name == "seed") return parse_seed(value, settings.seed) ? nullptr : "a seed is a number of 64 bits";
  if (name == "missed") {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), settings.missed);
    const bool good = error == std::errc() && end == value.data() + value.size() && settings.missed > 0;
    return good ? nullptr : "an exit code is a number from 1 to 255";
  }
  known = false;
  return nullptr;
}

// Empty, or the reason why the word is malformed.
std::string read_word(std::string_view word, FaultSettings& settings, FaultPlan& plan) {
  if (word.empty()) return "a word is empty";
  const size_t equals = word.find('=');
  if (equals == word.npos) return "it has no =, as drop=0.01 and ibv_reg_mr@3=ENOMEM have";
  bool known = false;
  const char* wrong = read_one(word.substr(0, equals), word.substr(equals + 1), settings, known);
  if (known) return wrong == nullptr ? "" : wrong;
  if (word.find('@') == word.npos && !word.starts_with(kRegistered) && !word.starts_with(kArm)) {
    return "there is no word with this name: they are drop=, dup=, reorder=, corrupt=, delay=, order=, seed=, "
           "registered=, arm=, missed=, and NAME@N=RESULT";
  }
  std::string reason;
  plan.add(word, reason);
  return reason;
}

// Heaps of the standard library have the greatest first.
bool later(const DelayQueue::Packet* a, const DelayQueue::Packet* b) {
  return a->due != b->due ? a->due > b->due : a->order > b->order;
}

}  // namespace

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
    if (const std::string reason = read_word(entry, settings, *plan); !reason.empty()) {
      if (plan->is_overfull()) {
        problem.set(EINVAL, "DAPPLE_FAULTS: %s", reason.c_str());
      } else {
        problem.set(EINVAL, "DAPPLE_FAULTS: \"%.*s\": %s",
                    static_cast<int>(std::min<size_t>(entry.size(), kMaxShownWord)), entry.data(), reason.c_str());
      }
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

bool wants_weak_order(std::string_view plan) {
  const size_t last = plan.rfind(kOrder);
  return last != plan.npos && plan.substr(last + kOrder.size()).starts_with(kWeak);
}

bool has_weak_order() {
  static const bool has = [] {
    FaultSettings read;
    Problem problem;
    const char* text = provider::settings().faults;
    return text != nullptr && wants_weak_order(text) && parse_faults(text, read, problem);
  }();
  return has;
}

Fate FaultSource::next(size_t packet_size) {
  Fate fate;
  fate.dropped = random_.happens(settings_.drop);
  fate.duplicated = random_.happens(settings_.duplicate);
  fate.reordered = random_.happens(settings_.reorder);
  fate.delay_ns = settings_.delay_ns + (fate.reordered ? kReorderDelay : 0);
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
