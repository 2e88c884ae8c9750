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

inline constexpr DAT_TIMEOUT kWaitUs = 60'000'000;  // for what must come, in an emulated machine too
inline constexpr size_t kMemorySize = 65536;        // bytes

// Thrown to leave a scenario that cannot go on.
struct Stopped {};

class Run {
 public:
  Run();
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // A DAT call of the scenario. When the injected failure makes it fail, that is the outcome, and it is called again:
  // it must succeed now, or the outcome is a lasting one and the scenario stops.
  template <class Function>
  void call(const char* name, Function function) {
    if (accepts(name, function())) return;
    const DAT_RETURN again = function();
    if (again != DAT_SUCCESS) stop_lasting(again);
  }
  // Waits for the next event, which must have this number; another one is the outcome.
  DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
  // The next event, of a DTO or bind that must have succeeded.
  void expect_done(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number = DAT_DTO_COMPLETION_EVENT);
  // Nothing but the injected failure can be on the asynchronous EVD.
  void look_at_errors();

  void open(DAT_BOOLEAN thread_safe = DAT_FALSE);
  // Gracefully: everything must have been freed.
  void close();
  // Whatever is left, after a Stopped.
  void close_abruptly();

  unsigned char* memory() { return memory_; }

  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_ATTR attr{};
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;

  // What the consumer saw first: "success", the names of a DAT_RETURN, or an event. "; lasting" after it: the call
  // fails for good.
  const std::string& outcome() const { return outcome_; }
  // The DAT function in which the call failed, or "a thread" of the provider.
  const std::string& where() const { return where_; }
  // Something no failure explains; empty when all is well.
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

// A call of DAT whose name is its step's.
#define DAT_CALL(run, function, ...) (run).call(#function, [&] { return function(__VA_ARGS__); })

struct Scenario {
  const char* name;
  void (*play)(Run& run);
};
// All of them, the last with a null name.
extern const Scenario kScenarios[];

void play_connection(Run& run);
void play_service_points(Run& run);
void play_windows(Run& run);
void play_shared_queue(Run& run);

// After the name of a function in which something failed as the process used the library for the first time.
#define FIRST_USE ", first use"

// What a consumer may see when that call fails with that error there, in words; empty if nothing says.
std::string expected_outcomes(const char* call, int error, const std::string& where);
bool is_expected(const char* call, int error, const std::string& where, const std::string& outcome);

}  // namespace dapple::inject
