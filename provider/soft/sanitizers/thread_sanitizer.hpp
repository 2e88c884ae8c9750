// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <span>

#include "provider/soft/sanitizers/sanitizer.hpp"

namespace dapple::soft {

// ThreadSanitizer of gcc or clang. It sees no lock of the plug-in, so it would report the plug-in's threads. So it
// ignores the work of threads in the plug-in, and sees the device as further threads (announced_queue.hpp).
class ThreadSanitizer final : public Sanitizer {
 public:
  // Null if the program has none, or one whose functions cannot be found (gcc's -static-libtsan).
  static ThreadSanitizer* of_program();

  void before(const DeviceAccess& access, const void* memory, size_t size) override;
  void enter_plugin() override;
  void leave_plugin() override;

  // A thread of the device.
  using Fiber = void*;
  Fiber make_fiber() const { return create_fiber_(0); }
  // `name` is copied.
  void name(Fiber fiber, const char* name) const { set_fiber_name_(fiber, name); }

  // Orders two threads: the accesses of the first before release() come before those of the second after acquire().
  void release(void* token) const { release_(token); }
  void acquire(void* token) const { acquire_(token); }
  void read(const void* memory, size_t size, void* caller) const { read_range_pc_(memory, size, caller); }
  void write(void* memory, size_t size, void* caller) const { write_range_pc_(memory, size, caller); }
  // An atomic change of the word, which it leaves as it is. The place in the code is the caller's. The word is there
  // and aligned.
  void update(uint64_t* word) const {
    if (fetch_add_ != nullptr) fetch_add_(word, 0, __ATOMIC_ACQ_REL);
  }

  // Inside of the plug-in: while one exists, this thread's releases and acquires count.
  class Heard {
   public:
    explicit Heard(const ThreadSanitizer& sanitizer) : sanitizer_(sanitizer) {
      sanitizer_.sync_end_(__FILE__, __LINE__);
    }
    ~Heard() { sanitizer_.sync_begin_(__FILE__, __LINE__); }
    Heard(const Heard&) = delete;
    Heard& operator=(const Heard&) = delete;

   private:
    const ThreadSanitizer& sanitizer_;
  };

  // While one exists, this thread's calls of the sanitizer are the fiber's, from a function with these callers, the
  // innermost first. It must not call anything else. One at a time for each fiber.
  class On {
   public:
    On(const ThreadSanitizer& sanitizer, Fiber fiber, std::span<void* const> callers);
    ~On();
    On(const On&) = delete;
    On& operator=(const On&) = delete;

   private:
    const ThreadSanitizer& sanitizer_;
    const Fiber thread_;
    const size_t depth_;
  };

 private:
  void (*acquire_)(void* token) = nullptr;
  void (*release_)(void* token) = nullptr;
  void (*read_range_pc_)(const void* memory, size_t size, void* pc) = nullptr;
  void (*write_range_pc_)(void* memory, size_t size, void* pc) = nullptr;
  uint64_t (*fetch_add_)(volatile uint64_t* word, uint64_t value, int order) = nullptr;  // may be null
  void (*func_entry_)(void* pc) = nullptr;
  void (*func_exit_)() = nullptr;
  void* (*current_fiber_)() = nullptr;
  void* (*create_fiber_)(unsigned flags) = nullptr;
  void (*switch_to_fiber_)(void* fiber, unsigned flags) = nullptr;
  void (*set_fiber_name_)(void* fiber, const char* name) = nullptr;
  using Annotation = void(const char* file, int line);
  Annotation* reads_begin_ = nullptr;
  Annotation* reads_end_ = nullptr;
  Annotation* writes_begin_ = nullptr;
  Annotation* writes_end_ = nullptr;
  Annotation* sync_begin_ = nullptr;
  Annotation* sync_end_ = nullptr;
};

}  // namespace dapple::soft
