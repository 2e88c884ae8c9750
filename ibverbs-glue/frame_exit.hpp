// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <pthread.h>

// Exported by the C library since its first threads, and not declared in its headers for C++. longjmp() and
// siglongjmp() run these clean-ups for the frames that they leave, as pthread_exit() does.
extern "C" {
void _pthread_cleanup_push(struct _pthread_cleanup_buffer* buffer, void (*routine)(void*), void* argument) noexcept;
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer* buffer, int execute) noexcept;
}

namespace dapple {

/// Runs a routine, once, when the frame of this object is left: also by a longjmp() out of a signal handler, which runs
/// no destructors. The object must lie on the stack, and the objects of a thread must end in the reverse order of their
/// making. longjmp() does not find them from a signal stack that is a local array of an outer frame.
class FrameExit {
 public:
  FrameExit(void (*routine)(void*), void* argument) noexcept : routine_(routine), argument_(argument) {
    _pthread_cleanup_push(&buffer_, run, this);
  }
  ~FrameExit() {
    _pthread_cleanup_pop(&buffer_, 0);
    run(this);
  }
  FrameExit(const FrameExit&) = delete;
  FrameExit& operator=(const FrameExit&) = delete;

 private:
  static void run(void* self) {
    auto* exit = static_cast<FrameExit*>(self);
    if (void (*routine)(void*) = exit->routine_) {
      exit->routine_ = nullptr;
      routine(exit->argument_);
    }
  }

  void (*routine_)(void*);
  void* argument_;
  struct _pthread_cleanup_buffer buffer_;
};

}  // namespace dapple
