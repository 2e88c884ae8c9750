// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The events of extensions.
#include <dat2/dat_ib_extensions.h>

#include <cstring>

#include "udapl/core/connection/ud_connection.hpp"
#include "udapl/functions/convert.hpp"
#include "udapl/functions/version.hpp"

namespace dapple::udapl::functions {
namespace {

static_assert(static_cast<int>(DtoOperation::kSend) == DAT_DTO_SEND);
static_assert(static_cast<int>(DtoOperation::kRdmaWrite) == DAT_DTO_RDMA_WRITE);
static_assert(static_cast<int>(DtoOperation::kRdmaRead) == DAT_DTO_RDMA_READ);
static_assert(static_cast<int>(DtoOperation::kReceive) == DAT_DTO_RECEIVE);
static_assert(static_cast<int>(DtoOperation::kReceiveWithInvalidate) == DAT_DTO_RECEIVE_WITH_INVALIDATE);
static_assert(static_cast<int>(DtoOperation::kRdmaWriteImmed) == DAT_IB_DTO_RDMA_WRITE_IMMED);
static_assert(static_cast<int>(DtoOperation::kReceiveImmed) == DAT_IB_DTO_RECV_IMMED);
static_assert(static_cast<int>(DtoOperation::kFetchAndAdd) == DAT_IB_DTO_FETCH_ADD);
static_assert(static_cast<int>(DtoOperation::kCompareAndSwap) == DAT_IB_DTO_CMP_SWAP);
static_assert(static_cast<int>(DtoOperation::kSendUd) == DAT_IB_DTO_SEND_UD);
static_assert(static_cast<int>(DtoOperation::kReceiveUd) == DAT_IB_DTO_RECV_UD);

DAT_IB_EXTENSION_EVENT_DATA& extension_of(DAT_EVENT& event) {
  static_assert(sizeof(DAT_IB_EXTENSION_EVENT_DATA) <= sizeof event.event_extension_data);
  return *reinterpret_cast<DAT_IB_EXTENSION_EVENT_DATA*>(event.event_extension_data);
}

DAT_IB_EXT_TYPE to_extension_type(const Event& event) {
  switch (event.kind) {
    case EventKind::kUdEstablished:
      return event.datagrams.connection->passive() ? DAT_IB_UD_PASSIVE_REMOTE_AH : DAT_IB_UD_REMOTE_AH;
    case EventKind::kUdRejected:
      return DAT_IB_UD_CONNECT_REJECT;
    default:
      return DAT_IB_UD_CONNECT_ERROR;
  }
}

}  // namespace

// Turns the completion of an extension's DTO into the extension's event.
void extend_completion(const DtoCompletion& dto, DAT_EVENT& out) noexcept {
  out.event_number = static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT);
  auto& data = extension_of(out);
  data.status = static_cast<DAT_IB_STATUS>(dto.status);
  switch (dto.operation) {
    case DtoOperation::kReceiveImmed:
      data.type = DAT_IB_RDMA_WRITE_IMMED_DATA;
      data.val.immed.data = dto.immediate;
      break;
    case DtoOperation::kFetchAndAdd:
      data.type = DAT_IB_FETCH_AND_ADD;
      break;
    case DtoOperation::kCompareAndSwap:
      data.type = DAT_IB_CMP_AND_SWAP;
      break;
    case DtoOperation::kSendUd:
      data.type = DAT_IB_UD_SEND;
      break;
    case DtoOperation::kReceiveUd:
      data.type = DAT_IB_UD_RECV;
      break;
    default:
      data.type = DAT_IB_RDMA_WRITE_IMMED;
      break;
  }
}

void extend_request(DAT_EVENT& out) noexcept {
  extension_of(out) = {};
  extension_of(out).type = DAT_IB_UD_CONNECT_REQUEST;
}

// The result of connecting or accepting datagrams. Its context is the argument of dat_ib_ud_cm_free.
void fill_datagrams(const Event& event, DAT_EVENT& out) noexcept {
  const UdConnection& connection = *event.datagrams.connection;
  auto& told = out.event_data.connect_event_data;
  told.ep_handle = event.datagrams.ep;
  told.private_data_size = static_cast<DAT_COUNT>(connection.private_data().size());
  told.private_data = told.private_data_size ? const_cast<uint8_t*>(connection.private_data().data()) : nullptr;
  auto& data = extension_of(out);
  data = {};
  data.type = to_extension_type(event);
  data.status = event.kind == EventKind::kUdEstablished ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
  data.remote_ah.ah = connection.address_handle();
  data.remote_ah.qpn = connection.qp_num();
  std::memcpy(&data.remote_ah.ia_addr, connection.peer(), sizeof data.remote_ah.ia_addr);
  data.context.as_ptr = const_cast<UdConnection*>(&connection);
}

}  // namespace dapple::udapl::functions
