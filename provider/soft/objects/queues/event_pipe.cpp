// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/queues/event_pipe.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cassert>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/system/doors.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft {
namespace {

constexpr size_t kMaxMessage = 16;
constexpr size_t kPagesOfNewPipe = 16;
// By default the kernel allows a user without privileges no larger pipe.
constexpr size_t kLargestPipe = 1024 * 1024;

// Reads one message if there is one. The program's end blocks, and the program may read at the same time, so this reads
// from its own open file description. Without /proc it has none.
class QuietReader {
 public:
  explicit QuietReader(int reader) : reader_(reader) {
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", reader);
    own_.reset(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  bool read_one(void* message, size_t size) {
    if (own_) return read(own_.get(), message, size) == static_cast<ssize_t>(size);
    pollfd waiting = {reader_, POLLIN, 0};
    return poll(&waiting, 1, 0) == 1 && read(reader_, message, size) == static_cast<ssize_t>(size);
  }

 private:
  int reader_;
  OwnedFd own_;
};

}  // namespace

EventPipes::EventPipes()
    : kept_bytes_(kPagesOfNewPipe * static_cast<size_t>(sysconf(_SC_PAGESIZE))),
      kept_(new (std::nothrow) unsigned char[kept_bytes_]) {}

// Doubles the pipe.
bool EventPipes::grow(int writer) {
  assert_held(mutex_);
  const int now = fcntl(writer, F_GETPIPE_SZ);
  const size_t wanted = 2 * static_cast<size_t>(now);
  if (now <= 0 || wanted > kLargestPipe) return false;
  if (wanted > kept_bytes_) {
    std::unique_ptr<unsigned char[]> kept(new (std::nothrow) unsigned char[wanted]);
    if (kept == nullptr) return false;
    kept_ = std::move(kept);
    kept_bytes_ = wanted;
  }
  return fcntl(writer, F_SETPIPE_SZ, static_cast<int>(wanted)) > now;
}

void EventPipes::write(const int& writer, const void* message, size_t size, EventCount& count) {
  const CancelGuard whole;
  const std::lock_guard lock(mutex_);
  while (::write(writer, message, size) != static_cast<ssize_t>(size)) {
    if (errno != EAGAIN || !grow(writer)) return;
  }
  ++count.written;
}

void EventPipes::remove(int reader, int writer, size_t size, uint64_t object, EventCount& count) {
  const CancelGuard whole;
  const std::lock_guard lock(mutex_);
  assert(sizeof object <= size && size <= kMaxMessage);
  if (count.written == 0) return;
  unsigned char message[kMaxMessage];
  size_t kept_count = 0;
  QuietReader quiet(reader);
  while ((kept_count + 1) * size <= kept_bytes_ && quiet.read_one(message, size)) {
    if (memcmp(message, &object, sizeof(object)) == 0) {
      assert(count.written > 0);
      --count.written;
    } else {
      memcpy(&kept_[kept_count++ * size], message, size);
    }
  }
  for (size_t i = 0; i < kept_count; ++i) {
    // There was room for it a moment ago.
    if (::write(writer, &kept_[i * size], size) < 0) break;
  }
}

void EventPipes::close(int& writer) {
  const CancelGuard whole;
  const std::lock_guard lock(mutex_);
  assert(writer >= 0);
  close_own(writer);
  writer = -1;
}

void wait_for_acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& condition, const uint32_t& acknowledged,
                               const EventCount& count) {
  const CancelGuard whole;
  pthread_mutex_lock(&mutex);
  while (acknowledged != count.written) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
}

}  // namespace dapple::soft
