// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/connect_arguments.hpp"
#include "udapl/functions/functions.hpp"

namespace dapple::udapl::functions {

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

}  // namespace dapple::udapl::functions
