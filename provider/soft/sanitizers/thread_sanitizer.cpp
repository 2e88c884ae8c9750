// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/sanitizers/thread_sanitizer.hpp"

#include "provider/soft/memory/tsan_ignore.hpp"
#include "provider/soft/sanitizers/announced_peers.hpp"
#include "provider/soft/sanitizers/program_function.hpp"

namespace dapple::soft {
namespace {

constexpr unsigned kWithoutSync = 1;  // __tsan_switch_to_fiber_no_sync

[[gnu::tls_model("initial-exec")]] thread_local constinit unsigned depth = 0;

}  // namespace

ThreadSanitizer* ThreadSanitizer::of_program() {
#ifdef DAPPLE_HAS_TSAN
  // A plug-in that was built with it shows its own races.
  return nullptr;
#endif
  static ThreadSanitizer made;
  static const bool there =
      find_in_program("__tsan_acquire", made.acquire_) && find_in_program("__tsan_release", made.release_) &&
      find_in_program("__tsan_read_range_pc", made.read_range_pc_) &&
      find_in_program("__tsan_write_range_pc", made.write_range_pc_) &&
      find_in_program("__tsan_func_entry", made.func_entry_) && find_in_program("__tsan_func_exit", made.func_exit_) &&
      find_in_program("__tsan_get_current_fiber", made.current_fiber_) &&
      find_in_program("__tsan_create_fiber", made.create_fiber_) &&
      find_in_program("__tsan_switch_to_fiber", made.switch_to_fiber_) &&
      find_in_program("__tsan_set_fiber_name", made.set_fiber_name_) &&
      find_in_program("AnnotateIgnoreReadsBegin", made.reads_begin_) &&
      find_in_program("AnnotateIgnoreReadsEnd", made.reads_end_) &&
      find_in_program("AnnotateIgnoreWritesBegin", made.writes_begin_) &&
      find_in_program("AnnotateIgnoreWritesEnd", made.writes_end_) &&
      find_in_program("AnnotateIgnoreSyncBegin", made.sync_begin_) &&
      find_in_program("AnnotateIgnoreSyncEnd", made.sync_end_);
  [[maybe_unused]] static const bool has_atomics = find_in_program("__tsan_atomic64_fetch_add", made.fetch_add_);
  return there ? &made : nullptr;
}

// The memory of the program's own requests is announced at their posts, and a peer's atomics by the check.
void ThreadSanitizer::before(const DeviceAccess& access, const void* memory, size_t size) {
  if (!access.by_peer || access.kind == DeviceAccess::Kind::kUpdate) return;
  AnnouncedPeers* peers = AnnouncedPeers::get();
  if (peers == nullptr) return;
  peers->access(access.who.qpn, const_cast<void*>(memory), size, access.kind == DeviceAccess::Kind::kWrite);
}

void ThreadSanitizer::enter_plugin() {
  if (depth++ != 0) return;
  reads_begin_(__FILE__, __LINE__);
  writes_begin_(__FILE__, __LINE__);
  sync_begin_(__FILE__, __LINE__);
}

void ThreadSanitizer::leave_plugin() {
  if (--depth != 0) return;
  sync_end_(__FILE__, __LINE__);
  writes_end_(__FILE__, __LINE__);
  reads_end_(__FILE__, __LINE__);
}

ThreadSanitizer::On::On(const ThreadSanitizer& sanitizer, Fiber fiber, std::span<void* const> callers)
    : sanitizer_(sanitizer), thread_(sanitizer.current_fiber_()), depth_(callers.size()) {
  sanitizer_.switch_to_fiber_(fiber, kWithoutSync);
  for (size_t i = callers.size(); i-- > 0;) sanitizer_.func_entry_(callers[i]);
}

ThreadSanitizer::On::~On() {
  for (size_t i = 0; i < depth_; ++i) sanitizer_.func_exit_();
  sanitizer_.switch_to_fiber_(thread_, kWithoutSync);
}

}  // namespace dapple::soft
