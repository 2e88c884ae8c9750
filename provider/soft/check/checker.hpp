// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-run --check: the records of a process about its use of the devices, for the explanation of mistakes.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/lent/freed_marks.hpp"
#include "provider/soft/check/lent/lent_memory.hpp"
#include "provider/soft/check/lent/mapped_memory.hpp"
#include "provider/soft/check/lent/posted_contexts.hpp"
#include "provider/soft/check/lent/withheld_bytes.hpp"
#include "provider/soft/check/races/races.hpp"
#include "provider/soft/check/records/asked_depths.hpp"
#include "provider/soft/check/records/cq_loads.hpp"
#include "provider/soft/check/records/disconnections.hpp"
#include "provider/soft/check/records/keys.hpp"
#include "provider/soft/check/records/objects.hpp"
#include "provider/soft/check/records/posted_receives.hpp"
#include "provider/soft/check/records/posted_sends.hpp"
#include "provider/soft/check/records/recent_writes.hpp"
#include "provider/soft/check/records/told_failures.hpp"
#include "provider/soft/check/reports/reporter.hpp"
#include "roce/core/queue_pair.hpp"

namespace dapple::soft::check {

// Lives as long as the process. Its parts have locks of their own.
class Checker {
 public:
  // Null unless the program runs under dapple-run --check. The first call reads the options.
  static Checker* get();

  AskedDepths asked;
  Disconnections disconnections;
  Keys keys;
  Objects objects;
  CqLoads loads;
  MappedMemory mapped;
  LentMemory lent{mapped};
  WithheldBytes withheld{mapped};
  PostedContexts contexts{withheld.mutex()};
  PostedReceives receives;
  RecentWrites writes;  // if the options ask for notes
  Reporter reporter;
  ToldFailures told;
  // Null if the options do not ask for races.
  const std::unique_ptr<Races> races;
  // False: no bytes are withheld, because a sanitizer or the emulator looks at the program's accesses.
  const bool withholds;
  // A completion counter tells the program of requests whose completions it never polls. From then on nobody knows how
  // long a buffer belongs to the device.
  std::atomic<bool> counts{false};
  // Null if the program's heap is not watched.
  FreedMarks* freed = nullptr;

  // The queue pairs' sends. Each must be removed before it ends.
  void add(PostedSends& sends);
  void remove(PostedSends& sends);
  // The engine of the next queue pair, which starts some requests late if the options have a seed.
  std::unique_ptr<roce::QueuePair> late(std::unique_ptr<roce::QueuePair> engine);
  // False in a child of clone() without handlers, whose memory is not that of its parent's requests.
  bool is_its_process() const { return process_.load(std::memory_order_relaxed) == getpid(); }
  // The program has polled a flushed send request.
  void polled_flush(uint32_t qpn, uint64_t id);
  // The device has written there.
  void overwritten(const std::byte* memory, size_t size);

 private:
  explicit Checker(const char* records);

  static void before_exit();

  // No fork happens while another thread holds a lock, so that the child can use them.
  static void before_fork();
  static void after_fork();
  static void after_fork_in_child();

  void unlock_all();
  // The requests and objects of a child of fork() are its parent's.
  void forget_all();

  std::atomic<pid_t> process_{getpid()};
  std::atomic<uint64_t> queue_pairs_{0};        // so far
  Mutex sends_mutex_{LockRank::kCheckedSends};  // taken before the lock of each of them
  std::set<PostedSends*> sends_;
};

}  // namespace dapple::soft::check
