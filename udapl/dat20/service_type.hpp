// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <dat2/dat_ib_extensions.h>

namespace dapple::dat20 {

// False for a service that there is not.
inline bool to_service(DAT_SERVICE_TYPE type, bool& datagrams) noexcept {
  datagrams = static_cast<int>(type) == int{DAT_IB_SERVICE_TYPE_UD};
  return datagrams || type == DAT_SERVICE_TYPE_RC;
}

inline DAT_SERVICE_TYPE to_dat_service(bool datagrams) noexcept {
  return datagrams ? static_cast<DAT_SERVICE_TYPE>(DAT_IB_SERVICE_TYPE_UD) : DAT_SERVICE_TYPE_RC;
}

}  // namespace dapple::dat20
