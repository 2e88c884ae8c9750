// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/placement/placers.hpp"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>

#include "provider/common/clock.hpp"
#include "provider/common/host_guards.hpp"

namespace dapple::soft {
namespace {

constexpr uint32_t kSpins = 1000;
constexpr long kNapNs = 200'000;
constexpr uint64_t kYieldingNs = 1'000'000;
constexpr uint64_t kSayEveryNs = 1'000'000'000;

bool uses(const Placer& placer, const AnnouncedEntry& entry) {
  const Announcement* words = placer.memory.control().announcements;
  return std::any_of(words, words + kAnnouncements, [&](const Announcement& word) { return entry.is_in(word); });
}

bool has_ended(const Placer& placer) {
  pollfd end = {placer.socket.get(), POLLRDHUP, 0};
  return poll(&end, 1, 0) > 0;
}

void say(const Placer& placer) {
  char line[160];
  const int length = placer.process > 0
                         ? snprintf(line, sizeof line,
                                    "dapple: process %d has stopped during a transfer to or from the memory of this "
                                    "program, which waits for it\n",
                                    placer.process)
                         : snprintf(line, sizeof line,
                                    "dapple: a process of another container has stopped during a transfer to or from "
                                    "the memory of this program, which waits for it\n");
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, static_cast<size_t>(length));
}

// False if the process still uses the entry when `most_ns` have passed since `start`. `start`: 0 before the first look
// at the clock.
bool await_end_of_use(const Placer& placer, const AnnouncedEntry& entry, uint64_t& start, uint64_t most_ns) {
  for (uint32_t spins = 0; spins < kSpins; spins++) {
    if (!uses(placer, entry)) return true;
  }
  const uint64_t begin = now_ns();
  if (start == 0) start = begin;
  uint64_t said = begin;
  while (uses(placer, entry) && !has_ended(placer)) {
    const uint64_t time = now_ns();
    if (time - start >= most_ns) return false;
    if (time - begin < kYieldingNs) {
      // The copying process may need this CPU.
      sched_yield();
      continue;
    }
    const timespec nap = {0, kNapNs};
    nanosleep(&nap, nullptr);
    if (time - said < kSayEveryNs) continue;
    said = time;
    say(placer);
  }
  return true;
}

}  // namespace

bool Placers::add(Placer& placer) {
  const std::lock_guard lock(mutex_);
  assert(std::find(placers_, placers_ + end_, &placer) == placers_ + end_);
  Placer** const free = std::find(placers_, placers_ + kMaxSlots, nullptr);
  if (free == placers_ + kMaxSlots) return false;
  *free = &placer;
  end_ = std::max(end_, static_cast<uint32_t>(free - placers_) + 1);
  return true;
}

void Placers::remove(Placer& placer) {
  const std::lock_guard lock(mutex_);
  std::replace(placers_, placers_ + end_, &placer, static_cast<Placer*>(nullptr));
  while (end_ > 0 && placers_[end_ - 1] == nullptr) end_--;
  assert(std::all_of(placers_ + end_, placers_ + kMaxSlots, [](const Placer* each) { return each == nullptr; }));
}

// The next one from `place` on that uses the entry. The caller lets it go.
Placer* Placers::take_user(uint32_t& place, const AnnouncedEntry& entry) {
  const std::lock_guard lock(mutex_);
  for (; place < end_; place++) {
    Placer* placer = placers_[place];
    if (placer == nullptr || !uses(*placer, entry)) continue;
    place++;
    placer->use();
    return placer;
  }
  return nullptr;
}

// A process that comes meanwhile finds the entry dead.
bool Placers::await_end_of(const AnnouncedEntry& entry, uint64_t most_ns) {
  uint32_t place = 0;
  uint64_t start = 0;
  while (Placer* placer = take_user(place, entry)) {
    const CancelGuard whole;
    const bool is_over = await_end_of_use(*placer, entry, start, most_ns);
    placer->let_go();
    if (!is_over) return false;
  }
  return true;
}

}  // namespace dapple::soft
