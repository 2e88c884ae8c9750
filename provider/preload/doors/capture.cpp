// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/capture.hpp"

#include <stdlib.h>

#include <atomic>

#include "provider/common/settings.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/records/capture_file.hpp"

namespace dapple::doors {
namespace {

constinit std::atomic<bool> begun = false;
constinit std::atomic<int> file = -1;  // hidden

// -1 if nothing is to be captured.
int open_file() {
  if (const int opened = file.load(); opened >= 0) return opened;
  const char* name = provider::settings().pcap;
  if (name == nullptr) return -1;
  soft::Problem problem;
  soft::OwnedFd opened = soft::open_capture_file(name, problem);
  if (!opened) return -1;
  const int hidden = hide(opened.release());
  int before = -1;
  if (file.compare_exchange_strong(before, hidden)) return hidden;
  // Another thread was faster.
  close_hidden(hidden);
  return before;
}

}  // namespace

void begin_capture(soft::DaemonLink& link) {
  if (begun.exchange(true)) return;
  soft::Problem problem;
  if (const int opened = open_file(); opened >= 0) link.capture(opened, problem);
}

bool resume_capture(soft::DaemonLink& link) {
  if (!begun) return true;
  soft::Problem problem;
  const int opened = open_file();
  return opened < 0 || link.capture_again(opened, problem);
}

void forget_capture() {
  if (const int opened = file.exchange(-1); opened >= 0) close_hidden(opened);
}

}  // namespace dapple::doors
