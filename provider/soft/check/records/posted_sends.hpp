// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The send requests that a queue pair got last: the stacks of their posts, and the bytes that their buffers had then.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/lent/buffer_copy.hpp"
#include "provider/soft/check/lent/short_list.hpp"
#include "provider/soft/check/reports/stack.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft::check {

using Segments = ShortList<roce::Segment, 2>;

struct PostedSend {
  uint64_t number = 0;  // add() gives it
  KnownStack stack;
  Segments segments;
  bool has_result = false;   // the segments are for the result of a Read or an atomic
  uint64_t sent = 0;         // bytes that the device has taken
  bool overwritten = false;  // the device has stored there since
  SharedCopy copy;
};

// Internally locked; the lock is a leaf.
class PostedSends {
 public:
  explicit PostedSends(size_t depth) : most_(depth) {}
  PostedSends(const PostedSends&) = delete;
  PostedSends& operator=(const PostedSends&) = delete;

  static constexpr uint64_t kNone = UINT64_MAX;  // no number

  // Before the device gets it. Returns its number, for was_taken() or remove() after the post.
  uint64_t add(PostedSend send);
  // The copy of a buffer is made after add(), so that the device cannot store there unnoticed meanwhile.
  void keep(uint64_t number, SharedCopy copy);
  // The device has taken it. Of those, only the last `depth` are kept: the device can have no older one.
  void was_taken();
  // The device has refused it.
  void remove(uint64_t number);
  // The queue pair starts again, with no request.
  void clear();

  // The request that waits to send the byte at `offset` of these segments. None if it has been sent before: then the
  // device sends it again.
  std::optional<Stack> waiting(std::span<const roce::Segment> segments, uint64_t offset);
  // That request sends these bytes. Returns the change of its buffer since the post, if there is one.
  struct Change {
    uint64_t at;  // the place in the message of the first byte that differs
    Stack posted;
  };
  std::optional<Change> take(std::span<const roce::Segment> segments, uint64_t offset, const std::byte* bytes,
                             size_t size);
  // The latest request whose result comes into these segments.
  std::optional<Stack> with_result(std::span<const roce::Segment> segments);

  // False if no request of the process waits to send bytes. A request counts before the copy of its buffer is made.
  static bool any_waits() { return all_waiting_.load() != 0; }
  // The device has written there itself, so a copy of these bytes proves nothing.
  void overwritten(const std::byte* memory, size_t size);

  // The program posts a request with this id to its queue pair, which is in error and only flushes it. True if the
  // thread should know that: it has polled the flushes of kFlushesToNotice requests which were posted in this way, each
  // after the poll of the one before. The others may have been posted before the program knew of the error.
  bool add_in_error(uint32_t qpn, uint64_t id);
  // The thread polls a request of this queue pair, which is flushed.
  void polled_flush(uint32_t qpn, uint64_t id);
  // A program may post one request to a queue pair in error to see the end of those before it.
  static constexpr unsigned kFlushesToNotice = 2;

  Mutex& mutex() { return mutex_; }

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  static bool is_done(const PostedSend& send);
  static void forget(const PostedSend& send);
  PostedSend* waiting_at(std::span<const roce::Segment> segments, uint64_t offset);

  static inline std::atomic<size_t> all_waiting_{0};

  Mutex mutex_{LockRank::kPostedSends};
  const size_t most_;
  uint64_t next_number_ = 0;
  std::deque<PostedSend> sends_;
  size_t in_post_ = 0;  // requests of which the device has not yet said whether it takes them
  size_t done_ = 0;     // the first so many have sent all their bytes, or have none to send
  uint32_t qpn_in_error_ = 0;
  struct InError {
    uint64_t id;
    unsigned flushes_before;  // polled_flushes_ at the post
  };
  std::deque<InError> in_error_;  // the last requests that were posted in error and are not polled
  pthread_t flushes_polled_by_ = {};
  unsigned polled_flushes_ = 0;  // by this thread, the last one that has polled any
};

}  // namespace dapple::soft::check
