// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The capabilities that a device reports. The bits of device_cap_flags_ex are defined here, because headers may be
// older than the device's driver library.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

namespace dapple::verbs {

inline constexpr uint64_t kDeviceFlushGlobal = uint64_t{1} << 38;
inline constexpr uint64_t kDeviceFlushPersistent = uint64_t{1} << 39;
inline constexpr uint64_t kDeviceAtomicWrite = uint64_t{1} << 40;

// Empty if this context cannot query, or if the device does not answer.
inline std::optional<ibv_device_attr_ex> query_capabilities(ibv_context* context) {
  const verbs_context* verbs = verbs_get_ctx_op(context, query_device_ex);
  ibv_device_attr_ex found{};
  if (!verbs || verbs->query_device_ex(context, nullptr, &found, sizeof found) != 0) return std::nullopt;
  return found;
}

// A driver without windows may set the flag although it supports none.
inline bool has_windows(const ibv_device_attr& device, unsigned int type) {
  return device.max_mw > 0 && (device.device_cap_flags & type) != 0;
}

}  // namespace dapple::verbs
