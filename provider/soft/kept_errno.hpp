// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_KEPT_ERRNO_HPP
#define DAPPLE_PROVIDER_SOFT_KEPT_ERRNO_HPP

#include <errno.h>

namespace dapple::soft {

// At its end errno is as it was at its begin.
class KeptErrno {
 public:
  KeptErrno() : errno_(errno) {}
  ~KeptErrno() { errno = errno_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  const int errno_;
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_KEPT_ERRNO_HPP
