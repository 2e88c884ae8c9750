// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/finding.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "provider/emulator/say.hpp"

namespace dapple::provider {
namespace {

struct Waiting {
  FindingKind kind = {};
  char text[768] = "";
  Place places[kMostPlaces] = {};
  int num_places = 0;
  std::atomic<bool> is_whole = false;
  std::atomic<bool> is_taken = false;
};

// Under dapple-run --check. Never freed: threads may still run when the process ends.
struct Findings {
  // The emulator reports fewer.
  static constexpr int kMost = 32;

  pid_t process = getpid();
  ShowFinding show = nullptr;
  std::atomic<int> num_added = 0;
  std::atomic<int> num_taken = 0;
  Waiting list[kMost];
};

// Null without a check.
std::atomic<Findings*> of_check = nullptr;

// Calls use(finding) for each that waits. A child of fork() leaves them to its parent.
template <typename Use>
void take_all(Use use) {
  Findings* findings = of_check.load(std::memory_order_acquire);
  if (findings == nullptr || findings->num_taken == findings->num_added || findings->process != getpid()) return;
  for (Waiting& finding : findings->list) {
    if (!finding.is_whole.load(std::memory_order_acquire) || finding.is_taken.exchange(true)) continue;
    ++findings->num_taken;
    use(finding, *findings);
  }
}

iovec piece(const char* text) {
  return {const_cast<char*>(text), strlen(text)};
}

// In one piece, because several processes and threads write there. Nothing can be done about a file that is closed.
template <size_t kCount>
void write_pieces(int file, const iovec (&pieces)[kCount]) {
  [[maybe_unused]] const ssize_t written = writev(file, pieces, static_cast<int>(kCount));
}

// Names of files and programs may have any bytes, and this may be a handler of a signal.
void make_json(char* text) {
  for (; *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\' || static_cast<unsigned char>(*text) < ' ') *text = '?';
  }
}

// The format is that of the software device's check: dapple-run reads both.
void record(Waiting& finding) {
  const char* name = secure_getenv("DAPPLE_CHECK_RECORDS");
  const int file = name == nullptr ? -1 : open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  char program[64];
  snprintf(program, sizeof program, "%s", program_invocation_short_name);
  make_json(program);
  make_json(finding.text);
  char process[128];
  snprintf(process, sizeof process, "{\"kind\":\"%s\",\"level\":\"error\",\"process\":%d,\"program\":\"",
           finding.kind.name, getpid());
  write_pieces(file, {piece(process), piece(program), piece("\",\"text\":\""), piece(finding.text),
                      piece("\",\"remedy\":\""), piece(finding.kind.remedy), piece("\",\"places\":[]}\n")});
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

Stack stack_of_place() {
  return of_check.load(std::memory_order_acquire) == nullptr ? Stack() : Stack::here();
}

void report(const FindingKind& kind, std::initializer_list<Place> places, const char* format, ...) {
  char text[sizeof Waiting::text - 1];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  Findings* findings = of_check.load(std::memory_order_acquire);
  if (findings == nullptr) return say("%s", text);
  if (findings->num_added >= Findings::kMost) return;
  const int index = findings->num_added++;
  if (index >= Findings::kMost) return;
  Waiting& finding = findings->list[index];
  finding.kind = kind;
  snprintf(finding.text, sizeof finding.text, "%s.", text);
  for (const Place& place : places) {
    if (place.stack.count > 0 && finding.num_places < kMostPlaces) finding.places[finding.num_places++] = place;
  }
  finding.is_whole.store(true, std::memory_order_release);
}

void show_findings() {
  take_all([](const Waiting& finding, const Findings& findings) {
    findings.show({finding.kind.name, finding.text, finding.kind.remedy, finding.places, finding.num_places});
  });
}

void write_findings() {
  take_all([](Waiting& finding, const Findings&) {
    write_pieces(STDERR_FILENO, {piece("dapple: error: "), piece(finding.kind.name), piece(": "), piece(finding.text),
                                 piece("\n  "), piece(finding.kind.remedy), piece("\n")});
    record(finding);
  });
}

}  // namespace dapple::provider
