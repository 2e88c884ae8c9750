// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One run through a scenario, with one failure injected or none.
#pragma once

#include <dat2/udat.h>

#include <cstdint>
#include <string>
#include <utility>

namespace dapple::inject {

inline constexpr DAT_TIMEOUT kWaitUs = 60'000'000;  // longest wait for an expected event, in an emulated machine too
inline constexpr size_t kMemorySize = 65536;        // bytes

// Thrown to leave a scenario that cannot go on.
struct Stopped {};

class Run {
 public:
  Run();
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Makes a DAT call of the scenario. If the injected failure makes it fail, that is the outcome, and the call is
  // repeated: it must succeed now, or the outcome is lasting and the scenario stops.
  template <class Function>
  void call(const char* name, Function function) {
    if (accepts(name, function())) return;
    const DAT_RETURN again = function();
    if (again != DAT_SUCCESS) stop_lasting(again);
  }
  // Waits for the next event, which must have this number; another one is the outcome.
  DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
  // Waits for the next event, of a DTO or bind that must have succeeded.
  void expect_done(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number = DAT_DTO_COMPLETION_EVENT);
  // The asynchronous EVD may have only the event of the injected failure.
  void look_at_errors();

  void open(DAT_BOOLEAN thread_safe = DAT_FALSE);
  // Closes gracefully: everything must have been freed.
  void close();
  // Frees everything that is left after a Stopped.
  void close_abruptly();

  unsigned char* memory() { return memory_; }

  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_ATTR attr{};
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;

  // The consumer's first result: "success", the names of a DAT_RETURN, or an event, followed by "; lasting" if the call
  // fails every time.
  const std::string& outcome() const { return outcome_; }
  // The DAT function in which the call failed, or "a thread" of the provider.
  const std::string& where() const { return where_; }
  // A result that no failure explains; empty if there is none.
  const std::string& problem() const { return problem_; }
  bool stopped() const { return stopped_; }

 private:
  bool accepts(const char* name, DAT_RETURN status);
  [[noreturn]] void stop_lasting(DAT_RETURN status);
  [[noreturn]] void stop_with(const std::string& what);
  void note_where(const char* name);

  unsigned char* memory_;
  std::string outcome_ = "success";
  std::string where_;
  std::string problem_;
  bool stopped_ = false;
};

// The names of a DAT_RETURN.
std::string name_of(DAT_RETURN status);

// A DAT call whose name is its step's.
#define DAT_CALL(run, function, ...) (run).call(#function, [&] { return function(__VA_ARGS__); })

struct Scenario {
  const char* name;
  void (*play)(Run& run);
};
// All scenarios; the last has a null name.
extern const Scenario kScenarios[];

void play_connection(Run& run);
void play_service_points(Run& run);
void play_windows(Run& run);
void play_shared_queue(Run& run);
void play_datagrams(Run& run);

// Follows the name of a function in which a call failed as the process used the library for the first time.
#define FIRST_USE ", first use"

// The results that a consumer may see when that call fails there with that error, as text; empty if there is no row.
std::string expected_outcomes(const char* call, int error, const std::string& where);
bool is_expected(const char* call, int error, const std::string& where, const std::string& outcome);

}  // namespace dapple::inject
