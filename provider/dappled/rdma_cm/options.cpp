// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// SET_OPTION.
#include <infiniband/verbs.h>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/dappled/rdma_cm/ids/words.hpp"

namespace dapple::dappled::rdma_cm {

int Service::set_option(Call& call) {
  rdma_ucm_set_option command;
  if (!read(call, command)) return refuse_malformed();
  CmId* id = nullptr;
  if (const int error = find(call, command.id, id); error != 0) return error;
  if (command.optlen > call.extra.size()) return refuse_malformed();
  const auto value = call.extra.first(command.optlen);
  if (command.level == RDMA_OPTION_ID) return set_id_option(*id, command.optname, value);
  if (command.level != RDMA_OPTION_IB || command.optname != RDMA_OPTION_IB_PATH)
    return refuse_option(command.level, command.optname);
  return set_path(*id, value);
}

int Service::set_id_option(CmId& id, uint32_t name, std::span<const uint8_t> value) {
  int number = 0;
  if (value.size() == sizeof number) memcpy(&number, value.data(), sizeof number);
  const bool is_number = value.size() == sizeof number;
  const bool is_octet = value.size() == 1;
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      if (!is_octet) return refuse_size("RDMA_OPTION_ID_TOS", 1, value.size());
      id.traffic_class = value[0];
      return 0;
    case RDMA_OPTION_ID_REUSEADDR:
      if (!is_number) return refuse_size("RDMA_OPTION_ID_REUSEADDR", sizeof number, value.size());
      if (id.state != State::kIdle && (number == 0 || id.state == State::kListen))
        return refuse_late("RDMA_OPTION_ID_REUSEADDR", id);
      id.reuse_address = number != 0;
      return 0;
    case RDMA_OPTION_ID_AFONLY:
      if (!is_number) return refuse_size("RDMA_OPTION_ID_AFONLY", sizeof number, value.size());
      if (id.state != State::kIdle && id.state != State::kBound) return refuse_late("RDMA_OPTION_ID_AFONLY", id);
      id.one_family = number != 0;
      id.one_family_set = true;
      return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (!is_octet) return refuse_size("RDMA_OPTION_ID_ACK_TIMEOUT", 1, value.size());
      if (id.qp_type != IBV_QPT_RC) {
        return refuse(EINVAL,
                      "only ids of reliable connections have a timeout of acknowledgements.\n"
                      "Set RDMA_OPTION_ID_ACK_TIMEOUT for ids of RDMA_PS_TCP.");
      }
      id.timeout = value[0];
      id.has_timeout = true;
      return 0;
    default:
      return refuse_option(RDMA_OPTION_ID, name);
  }
}

int Service::set_path(CmId& id, std::span<const uint8_t> value) {
  constexpr uint32_t kUsable = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
  if (value.size() % sizeof(ib_path_rec_data) != 0)
    return refuse_size("RDMA_OPTION_IB_PATH", sizeof(ib_path_rec_data), value.size());
  bool usable = false;
  for (size_t at = 0; at < value.size() && !usable; at += sizeof(ib_path_rec_data)) {
    uint32_t flags;
    memcpy(&flags, value.data() + at, sizeof flags);
    usable = flags == kUsable;
  }
  if (!usable) {
    return refuse(EINVAL,
                  "none of the path records is a primary path in both directions (flags 0x%x).\n"
                  "Set IB_PATH_GMP, IB_PATH_PRIMARY and IB_PATH_BIDIRECTIONAL.",
                  kUsable);
  }
  if (id.device == 0 || id.state != State::kAddressResolved) {
    return refuse(EINVAL, "the id %s.\nCall rdma_resolve_addr() first, and wait for RDMA_CM_EVENT_ADDR_RESOLVED.",
                  words_of(id.state));
  }
  // RoCE has one path between two addresses, whatever the program's records say of it.
  make_route(id);
  enter(id, State::kRouteResolved);
  add_event(id, EventKind::kRouteResolved);
  return 0;
}

}  // namespace dapple::dappled::rdma_cm
