// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// A descriptor for the time when none is left (EMFILE, ENFILE). Without it a listener could not even refuse a
// connection: the connection would wait, and wake the listener all the time. One thread.
class SpareDescriptor {
 public:
  // Does nothing if there is one.
  void keep() {
    if (spare_) return;
    spare_.reset(eventfd(0, EFD_CLOEXEC));
    spare_.hide();
  }
  void reset() { spare_.reset(); }
  // False if another thread has taken the last descriptor.
  explicit operator bool() const { return static_cast<bool>(spare_); }

  // Accepts one connection with the spare descriptor, passes its socket to `refuse`, closes it, and keeps a spare one
  // again. 0, or the errno of accept4(): EAGAIN if no connection waits, because the kernel takes a descriptor before it
  // looks into the queue.
  template <class Refuse>
  int refuse_one(int listener, Refuse&& refuse) {
    spare_.reset();
    OwnedFd socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const int error = socket ? 0 : errno;
    if (socket) refuse(socket);
    socket.reset();
    keep();
    return error;
  }

 private:
  OwnedFd spare_;
};

}  // namespace dapple::soft
