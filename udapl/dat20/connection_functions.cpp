// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/connect_arguments.hpp"
#include "udapl/functions/functions.hpp"
#include "udapl/functions/peer_address.hpp"

namespace dapple::udapl::functions {

// Connects to a socket address, which includes the port, over the EP's comm.
DAT_RETURN ep_common_connect(Ep& ep, DAT_IA_ADDRESS_PTR remote_address, DAT_TIMEOUT timeout, DAT_COUNT size,
                             const DAT_PVOID private_data) {
  if (!remote_address) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (auto status = check_timeout(timeout, DAT_INVALID_ARG3)) return status;
  if (auto status = check_private_data(size, private_data, Connection::kMaxConnectData, DAT_INVALID_ARG4))
    return status;
  return controlled([&] {
    const verbs::SocketAddress peer = peer_address(*remote_address);
    if (peer.family() != ep.comm().domain) return error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
    if (peer.port() == 0) return error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
    return to_dat(ep.connect(peer.get(), peer.port(), timeout, to_span(private_data, size)),
                  {{Subtype::kPrivateData, DAT_INVALID_ARG4}});
  });
}

DAT_RETURN cr_reject(Cr& cr, DAT_COUNT size, const DAT_PVOID private_data) {
  if (auto status = check_private_data(size, private_data, Cr::kMaxRejectData, DAT_INVALID_ARG2)) return status;
  return controlled([&] { return cr.reject(to_span(private_data, size)); },
                    {{Subtype::kPrivateData, DAT_INVALID_ARG2}});
}

}  // namespace dapple::udapl::functions
