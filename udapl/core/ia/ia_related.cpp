// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <cstring>
#include <mutex>

#include "udapl/core/ia/ia.hpp"
#include "udapl/core/ia/ia_params.hpp"
#include "udapl/core/lock.hpp"

namespace dapple::udapl {

Result<bool> Ia::is_on_device_of(const std::string& params) {
  const auto parsed = IaParams::parse(params);
  if (!parsed) return false;
  auto address = resolve(*parsed);
  if (!address && address.error().type == Type::kInsufficientResources) return tl::unexpected(address.error());
  if (!address) return false;
  std::lock_guard guard(control_mutex());
  const auto id = bind_id(*address);
  if (!id) return tl::unexpected(id.error());
  if (!*id) return false;
  return std::strcmp(ibv_get_device_name((*id)->verbs->device), ibv_get_device_name(context()->device)) == 0;
}

}  // namespace dapple::udapl
