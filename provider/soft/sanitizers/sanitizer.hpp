// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Each program has at most one sanitizer: one that it was built with, or valgrind's memcheck. The sanitizer sees each
// access of the program, but none of the device, so the device reports its accesses to the sanitizer. The plug-in finds
// the sanitizer at run time and links nothing for it. Programs without a sanitizer pay nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "roce/host/ports.hpp"

namespace dapple::soft {

struct DeviceAccess {
  enum class Kind : uint8_t { kRead, kWrite, kUpdate };

  roce::Accessor who;
  uint32_t key = 0;
  Kind kind = Kind::kRead;
  const char* what = "";  // for people: "a peer writes"
  bool by_peer = false;
};

// Safe from any thread.
class Sanitizer {
 public:
  // The program's, or null.
  static Sanitizer* of_program();

  // Before the device accesses the program's memory. Reports an access that the program itself may not make there.
  virtual void before(const DeviceAccess& access, const void* memory, size_t size) = 0;
  // The first of these bytes that the program itself may not use now; null if it may use all, or if the sanitizer does
  // not know this.
  virtual const void* forbidden(const void*, size_t) { return nullptr; }
  // The device, or the plug-in, has stored these bytes, so they are defined now.
  virtual void stored(const void*, size_t) {}
  // From now on `freed` is called before the program gives a block back to the heap; not for the plug-in's own blocks.
  // False: the sanitizer cannot do this.
  virtual bool watch_heap(void (* /*freed*/)(const void* block, size_t size)) { return false; }
  // Between these two, this thread executes the plug-in. The calls may be nested.
  virtual void enter_plugin() {}
  virtual void leave_plugin() {}

 protected:
  ~Sanitizer() = default;
  // Names the queue pair and the key on standard error. It comes before the report, which may end the program.
  static void announce(const DeviceAccess& access, const void* memory, size_t size);
};

// While one exists, this thread executes the plug-in.
class InsidePlugin {
 public:
  InsidePlugin() : sanitizer_(Sanitizer::of_program()) {
    if (sanitizer_ != nullptr) sanitizer_->enter_plugin();
  }
  ~InsidePlugin() {
    if (sanitizer_ != nullptr) sanitizer_->leave_plugin();
  }
  InsidePlugin(const InsidePlugin&) = delete;
  InsidePlugin& operator=(const InsidePlugin&) = delete;

 private:
  Sanitizer* sanitizer_;
};

}  // namespace dapple::soft
