// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <linux/capability.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dapple::tests {

// Sets or clears CAP_NET_RAW among this thread's effective capabilities.
inline bool set_privilege(bool has) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  constexpr uint32_t kBit = 1u << CAP_NET_RAW;
  data[0].effective = has ? data[0].effective | kBit : data[0].effective & ~kBit;
  return syscall(SYS_capset, &header, data) == 0;
}

}  // namespace dapple::tests
