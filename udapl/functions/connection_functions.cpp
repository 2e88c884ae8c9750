// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/connect_arguments.hpp"
#include "udapl/functions/functions.hpp"
#include "udapl/functions/peer_address.hpp"

namespace dapple::udapl::functions {

DAT_RETURN ep_connect(Ep& ep, DAT_IA_ADDRESS_PTR remote_address, DAT_CONN_QUAL conn_qual, DAT_TIMEOUT timeout,
                      DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos, DAT_CONNECT_FLAGS flags) {
  if (!remote_address) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (conn_qual == 0) return wrong_argument(DAT_INVALID_ARG3, "no service point can have this qualifier");
  if (auto status = check_timeout(timeout, DAT_INVALID_ARG4)) return status;
  if (auto status = check_private_data(private_data_size, private_data, Connection::kMaxConnectData, DAT_INVALID_ARG5))
    return status;
  if (auto status = check_qos(qos, DAT_INVALID_ARG7)) return status;
  if (auto status = check_connect_flags(flags, DAT_INVALID_ARG8)) return status;
  const verbs::SocketAddress peer = peer_address(*remote_address);
  return controlled(
      [&] { return ep.connect(peer.get(), conn_qual, timeout, to_span(private_data, private_data_size)); },
      {{Subtype::kPrivateData, DAT_INVALID_ARG5}});
}

// Connects to the address and the qualifier to which another EP is connected.
DAT_RETURN ep_dup_connect(Ep& ep, DAT_EP_HANDLE dup_handle, DAT_TIMEOUT timeout, DAT_COUNT size,
                          const DAT_PVOID private_data, DAT_QOS qos) {
  const auto* dup = find_object<Ep>(dup_handle, ep.ia());
  if (!dup) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  if (auto status = check_timeout(timeout, DAT_INVALID_ARG3)) return status;
  if (auto status = check_private_data(size, private_data, Connection::kMaxConnectData, DAT_INVALID_ARG4))
    return status;
  if (auto status = check_qos(qos, DAT_INVALID_ARG6)) return status;
  return controlled(
      [&] {
        if (auto connected = dup->check_state(EpState::kConnected); !connected) return connected;
        return ep.connect(dup->connection().remote_address(), dup->connection().remote_port(), timeout,
                          to_span(private_data, size));
      },
      {{Subtype::kPrivateData, DAT_INVALID_ARG4}});
}

DAT_RETURN cr_query(Cr& cr, DAT_CR_PARAM_MASK, DAT_CR_PARAM* param) {
  // Consumers pass the mask of another object here, so the mask is ignored and every field is filled.
  if (!param) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  param->remote_ia_address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(cr.remote_address());
  param->remote_port_qual = cr.remote_port();
  param->private_data_size = static_cast<DAT_COUNT>(cr.private_data().size());
  param->private_data = const_cast<uint8_t*>(cr.private_data().data());
  param->local_ep_handle = cr.local_ep();
  return DAT_SUCCESS;
}

DAT_RETURN cr_accept(Cr& cr, DAT_EP_HANDLE ep_handle, DAT_COUNT size, const DAT_PVOID private_data) {
  Ep* ep = nullptr;
  if (!find_optional(ep_handle, cr.ia(), ep)) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  if (auto status = check_private_data(size, private_data, Connection::kMaxAcceptData, DAT_INVALID_ARG3)) return status;
  return controlled([&] { return cr.accept(ep, to_span(private_data, size)); },
                    {{Subtype::kPrivateData, DAT_INVALID_ARG3}});
}

DAT_RETURN cr_handoff(Cr& cr, DAT_CONN_QUAL handoff) {
  // DEVIATION uDAPL 2.0 6.4.3.4: only a service point of the same process can take over. rdma_cm moves a request
  // between event channels, which are a process's own.
  return controlled([&] { return cr.hand_off(handoff); }, {{Subtype::kConnQual, DAT_INVALID_ARG2}});
}

}  // namespace dapple::udapl::functions
