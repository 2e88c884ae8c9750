// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <dat2/dat_ib_extensions.h>
#include <dat2/udat.h>

#include "udapl/common/table_mark.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/events/event.hpp"
#include "udapl/core/memory/lmr.hpp"
#include "udapl/core/memory/rmr.hpp"
#include "udapl/functions/convert.hpp"

// The registry's functions that convert an IA's pointer to the consumer's small integer, and back.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* ia_handle);

namespace dapple::udapl::functions {

inline constexpr uintptr_t kTableMark = common::kTableMark20;

inline DAT_IA_HANDLE consumer_handle(Ia& ia) noexcept {
  DAT_IA_HANDLE handle = DAT_HANDLE_NULL;
  if (dats_get_ia_handle(reinterpret_cast<DAT_IA_HANDLE>(&ia), &handle) != DAT_SUCCESS) return DAT_HANDLE_NULL;
  return handle;
}

// Errors and kinds of handles that 1.2 does not name.
inline constexpr DAT_RETURN_TYPE kPortInUse = DAT_PORT_IN_USE;
inline constexpr DAT_RETURN_TYPE kCommNotSupported = DAT_COMM_NOT_SUPPORTED;
inline constexpr DAT_HANDLE_TYPE kCspHandle = DAT_HANDLE_TYPE_CSP;
inline constexpr DAT_HANDLE_TYPE kOtherHandle = DAT_HANDLE_TYPE_EXTENSION_BASE;

// Extension events arrive with the other events of their streams, requested or not.
static_assert(int{DAT_IB_EVD_EXTENSION_FLAG} == int{kEvdExtension});
inline constexpr int kEvdStreams = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG | DAT_IB_EVD_EXTENSION_FLAG;

// False for a service that does not exist.
inline bool to_service(DAT_SERVICE_TYPE type, bool& datagrams) noexcept {
  datagrams = static_cast<int>(type) == int{DAT_IB_SERVICE_TYPE_UD};
  return datagrams || type == DAT_SERVICE_TYPE_RC;
}

inline DAT_SERVICE_TYPE to_dat_service(bool datagrams) noexcept {
  return datagrams ? static_cast<DAT_SERVICE_TYPE>(DAT_IB_SERVICE_TYPE_UD) : DAT_SERVICE_TYPE_RC;
}

inline bool is_ep_query_mask(DAT_EP_PARAM_MASK mask) noexcept {
  return !(mask & ~DAT_EP_FIELD_ALL);
}

// argument: the number of the flags in the argument list.
inline DAT_RETURN check_connect_flags(DAT_CONNECT_FLAGS flags, DAT_RETURN_SUBTYPE argument) noexcept {
  constexpr int kMultipath = DAT_CONNECT_MULTIPATH_REQUESTED_FLAG | DAT_CONNECT_MULTIPATH_REQUIRED_FLAG;
  if (flags & ~kMultipath) return wrong_argument(argument, "it has unknown flags");
  return flags & DAT_CONNECT_MULTIPATH_REQUIRED_FLAG ? error(DAT_MODEL_NOT_SUPPORTED) : kSuccess;
}

// Fields of attributes and of queries that only 2.0 has.
void fill_of_version(const Ia& ia, DAT_IA_ATTR& attr) noexcept;
void fill_of_version(const Ia& ia, DAT_PROVIDER_ATTR& attr) noexcept;
inline void fill_of_version(const Lmr& lmr, DAT_LMR_PARAM& param) noexcept {
  param.va_type = lmr.attr().zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
}
inline void fill_scope(const Rmr& rmr, const Binding& binding, DAT_RMR_PARAM& param) noexcept {
  param.rmr_scope = rmr.for_ep() ? DAT_RMR_SCOPE_EP : DAT_RMR_SCOPE_PZ;
  if (binding.lmr) param.va_type = binding.zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
}
inline void fill_comm(const Ep& ep, DAT_EP_PARAM& param) noexcept {
  param.comm = {ep.comm().domain, ep.comm().type, ep.comm().protocol};
}

// The result of dat_ep_modify for an EP's comm.
inline Comm changed_comm(const Ep& ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM& param) noexcept {
  if (!(mask & DAT_EP_FIELD_COMM)) return ep.comm();
  return {param.comm.domain, param.comm.type, param.comm.protocol};
}

// Fields of a completion's event that only 2.0 has.
inline void fill_operation(DAT_DTO_COMPLETION_EVENT_DATA& data, DtoOperation operation, uint32_t rmr_context) noexcept {
  data.operation = static_cast<DAT_DTOS>(operation);
  data.rmr_context = rmr_context;
}

inline void fill_truncation(DAT_CR_ARRIVAL_EVENT_DATA& data) noexcept {
  data.truncate_flag = DAT_FALSE;
}

// Events of extensions: the fields that extend or replace those of the core's kind.
void extend_completion(const DtoCompletion& dto, DAT_EVENT& out) noexcept;
void extend_request(DAT_EVENT& out) noexcept;
void fill_datagrams(const Event& event, DAT_EVENT& out) noexcept;

}  // namespace dapple::udapl::functions
