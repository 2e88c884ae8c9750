// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <unistd.h>

#include <utility>

#include "provider/system/doors.hpp"

namespace dapple::soft {

// A descriptor that is closed with its owner.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~OwnedFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) close_own(fd_);
    fd_ = fd;
  }
  // Moves it out of the program's way, in a program that has the doors (doors.hpp). It then has another number.
  void hide() {
    if (fd_ >= 0) fd_ = hide_own(fd_);
  }

 private:
  int fd_ = -1;
};

}  // namespace dapple::soft
