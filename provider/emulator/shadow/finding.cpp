// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/shadow/finding.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <new>

#include "provider/common/host_guards.hpp"
#include "provider/common/settings.hpp"
#include "provider/emulator/shadow/say.hpp"

namespace dapple::provider {
namespace {

constexpr int kPatienceMs = 2000;
constexpr int kMaxWaiting = 64;

enum class State { kFree, kBeingMade, kWaiting, kBeingShown };

struct Finding {
  FindingKind kind = {};
  char text[768] = "";
  ReportedStack places[kMaxPlaces] = {};
  int num_places = 0;
  std::atomic<State> state = State::kFree;
};

// The findings under dapple-run --check. Never freed, because threads may still run when the process ends.
struct Findings {
  static constexpr size_t kMaxKnown = 1024;

  pid_t process = getpid();
  ShowFinding show = nullptr;
  std::atomic<int> num_waiting = 0;  // includes findings that are being shown
  std::atomic<bool> is_full = false;
  std::atomic<uint64_t> known[kMaxKnown] = {};  // hashes of findings; 0: an unused slot
  Finding list[kMaxWaiting];
};

// Null without dapple-run --check.
std::atomic<Findings*> of_check = nullptr;

// Null if no finding waits. In a child of fork(), the parent's findings do not count.
Findings* waiting() {
  Findings* findings = of_check.load(std::memory_order_acquire);
  if (findings == nullptr || findings->num_waiting.load(std::memory_order_relaxed) == 0) return nullptr;
  return findings->process == getpid() ? findings : nullptr;
}

// FNV-1a.
uint64_t hash_of(const FindingKind& kind, std::initializer_list<ReportedStack> places) {
  uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&hash](const void* address) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(address)) * 0x100000001B3;
  };
  add(kind.remedy);
  for (const ReportedStack& place : places) {
    for (int i = 0; i < place.stack.count; ++i) add(place.stack.callers[i]);
  }
  return hash == 0 ? 1 : hash;
}

// False if the finding is known. If the table is full, every further finding counts as new.
bool is_new(Findings& findings, uint64_t hash) {
  for (size_t i = 0; i < Findings::kMaxKnown; ++i) {
    std::atomic<uint64_t>& slot = findings.known[(hash + i) % Findings::kMaxKnown];
    uint64_t found = 0;
    if (slot.compare_exchange_strong(found, hash)) return true;
    if (found == hash) return false;
  }
  return true;
}

Finding* make_room(Findings& findings) {
  for (Finding& finding : findings.list) {
    State state = State::kFree;
    if (finding.state.compare_exchange_strong(state, State::kBeingMade)) return &finding;
  }
  return nullptr;
}

iovec piece(const char* text) {
  return {const_cast<char*>(text), strlen(text)};
}

// Writes all pieces in one call, because other processes and threads write to the same file. An error is ignored: no
// better place for the text exists.
template <size_t kCount>
void write_pieces(int file, const iovec (&pieces)[kCount]) {
  [[maybe_unused]] const ssize_t written = writev(file, pieces, static_cast<int>(kCount));
}

// Replaces the bytes that JSON would need to escape, because names of files and programs may have any bytes. Safe in a
// signal handler.
void make_json(char* text) {
  for (; *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\' || *text < ' ' || *text > '~') *text = '?';
  }
}

// Appends the finding to the file in DAPPLE_CHECK_RECORDS. dapple-run reads it, and the software device's check writes
// the same format.
void record(const Finding& finding) {
  const char* name = settings().check_records;
  const int file = name == nullptr ? -1 : open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  char program[64];
  snprintf(program, sizeof program, "%s", program_invocation_short_name);
  char text[sizeof finding.text];
  memcpy(text, finding.text, sizeof text);
  make_json(program);
  make_json(text);
  char process[128];
  snprintf(process, sizeof process, "{\"kind\":\"%s\",\"level\":\"error\",\"process\":%d,\"program\":\"",
           finding.kind.name, getpid());
  write_pieces(file, {piece(process), piece(program), piece("\",\"text\":\""), piece(text), piece("\",\"remedy\":\""),
                      piece(finding.kind.remedy), piece("\",\"places\":[]}\n")});
  close(file);
}

}  // namespace

bool begin_findings(ShowFinding show) {
  Findings* findings = nullptr;
  if (show != nullptr) {
    findings = new (std::nothrow) Findings;
    if (findings == nullptr) return false;
    findings->show = show;
  }
  of_check.store(findings, std::memory_order_release);
  return true;
}

bool is_checked() {
  return of_check.load(std::memory_order_acquire) != nullptr;
}

Stack stack_here() {
  return is_checked() ? Stack::here() : Stack();
}

void report(const FindingKind& kind, std::initializer_list<ReportedStack> places, const char* format, ...) {
  char text[sizeof Finding::text - 1];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  Findings* findings = of_check.load(std::memory_order_acquire);
  if (findings == nullptr) return say("%s", text);
  if (!is_new(*findings, hash_of(kind, places))) return;
  Finding* finding = make_room(*findings);
  if (finding == nullptr) {
    if (!findings->is_full.exchange(true)) say("more than %d findings at once are not shown", kMaxWaiting);
    return;
  }
  finding->kind = kind;
  snprintf(finding->text, sizeof finding->text, "%s.", text);
  finding->num_places = 0;
  for (const ReportedStack& place : places) {
    if (place.stack.count > 0 && finding->num_places < kMaxPlaces) finding->places[finding->num_places++] = place;
  }
  // The count comes first: write_findings() in a signal handler looks at the list only if the count is not 0.
  [[maybe_unused]] const int num_waiting = ++findings->num_waiting;
  assert(num_waiting > 0);
  finding->state.store(State::kWaiting, std::memory_order_release);
}

void show_findings(void (*before_halt)()) {
  Findings* findings = waiting();
  if (findings == nullptr) return;
  for (Finding& finding : findings->list) {
    State state = State::kWaiting;
    if (!finding.state.compare_exchange_strong(state, State::kBeingShown)) continue;
    // A signal handler could end the process before the finding is shown completely.
    const SignalGuard quiet(SignalGuard::Except::kOwnFaults);
    findings->show({finding.kind.name, finding.text, finding.kind.remedy, finding.places, finding.num_places},
                   before_halt);
    finding.state.store(State::kFree, std::memory_order_release);
    --findings->num_waiting;
  }
}

void show_findings_at_exit() {
  show_findings(nullptr);
  // Waits for findings that other threads are showing.
  for (int i = 0; i < kPatienceMs && waiting() != nullptr; ++i) usleep(1000);
}

void write_findings() {
  Findings* findings = waiting();
  if (findings == nullptr) return;
  for (Finding& finding : findings->list) {
    const State state = finding.state.load(std::memory_order_acquire);
    if (state != State::kWaiting && state != State::kBeingShown) continue;
    write_pieces(STDERR_FILENO, {piece("dapple: error: "), piece(finding.kind.name), piece(": "), piece(finding.text),
                                 piece("\n  "), piece(finding.kind.remedy), piece("\n")});
    record(finding);
  }
}

}  // namespace dapple::provider
