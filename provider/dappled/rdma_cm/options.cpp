// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// SET_OPTION.
#include <infiniband/verbs.h>

#include "provider/dappled/rdma_cm/command.hpp"

namespace dapple::dappled::rdma_cm {

int Service::set_option(Call& call) {
  rdma_ucm_set_option command;
  if (!read(call, command)) return EINVAL;
  CmId* id = nullptr;
  if (const int error = find(call, command.id, id); error != 0) return error;
  if (command.optlen > call.extra.size()) return EINVAL;
  const auto value = call.extra.first(command.optlen);
  if (command.level == RDMA_OPTION_ID) return set_id_option(*id, command.optname, value);
  if (command.level != RDMA_OPTION_IB || command.optname != RDMA_OPTION_IB_PATH) return ENOSYS;
  return set_path(*id, value);
}

int Service::set_id_option(CmId& id, uint32_t name, std::span<const uint8_t> value) {
  int number = 0;
  if (value.size() == sizeof number) memcpy(&number, value.data(), sizeof number);
  const bool is_number = value.size() == sizeof number;
  const bool is_octet = value.size() == 1;
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      if (!is_octet) return EINVAL;
      id.traffic_class = value[0];
      return 0;
    case RDMA_OPTION_ID_REUSEADDR:
      if (!is_number || (id.state != State::kIdle && (number == 0 || id.state == State::kListen))) return EINVAL;
      id.reuse_address = number != 0;
      return 0;
    case RDMA_OPTION_ID_AFONLY:
      if (!is_number || (id.state != State::kIdle && id.state != State::kBound)) return EINVAL;
      id.one_family = number != 0;
      id.one_family_set = true;
      return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (!is_octet || id.qp_type != IBV_QPT_RC) return EINVAL;
      id.timeout = value[0];
      id.has_timeout = true;
      return 0;
    default:
      return ENOSYS;
  }
}

int Service::set_path(CmId& id, std::span<const uint8_t> value) {
  constexpr uint32_t kUsable = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
  if (value.size() % sizeof(ib_path_rec_data) != 0) return EINVAL;
  bool usable = false;
  for (size_t at = 0; at < value.size() && !usable; at += sizeof(ib_path_rec_data)) {
    uint32_t flags;
    memcpy(&flags, value.data() + at, sizeof flags);
    usable = flags == kUsable;
  }
  if (!usable || id.device == 0 || id.state != State::kAddressResolved) return EINVAL;
  // RoCE has one path between two addresses, whatever the program's records say of it.
  make_route(id);
  enter(id, State::kRouteResolved);
  add_event(id, EventKind::kRouteResolved);
  return 0;
}

}  // namespace dapple::dappled::rdma_cm
