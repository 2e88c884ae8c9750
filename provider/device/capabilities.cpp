// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/capabilities.hpp"

#include <stdint.h>

namespace dapple::provider {
namespace {

// A bit of device_cap_flags_ex: IBV_DEVICE_CC_DMA_BOUNCE. Headers older than the device's library lack its name.
constexpr uint64_t kDmaBounce = uint64_t{1} << 41;

}  // namespace

bool bounces_dma(ibv_context* context) {
  const verbs_context* verbs = verbs_get_ctx_op(context, query_device_ex);
  if (verbs == nullptr) return false;
  ibv_device_attr_ex found = {};
  return verbs->query_device_ex(context, nullptr, &found, sizeof(found)) == 0 &&
         (found.device_cap_flags_ex & kDmaBounce) != 0;
}

}  // namespace dapple::provider
