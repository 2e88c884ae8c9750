// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/fault_word.hpp"

#include <charconv>

#include "provider/soft/faults/planned_names.hpp"
#include "provider/soft/faults/verbs_names.hpp"
#include "provider/system/errno_names.hpp"

namespace dapple::soft {
namespace {

constexpr uint64_t kMaxDelay = 10'000'000'000;

// A whole number above 0.
template <typename Number>
bool number_of(std::string_view text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

// 0 for a text that is none.
int result_of(size_t of, std::string_view text) {
  if (text == "SIGKILL") return kDies;
  // 0 means no event.
  if (of == kEvent) return event_of(text) + 1;
  if (of == kLink) {
    uint64_t nanoseconds = 0;
    return parse_delay(text, nanoseconds) ? static_cast<int>(nanoseconds / 1000) : 0;
  }
  if (of == kCompletion) return static_cast<int>(status_of(text));
  if (const int error = errno_of(text); error != 0) return error;
  int number = 0;
  return number_of(text, number) && number <= kMaxErrno ? number : 0;
}

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

std::string no_result(size_t of, std::string_view text) {
  if (of == kCompletion) return quoted(text) + " is no status of enum ibv_wc_status for an error, without IBV_WC_";
  if (of == kEvent) return quoted(text) + " is no event of enum ibv_event_type, without IBV_EVENT_";
  if (of == kLink) return quoted(text) + " is no time such as 20ms, with ns, us, ms or s, and 10s at most";
  return quoted(text) + " is no errno, such as ENOMEM or 12";
}

}  // namespace

bool is_of_completions(size_t of) {
  return of >= kCompletion && of <= kLink;
}

std::string read_fault(std::string_view word, PlannedFault& fault) {
  const size_t at = word.find('@'), equals = word.find('=');
  if (at == word.npos || equals == word.npos || equals < at) return "it is not of the form NAME@N=RESULT";
  std::string_view name = word.substr(0, at);
  const size_t hash = name.find('#');
  if (hash != name.npos && !number_of(name.substr(hash + 1), fault.stack, 16))
    return quoted(name.substr(hash + 1)) + " is no hexadecimal number of a place";
  name = name.substr(0, hash);
  fault.of = counted_of(name);
  if (fault.of == SIZE_MAX) return "no plan counts " + quoted(name) + "; dapple-soft(7) lists the names";
  if (fault.stack != 0 && (fault.of == kEvent || fault.of == kLink)) return std::string(name) + " has no places";
  std::string_view number = word.substr(at + 1, equals - at - 1);
  fault.lasts = number.ends_with('+');
  if (fault.lasts) number.remove_suffix(1);
  if (!number_of(number, fault.number)) return quoted(number) + " is no number of a call, 1 or more";
  const std::string_view result = word.substr(equals + 1);
  fault.result = result_of(fault.of, result);
  return fault.result == 0 ? no_result(fault.of, result) : "";
}

std::string read_registered(std::string_view word, uint64_t& bytes) {
  const std::string_view value = word.substr(kRegistered.size());
  uint64_t number = 0;
  if (!number_of(value, number)) return quoted(value) + " is no number of bytes, 1 or more";
  bytes = number;
  return "";
}

std::string read_arm(std::string_view word, uint64_t& nanoseconds) {
  const std::string_view value = word.substr(kArm.size());
  if (parse_delay(value, nanoseconds) && nanoseconds > 0) return "";
  return quoted(value) + " is no time such as 20ms, with ns, us, ms or s, and 10s at most";
}

bool parse_delay(std::string_view text, uint64_t& nanoseconds) {
  // strtod() would want a comma where the program's locale has one.
  double number = 0;
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::general);
  if (error != std::errc()) return false;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const double factor = unit == "ns" ? 1 : unit == "us" ? 1e3 : unit == "ms" ? 1e6 : unit == "s" ? 1e9 : 0;
  if (factor == 0 || !(number * factor <= static_cast<double>(kMaxDelay))) return false;
  nanoseconds = static_cast<uint64_t>(number * factor);
  return true;
}

}  // namespace dapple::soft
