// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/rdma_cm_command.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>

#include "provider/preload/doors/process/program_memory.hpp"
#include "provider/protocol/cm_commands.hpp"

namespace dapple::doors {
namespace {

constexpr size_t kNone = SIZE_MAX;

// The kernel's rules for reading one command.
struct Form {
  size_t size = 0;          // of its struct; 0: the kernel has no such command
  size_t least = 0;         // the least `in`, if the kernel checks it
  size_t room = 0;          // the least `out`
  size_t response = kNone;  // the pointer's place in the struct
  size_t id = kNone;        // the id's place in the struct
};

template <class Struct>
constexpr size_t id_of() {
  if constexpr (requires(Struct command) { command.id; }) return offsetof(Struct, id);
  return kNone;
}

template <class Struct>
constexpr Form without_response(size_t least = 0) {
  return {sizeof(Struct), least, 0, kNone, id_of<Struct>()};
}

template <class Struct>
constexpr Form with_response(size_t room) {
  return {sizeof(Struct), 0, room, offsetof(Struct, response), id_of<Struct>()};
}

Form form_of(uint32_t command) {
  switch (command) {
    case RDMA_USER_CM_CMD_CREATE_ID:
      return with_response<rdma_ucm_create_id>(sizeof(rdma_ucm_create_id_resp));
    case RDMA_USER_CM_CMD_DESTROY_ID:
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
      return with_response<rdma_ucm_destroy_id>(sizeof(rdma_ucm_destroy_id_resp));
    case RDMA_USER_CM_CMD_BIND_IP:
      return without_response<rdma_ucm_bind_ip>();
    case RDMA_USER_CM_CMD_RESOLVE_IP:
      return without_response<rdma_ucm_resolve_ip>();
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
      return without_response<rdma_ucm_resolve_route>();
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
      return with_response<rdma_ucm_query>(offsetof(rdma_ucm_query_route_resp, ibdev_index));
    case RDMA_USER_CM_CMD_CONNECT:
      return without_response<rdma_ucm_connect>(offsetof(rdma_ucm_connect, ece));
    case RDMA_USER_CM_CMD_LISTEN:
      return without_response<rdma_ucm_listen>();
    case RDMA_USER_CM_CMD_ACCEPT:
      return without_response<rdma_ucm_accept>(offsetof(rdma_ucm_accept, ece));
    case RDMA_USER_CM_CMD_REJECT:
      return without_response<rdma_ucm_reject>();
    case RDMA_USER_CM_CMD_DISCONNECT:
      return without_response<rdma_ucm_disconnect>();
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
      return with_response<rdma_ucm_init_qp_attr>(sizeof(ib_uverbs_qp_attr));
    case RDMA_USER_CM_CMD_GET_EVENT:
      return with_response<rdma_ucm_get_event>(offsetof(rdma_ucm_event_resp, reserved));
    case RDMA_USER_CM_CMD_SET_OPTION:
      return without_response<rdma_ucm_set_option>();
    case RDMA_USER_CM_CMD_NOTIFY:
      return without_response<rdma_ucm_notify>();
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
      return with_response<rdma_ucm_join_ip_mcast>(sizeof(rdma_ucm_create_id_resp));
    case RDMA_USER_CM_CMD_MIGRATE_ID:
      return with_response<rdma_ucm_migrate_id>(sizeof(rdma_ucm_migrate_resp));
    case RDMA_USER_CM_CMD_QUERY:
      return with_response<rdma_ucm_query>(0);
    case RDMA_USER_CM_CMD_BIND:
      return without_response<rdma_ucm_bind>();
    case RDMA_USER_CM_CMD_RESOLVE_ADDR:
      return without_response<rdma_ucm_resolve_addr>();
    case RDMA_USER_CM_CMD_JOIN_MCAST:
      return with_response<rdma_ucm_join_mcast>(sizeof(rdma_ucm_create_id_resp));
    case soft::kCmResolveIbService:
      return without_response<soft::CmIbServiceCommand>();
    case soft::kCmWriteEvent:
      return without_response<soft::CmWriteEventCommand>();
    default:
      return {};
  }
}

// The option's bytes go behind the struct.
int read_option(soft::CmCommandRequest& request) {
  rdma_ucm_set_option option;
  memcpy(&option, request.command + sizeof(rdma_ucm_cmd_hdr), sizeof option);
  if (option.optlen > sizeof request.command - request.length) return EINVAL;
  if (!copy_from_program(request.command + request.length, option.optval, option.optlen)) return EFAULT;
  request.length += option.optlen;
  return 0;
}

}  // namespace

int read_command(const void* bytes, size_t size, RdmaCmCommand& command, soft::CmCommandRequest& request) {
  const auto address = reinterpret_cast<uintptr_t>(bytes);
  rdma_ucm_cmd_hdr& header = command.header;
  if (size < sizeof header) return EINVAL;
  // Copies the whole command at once. If that fails, the header may still be readable.
  size_t copied = std::min(size, sizeof request.command);
  if (!copy_from_program(request.command, address, copied)) {
    copied = sizeof header;
    if (!copy_from_program(request.command, address, copied)) return EFAULT;
  }
  memcpy(&header, request.command, sizeof header);
  if (header.in + sizeof header > size) return EINVAL;
  const Form form = form_of(header.cmd);
  if (form.size == 0) return header.cmd == RDMA_USER_CM_CMD_GET_OPTION ? ENOSYS : EINVAL;
  if (header.out < form.room) return ENOSPC;
  if (header.in < form.least) return EINVAL;
  // The kernel takes a whole struct and ignores `in`, except for structs that have grown.
  const size_t given = form.least != 0 ? std::min<size_t>(header.in, form.size) : form.size;
  if (copied < sizeof header + given &&
      !copy_from_program(request.command + copied, address + copied, sizeof header + given - copied)) {
    return EFAULT;
  }
  memset(request.command + sizeof header + given, 0, form.size - given);
  header.in = static_cast<uint16_t>(form.size);
  header.out = static_cast<uint16_t>(std::min<size_t>(header.out, soft::kCmCommandSize));
  memcpy(request.command, &header, sizeof header);
  request.length = static_cast<uint32_t>(sizeof header + form.size);
  if (form.response != kNone) {
    memcpy(&command.response, request.command + sizeof header + form.response, sizeof command.response);
    // This check comes first, because dappled must not execute a command whose result the program cannot get.
    if (!is_writable(command.response, header.out)) return EFAULT;
  }
  if (form.id != kNone) memcpy(&command.id, request.command + sizeof header + form.id, sizeof command.id);
  if (header.cmd == RDMA_USER_CM_CMD_INIT_QP_ATTR) {
    const size_t place = sizeof header + offsetof(rdma_ucm_init_qp_attr, qp_state);
    memcpy(&command.qp_state, request.command + place, sizeof command.qp_state);
  }
  if (header.cmd == RDMA_USER_CM_CMD_SET_OPTION) return read_option(request);
  if (header.cmd == RDMA_USER_CM_CMD_MIGRATE_ID) {
    memcpy(&command.source, request.command + sizeof header + offsetof(rdma_ucm_migrate_id, fd), sizeof command.source);
  }
  return 0;
}

const char* function_of(uint32_t command) {
  switch (command) {
    case RDMA_USER_CM_CMD_CREATE_ID:
      return "rdma_create_id";
    case RDMA_USER_CM_CMD_DESTROY_ID:
      return "rdma_destroy_id";
    case RDMA_USER_CM_CMD_BIND_IP:
    case RDMA_USER_CM_CMD_BIND:
      return "rdma_bind_addr";
    case RDMA_USER_CM_CMD_RESOLVE_IP:
    case RDMA_USER_CM_CMD_RESOLVE_ADDR:
      return "rdma_resolve_addr";
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
      return "rdma_resolve_route";
    case RDMA_USER_CM_CMD_CONNECT:
      return "rdma_connect";
    case RDMA_USER_CM_CMD_LISTEN:
      return "rdma_listen";
    case RDMA_USER_CM_CMD_ACCEPT:
      return "rdma_accept";
    case RDMA_USER_CM_CMD_REJECT:
      return "rdma_reject";
    case RDMA_USER_CM_CMD_DISCONNECT:
      return "rdma_disconnect";
    case RDMA_USER_CM_CMD_NOTIFY:
      return "rdma_notify";
    case RDMA_USER_CM_CMD_SET_OPTION:
      return "rdma_set_option";
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
    case RDMA_USER_CM_CMD_JOIN_MCAST:
      return "rdma_join_multicast";
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
      return "rdma_leave_multicast";
    case RDMA_USER_CM_CMD_MIGRATE_ID:
      return "rdma_migrate_id";
    case soft::kCmResolveIbService:
      return "rdma_resolve_addrinfo";
    case soft::kCmWriteEvent:
      return "rdma_write_cm_event";
    default:
      return nullptr;  // librdmacm's own questions
  }
}

}  // namespace dapple::doors
