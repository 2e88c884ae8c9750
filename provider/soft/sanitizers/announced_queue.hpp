// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A work queue of a program with ThreadSanitizer: to the sanitizer it is a thread that uses each request's memory when
// the request is posted. A thread of the program that uses the memory before it has polled a completion of this or a
// later request races with it. If the threads that make progress did the device's work in the sanitizer's eyes, a
// program's own poll would hide its errors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "provider/soft/memory/memory_table.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// All functions are called inside of the plug-in. Safe from any thread.
class AnnouncedQueue {
 public:
  // Null if the program has no ThreadSanitizer, or without memory. `name` is for reports.
  static std::unique_ptr<AnnouncedQueue> make(MemoryTable& memory, roce::Accessor who, const char* name);
  // The device uses the memory of its requests no more.
  ~AnnouncedQueue();
  AnnouncedQueue(const AnnouncedQueue&) = delete;
  AnnouncedQueue& operator=(const AnnouncedQueue&) = delete;

  // A request of this thread. Call it in the order in which the requests enter the queue, before the device may use the
  // memory. Returns the mark of its completion.
  uint16_t post(std::span<const roce::Segment> segments, bool device_writes);
  uint16_t post(const roce::SendRequest& request);
  // The device has dropped all requests.
  void end();

  // This thread has polled the completion.
  static void polled(const roce::Completion& completion);
  // The device uses no memory of any request that has been posted, as far as this thread may know.
  static void end_all();

 private:
  class Use;
  AnnouncedQueue(MemoryTable& memory, roce::Accessor who, uint32_t lane) : memory_(memory), who_(who), lane_(lane) {}

  MemoryTable& memory_;
  const roce::Accessor who_;
  const uint32_t lane_;
};

}  // namespace dapple::soft
