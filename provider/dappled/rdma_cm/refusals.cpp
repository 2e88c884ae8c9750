// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The reasons for which commands fail, for dapple-run --explain and --check.
#include <stdarg.h>
#include <stdio.h>

#include "provider/common/cm_refusals.hpp"
#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/dappled/rdma_cm/ids/words.hpp"

namespace dapple::dappled::rdma_cm {

int Service::refuse(int error, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason_, sizeof reason_, format, arguments);
  va_end(arguments);
  return error;
}

int Service::refuse_malformed() {
  return refuse(EINVAL, "the command is not one that librdmacm sends.\nUse librdmacm's functions.");
}

int Service::refuse_room() {
  return refuse(ENOSPC, "the command has too little room for its answer.\nUse librdmacm's functions.");
}

int Service::refuse_number(int error, uint32_t number) {
  if (error == ENOENT) {
    return refuse(error, "there is no id %u.\nDo not use an id after rdma_destroy_id(), or before its event.", number);
  }
  return refuse(error, "the id %u belongs to another event channel.\nUse the id's channel, or rdma_migrate_id().",
                number);
}

int Service::refuse_without_device(const CmId& id) {
  return refuse(EINVAL,
                "the id has no device yet: it %s.\nBind the id to an address of a device, or resolve an address and "
                "wait for RDMA_CM_EVENT_ADDR_RESOLVED.",
                words_of(id.state));
}

int Service::refuse_unconnected(const CmId& id) {
  return refuse(EINVAL, "the id has no connection: it %s.\nCall this for an id that connects or is connected.",
                words_of(id.state));
}

int Service::refuse_family(const sockaddr_in6& address) {
  return refuse(EINVAL, "the address family %u is unknown.\nTake AF_INET or AF_INET6.", address.sin6_family);
}

int Service::refuse_port(int error, const CmId& id) {
  if (id.source.port == 0) {
    return refuse(error, "no port from %u to %u is free.\nDestroy ids, or raise net.ipv4.ip_local_port_range.",
                  settings_.first_port, settings_.last_port);
  }
  return refuse(error,
                "another id of this host has port %u.\nEnd the other program, take another port, or set "
                "RDMA_OPTION_ID_REUSEADDR for both ids before they are bound.",
                id.source.port);
}

int Service::refuse_route(int error, const CmId& id) {
  return refuse(error,
                "this host has no route from %s to %s.\nCompare the addresses with `ip route get` in this network "
                "namespace.",
                id.source.is_any() ? "any address" : text_of(id.source).c_str(), text_of(id.destination).c_str());
}

int Service::refuse_unread() {
  return refuse(ENOMEM, "the event channel has %u unread events.\nCall rdma_get_cm_event() more often.", kMaxUnread);
}

int Service::refuse_private_data(size_t size, size_t most) {
  return refuse(EINVAL,
                "the private data has %zu bytes, and %zu is the limit for this message.\nSend the rest in a message "
                "after the connection is established.",
                size, most);
}

int Service::refuse_option(uint32_t level, uint32_t name) {
  return refuse(ENOSYS,
                "the option %u of the level %u is unknown.\nUse RDMA_OPTION_ID_TOS, _REUSEADDR, _AFONLY, _ACK_TIMEOUT, "
                "or RDMA_OPTION_IB_PATH.",
                name, level);
}

int Service::refuse_size(const char* option, size_t expected, size_t size) {
  return refuse(EINVAL, "%s has %zu bytes, and not %zu.\nPass a value of the option's type.", option, size, expected);
}

int Service::refuse_late(const char* option, const CmId& id) {
  return refuse(EINVAL, "the id %s.\nSet %s before rdma_bind_addr() and rdma_resolve_addr().", words_of(id.state),
                option);
}

int Service::refuse_by(cm::Status status) {
  switch (status) {
    case cm::Status::kOk:
      return 0;
    case cm::Status::kNoRoom:
      return refuse(ENOMEM, "dappled has no room for another connection or listener.\nEnd other connections.");
    case cm::Status::kInUse:
      return refuse(EADDRINUSE, "another id listens at this address and port.\nTake another port.");
    case cm::Status::kTooLong:
      return refuse(EINVAL, "the private data is too long.\nSend the rest after the connection is established.");
    case cm::Status::kUnsupported:
      return refuse(EINVAL, "the device does not support this message.\nConnect and accept without it.");
    case cm::Status::kNoSuchId:
    case cm::Status::kWrongState:
      break;
  }
  return refuse(EINVAL, DAPPLE_CONNECTION_MAY_BE_OVER "\nRead the events of the id, and answer a request once.");
}

}  // namespace dapple::dappled::rdma_cm
