// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/address.hpp"

#include <netdb.h>

#include <cerrno>

#include "ibverbs-glue/no_cancel.hpp"
#include "rpma/common/export.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/refusal.hpp"
#include "rpma/memory/peer.hpp"

namespace dapple::rpma {

Address find_address(const char* node, const char* port, Side side) noexcept {
  rdma_addrinfo hints{};
  rdma_addrinfo* found = nullptr;
  if (side == Side::kPassive) hints.ai_flags = RAI_PASSIVE;
  hints.ai_qp_type = IBV_QPT_RC;
  hints.ai_port_space = RDMA_PS_TCP;
  if (const int error = rdma_getaddrinfo(node, port, &hints, &found)) {
    char buffer[128];
    const bool by_errno = error == -1 || error == EAI_SYSTEM;
    LOG(ERROR, "no address for %s, port %s: %s", node, port ? port : "any",
        by_errno ? strerror_r(errno, buffer, sizeof buffer) : gai_strerror(error));
    return nullptr;
  }
  return Address(found);
}

namespace {

// The result of a function in which a call about addr failed with this errno value. Without a device the value alone
// would not tell the user what to do.
int no_context(const char* call, const char* addr, int error) noexcept {
  if (error != ENODEV && error != ENOENT && error != ENOSYS) return FAILED(call, error);
  LOG(ERROR, "%s() failed: no RDMA device serves %s; dapple-run runs a program with a software device", call, addr);
  return refuse(in_a_line("rpma_utils_get_ibv_context"), RPMA_E_PROVIDER,
                "no RDMA device serves %s.\nPass an address that is on a device.", addr);
}

}  // namespace
}  // namespace dapple::rpma

using namespace dapple::rpma;

RPMA_EXPORT int rpma_utils_get_ibv_context(const char* addr, rpma_util_ibv_context_type type,
                                           ibv_context** ibv_ctx_ptr) {
  const bool local = static_cast<int>(type) == RPMA_UTIL_IBV_CONTEXT_LOCAL;
  if (!addr || !ibv_ctx_ptr) return refuse_null(__func__, {NAMED(addr), NAMED(ibv_ctx_ptr)});
  if (!local && static_cast<int>(type) != RPMA_UTIL_IBV_CONTEXT_REMOTE) {
    return refuse(__func__, RPMA_E_INVAL,
                  "type is %d.\nPass RPMA_UTIL_IBV_CONTEXT_LOCAL or RPMA_UTIL_IBV_CONTEXT_REMOTE.",
                  static_cast<int>(type));
  }
  const dapple::NoCancel whole;
  const Address address = find_address(addr, nullptr, local ? Side::kPassive : Side::kActive);
  if (!address) return RPMA_E_PROVIDER;  // no refusal: rdma_getaddrinfo() has its report
  dapple::verbs::CmId id = dapple::verbs::create_cm_id(nullptr, nullptr);
  if (!id) return no_context("rdma_create_id", addr, errno);
  if (local) {
    if (rdma_bind_addr(id.get(), address->ai_src_addr)) return no_context("rdma_bind_addr", addr, errno);
    if (!id->verbs) id = dapple::verbs::loopback_device_id(address->ai_src_addr);
  } else if (rdma_resolve_addr(id.get(), address->ai_src_addr, address->ai_dst_addr, RPMA_DEFAULT_TIMEOUT_MS)) {
    return no_context("rdma_resolve_addr", addr, errno);
  }
  if (!id || !id->verbs) {
    LOG(ERROR, "no single device has the address %s", addr);
    return refuse(in_a_line(__func__), RPMA_E_PROVIDER,
                  "no device, or more than one, has the address %s.\nPass another address of this machine.", addr);
  }
  *ibv_ctx_ptr = id->verbs;
  return 0;
}

RPMA_EXPORT int rpma_utils_ibv_context_is_odp_capable(ibv_context* ibv_ctx, int* is_odp_capable) {
  if (!ibv_ctx || !is_odp_capable) return refuse_null(__func__, {NAMED(ibv_ctx), NAMED(is_odp_capable)});
  const dapple::NoCancel whole;
  ibv_device_attr_ex attr{};
  if (const int error = ibv_query_device_ex(ibv_ctx, nullptr, &attr)) return FAILED("ibv_query_device_ex", error);
  const bool capable =
      dapple::rpma::is_odp_capable(attr.odp_caps.general_caps, attr.odp_caps.per_transport_caps.rc_odp_caps);
  *is_odp_capable = capable ? 1 : 0;
  return 0;
}
