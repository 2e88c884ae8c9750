// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/capabilities.hpp"

namespace dapple::provider {
namespace {

// Bits of device_cap_flags_ex. Headers older than the device's library lack their names, so they stand here.
constexpr uint64_t kFlushGlobal = uint64_t{1} << 38;
constexpr uint64_t kFlushPersistent = uint64_t{1} << 39;
constexpr uint64_t kAtomicWrite = uint64_t{1} << 40;

uint8_t answer(bool yes) {
  return yes ? DAPPLEDV_ANSWER_YES : DAPPLEDV_ANSWER_NO;
}

}  // namespace

bool query_capabilities(ibv_context* context, ibv_device_attr_ex& capabilities) {
  const verbs_context* verbs = verbs_get_ctx_op(context, query_device_ex);
  if (verbs == nullptr) return false;
  ibv_device_attr_ex found = {};
  if (verbs->query_device_ex(context, nullptr, &found, sizeof(found)) != 0) return false;
  capabilities = found;
  return true;
}

void fill_capabilities(const ibv_device_attr_ex* capabilities, dappledv_device_attr& attr) {
  attr.atomic_write = attr.flush_visibility = attr.flush_persistence = DAPPLEDV_ANSWER_UNKNOWN;
  attr.on_demand_paging = DAPPLEDV_ANSWER_UNKNOWN;
  attr.window_type_1 = attr.window_type_2a = attr.window_type_2b = DAPPLEDV_ANSWER_UNKNOWN;
  attr.max_windows = 0;
  attr.odp_general_caps = 0;
  attr.odp_rc_caps = attr.odp_uc_caps = attr.odp_ud_caps = attr.odp_xrc_caps = 0;
  if (capabilities == nullptr) return;

  const ibv_device_attr& base = capabilities->orig_attr;
  const uint64_t flags = capabilities->device_cap_flags_ex;
  attr.atomic_write = answer(flags & kAtomicWrite);
  attr.flush_visibility = answer(flags & kFlushGlobal);
  attr.flush_persistence = answer(flags & kFlushPersistent);

  // A driver without windows may leave the flag set: it has none to give.
  const bool windows = base.max_mw > 0;
  attr.window_type_1 = answer(windows && base.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
  attr.window_type_2a = answer(windows && base.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A);
  attr.window_type_2b = answer(windows && base.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
  attr.max_windows = windows ? static_cast<uint32_t>(base.max_mw) : 0;

  attr.on_demand_paging = answer(capabilities->odp_caps.general_caps & IBV_ODP_SUPPORT);
  attr.odp_general_caps = capabilities->odp_caps.general_caps;
  attr.odp_rc_caps = capabilities->odp_caps.per_transport_caps.rc_odp_caps;
  attr.odp_uc_caps = capabilities->odp_caps.per_transport_caps.uc_odp_caps;
  attr.odp_ud_caps = capabilities->odp_caps.per_transport_caps.ud_odp_caps;
  attr.odp_xrc_caps = capabilities->xrc_odp_caps;
}

}  // namespace dapple::provider
