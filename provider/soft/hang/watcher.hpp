// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A thread in a program whose hangs are explained. It tells dapple-run of progress, and explains what the program's
// threads wait for when dapple-run asks for that, or at SIGQUIT. Then the process ends.
#pragma once

#include <cstdint>
#include <map>

#include "provider/member/hang_watch.hpp"
#include "provider/soft/hang/notes/notes.hpp"

namespace dapple::soft::hang {

class Watcher {
 public:
  // Starts it, once in each process, and reads the options of the reports. Without a thread nothing is explained.
  static void start();
  // Starts it with the program's first channel of rdma_cm's events, if its hangs are explained: a program may wait for
  // such an event before it has a device.
  static void start_with_cm();

 private:
  struct Since {
    uint64_t switches = 0;
    uint64_t time_ns = 0;  // when this number of switches was seen first
  };

  static void* run(void* watcher);
  static void at_quit(int signal_number);

  [[noreturn]] void work();
  // What has happened since the last look.
  void look_at_threads();
  bool has_progress();
  void write_report();
  static void* write_report_of(void* watcher);
  [[noreturn]] void quit();
  [[noreturn]] void end_with_dapple_run();

  Notes& notes_ = *Notes::get();
  HangWatch* watch_ = nullptr;  // null: only SIGQUIT asks
  uint64_t progress_ = 0, empty_polls_ = 0, ticks_ = 0;
  uint64_t last_progress_ns_ = 0;
  std::map<int, Since> since_;  // by thread
};

}  // namespace dapple::soft::hang
