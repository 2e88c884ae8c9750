// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <dat/udat.h>

#include "udapl/common/table_mark.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/event.hpp"
#include "udapl/core/memory/lmr.hpp"
#include "udapl/core/memory/rmr.hpp"
#include "udapl/functions/convert.hpp"

namespace dapple::udapl::functions {

inline constexpr uintptr_t kTableMark = common::kTableMark12;

// IA handles are pointers, as all other handles are.
inline DAT_IA_HANDLE consumer_handle(Ia& ia) noexcept {
  return &ia;
}

// Errors and kinds of handles that only 2.0 names; only 2.0's functions cause them.
inline constexpr DAT_RETURN_TYPE kPortInUse = DAT_CONN_QUAL_IN_USE;
inline constexpr DAT_RETURN_TYPE kCommNotSupported = DAT_MODEL_NOT_SUPPORTED;
inline constexpr DAT_HANDLE_TYPE kCspHandle = DAT_HANDLE_TYPE_PSP;
inline constexpr DAT_HANDLE_TYPE kOtherHandle = DAT_HANDLE_TYPE_IA;

inline constexpr int kEvdStreams = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG;

inline bool to_service(DAT_SERVICE_TYPE type, bool& datagrams) noexcept {
  datagrams = false;
  return type == DAT_SERVICE_TYPE_RC;
}

inline DAT_SERVICE_TYPE to_dat_service(bool) noexcept {
  return DAT_SERVICE_TYPE_RC;
}

// Both originals fill in every field and never look at the mask; programs pass 0xFFFF.
inline bool is_ep_query_mask(DAT_EP_PARAM_MASK) noexcept {
  return true;
}

// In 1.2 the flag only asks for several paths. One path is a correct answer.
inline DAT_RETURN check_connect_flags(DAT_CONNECT_FLAGS flags, DAT_RETURN_SUBTYPE argument) noexcept {
  return flags & ~int{DAT_CONNECT_MULTIPATH_FLAG} ? wrong_argument(argument, "it has unknown flags") : kSuccess;
}

inline void fill_of_version(const Ia&, DAT_IA_ATTR&) noexcept {}
inline void fill_of_version(const Ia&, DAT_PROVIDER_ATTR&) noexcept {}
inline void fill_of_version(const Lmr& lmr, DAT_LMR_PARAM& param) noexcept {
  const int flag = lmr.attr().disables_reordering ? DAT_MEM_PRIV_RO_DISABLE_FLAG : 0;
  param.mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(param.mem_priv | flag);
}
inline void fill_scope(const Rmr&, const Binding&, DAT_RMR_PARAM&) noexcept {}
inline void fill_comm(const Ep&, DAT_EP_PARAM&) noexcept {}

inline Comm changed_comm(const Ep& ep, DAT_EP_PARAM_MASK, const DAT_EP_PARAM&) noexcept {
  return ep.comm();
}

inline void fill_operation(DAT_DTO_COMPLETION_EVENT_DATA&, DtoOperation, uint32_t) noexcept {}

inline void fill_truncation(DAT_CR_ARRIVAL_EVENT_DATA&) noexcept {}

// 1.2 has no extensions, and so no endpoint or DTO that could cause their events.
inline void extend_completion(const DtoCompletion&, DAT_EVENT&) noexcept {}
inline void extend_request(DAT_EVENT&) noexcept {}
inline void fill_datagrams(const Event&, DAT_EVENT&) noexcept {}

}  // namespace dapple::udapl::functions
