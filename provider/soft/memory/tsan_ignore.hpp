// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The device reads and writes a program's memory as hardware would. ThreadSanitizer cannot see hardware or its ordering
// with the program's accesses. So a build with ThreadSanitizer hides these accesses, too.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DAPPLE_HAS_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define DAPPLE_HAS_TSAN 1
#endif

#ifdef DAPPLE_HAS_TSAN
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace dapple::soft {

// This thread's accesses are hidden while one exists.
class TsanIgnore {
 public:
#ifdef DAPPLE_HAS_TSAN
  TsanIgnore() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~TsanIgnore() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  TsanIgnore() {}
  ~TsanIgnore() {}
#endif
  TsanIgnore(const TsanIgnore&) = delete;
  TsanIgnore& operator=(const TsanIgnore&) = delete;
};

}  // namespace dapple::soft
