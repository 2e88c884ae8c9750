// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/event_names.hpp"

namespace dapple::soft {
namespace {

struct Name {
  std::string_view name;
  ibv_event_type type;
};

constexpr Name kNames[] = {
    {"CQ_ERR", IBV_EVENT_CQ_ERR},
    {"QP_FATAL", IBV_EVENT_QP_FATAL},
    {"QP_REQ_ERR", IBV_EVENT_QP_REQ_ERR},
    {"QP_ACCESS_ERR", IBV_EVENT_QP_ACCESS_ERR},
    {"COMM_EST", IBV_EVENT_COMM_EST},
    {"SQ_DRAINED", IBV_EVENT_SQ_DRAINED},
    {"PATH_MIG", IBV_EVENT_PATH_MIG},
    {"PATH_MIG_ERR", IBV_EVENT_PATH_MIG_ERR},
    {"DEVICE_FATAL", IBV_EVENT_DEVICE_FATAL},
    {"PORT_ACTIVE", IBV_EVENT_PORT_ACTIVE},
    {"PORT_ERR", IBV_EVENT_PORT_ERR},
    {"LID_CHANGE", IBV_EVENT_LID_CHANGE},
    {"PKEY_CHANGE", IBV_EVENT_PKEY_CHANGE},
    {"SM_CHANGE", IBV_EVENT_SM_CHANGE},
    {"SRQ_ERR", IBV_EVENT_SRQ_ERR},
    {"SRQ_LIMIT_REACHED", IBV_EVENT_SRQ_LIMIT_REACHED},
    {"QP_LAST_WQE_REACHED", IBV_EVENT_QP_LAST_WQE_REACHED},
    {"CLIENT_REREGISTER", IBV_EVENT_CLIENT_REREGISTER},
    {"GID_CHANGE", IBV_EVENT_GID_CHANGE},
};

}  // namespace

std::string_view event_name(ibv_event_type type) {
  for (const Name& candidate : kNames) {
    if (candidate.type == type) return candidate.name;
  }
  return "unknown";
}

int event_of(std::string_view name) {
  for (const Name& candidate : kNames) {
    if (candidate.name == name) return candidate.type;
  }
  return -1;
}

}  // namespace dapple::soft
