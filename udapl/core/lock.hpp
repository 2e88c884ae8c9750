// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <mutex>

namespace dapple::dat {

// A mutex that costs a predictable branch on an IA that was not opened thread-safe, where the consumer serializes.
class OptionalMutex {
 public:
  explicit OptionalMutex(bool enabled) : enabled_(enabled) {}
  bool enabled() const { return enabled_; }
  void lock() {
    if (enabled_) mutex_.lock();
  }
  void unlock() {
    if (enabled_) mutex_.unlock();
  }

 private:
  const bool enabled_;
  std::mutex mutex_;
};

// Guards the life cycle and the connection state of all objects: creation, destruction, reference counts, connecting
// and disconnecting. Never taken by posting, polling or waiting.
//
// Order of locks: control mutex, then an IA's for binding windows, then an Ep's data path mutex, then an Evd's, then an
// Evd's software queue.
std::mutex& control_mutex();

}  // namespace dapple::dat
