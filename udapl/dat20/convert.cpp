// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/dat20/convert.hpp"

#include <dat2/dat_ib_extensions.h>

#include <cstring>

#include "udapl/core/cr.hpp"
#include "udapl/core/ep.hpp"
#include "udapl/core/evd.hpp"
#include "udapl/core/ia.hpp"
#include "udapl/core/rmr.hpp"
#include "udapl/core/service_point.hpp"
#include "udapl/core/ud_connection.hpp"

namespace dapple::dat20 {
namespace {

using dat::Subtype;
using dat::Type;

DAT_RETURN_TYPE to_type(Type type) {
  switch (type) {
    case Type::kAbort:
      return DAT_ABORT;
    case Type::kConnQualInUse:
      return DAT_CONN_QUAL_IN_USE;
    case Type::kInsufficientResources:
      return DAT_INSUFFICIENT_RESOURCES;
    case Type::kInternalError:
      return DAT_INTERNAL_ERROR;
    case Type::kInvalidHandle:
      return DAT_INVALID_HANDLE;
    case Type::kInvalidParameter:
      return DAT_INVALID_PARAMETER;
    case Type::kInvalidState:
      return DAT_INVALID_STATE;
    case Type::kLengthError:
      return DAT_LENGTH_ERROR;
    case Type::kModelNotSupported:
      return DAT_MODEL_NOT_SUPPORTED;
    case Type::kPrivilegesViolation:
      return DAT_PRIVILEGES_VIOLATION;
    case Type::kProtectionViolation:
      return DAT_PROTECTION_VIOLATION;
    case Type::kQueueEmpty:
      return DAT_QUEUE_EMPTY;
    case Type::kQueueFull:
      return DAT_QUEUE_FULL;
    case Type::kTimeoutExpired:
      return DAT_TIMEOUT_EXPIRED;
    case Type::kConnQualUnavailable:
      return DAT_CONN_QUAL_UNAVAILABLE;
    case Type::kInterruptedCall:
      return DAT_INTERRUPTED_CALL;
    case Type::kInvalidAddress:
      return DAT_INVALID_ADDRESS;
    case Type::kNotImplemented:
      return DAT_NOT_IMPLEMENTED;
    case Type::kPortInUse:
      return DAT_PORT_IN_USE;
    case Type::kCommNotSupported:
      return DAT_COMM_NOT_SUPPORTED;
  }
  return DAT_INTERNAL_ERROR;
}

DAT_RETURN_SUBTYPE to_subtype(Subtype subtype) {
  switch (subtype) {
    case Subtype::kNone:
      return DAT_NO_SUBTYPE;
    case Subtype::kMemory:
      return DAT_RESOURCE_MEMORY;
    case Subtype::kDevice:
      return DAT_RESOURCE_DEVICE;
    case Subtype::kTep:
      return DAT_RESOURCE_TEP;
    case Subtype::kMemoryRegion:
      return DAT_RESOURCE_MEMORY_REGION;
    case Subtype::kErrorHandler:
      return DAT_RESOURCE_ERROR_HANDLER;
    case Subtype::kCredits:
      return DAT_RESOURCE_CREDITS;
    case Subtype::kSrq:
      return DAT_RESOURCE_SRQ;
    case Subtype::kHandleIa:
      return DAT_INVALID_HANDLE_IA;
    case Subtype::kHandleEp:
      return DAT_INVALID_HANDLE_EP;
    case Subtype::kHandleLmr:
      return DAT_INVALID_HANDLE_LMR;
    case Subtype::kHandlePz:
      return DAT_INVALID_HANDLE_PZ;
    case Subtype::kHandlePsp:
      return DAT_INVALID_HANDLE_PSP;
    case Subtype::kHandleCr:
      return DAT_INVALID_HANDLE_CR;
    case Subtype::kHandleEvdRequest:
      return DAT_INVALID_HANDLE_EVD_REQUEST;
    case Subtype::kHandleEvdRecv:
      return DAT_INVALID_HANDLE_EVD_RECV;
    case Subtype::kHandleEvdConn:
      return DAT_INVALID_HANDLE_EVD_CONN;
    case Subtype::kHandleEvdAsync:
      return DAT_INVALID_HANDLE_EVD_ASYNC;
    case Subtype::kHandleCno:
      return DAT_INVALID_HANDLE_CNO;
    case Subtype::kHandle1:
      return DAT_INVALID_HANDLE1;
    case Subtype::kHandle2:
      return DAT_INVALID_HANDLE2;
    case Subtype::kArg1:
      return DAT_INVALID_ARG1;
    case Subtype::kArg2:
      return DAT_INVALID_ARG2;
    case Subtype::kArg3:
      return DAT_INVALID_ARG3;
    case Subtype::kArg4:
      return DAT_INVALID_ARG4;
    case Subtype::kArg5:
      return DAT_INVALID_ARG5;
    case Subtype::kArg6:
      return DAT_INVALID_ARG6;
    case Subtype::kArg7:
      return DAT_INVALID_ARG7;
    case Subtype::kArg8:
      return DAT_INVALID_ARG8;
    case Subtype::kArg9:
      return DAT_INVALID_ARG9;
    case Subtype::kArg10:
      return DAT_INVALID_ARG10;
    case Subtype::kEpUnconnected:
      return DAT_INVALID_STATE_EP_UNCONNECTED;
    case Subtype::kEpActConnPending:
      return DAT_INVALID_STATE_EP_ACTCONNPENDING;
    case Subtype::kEpPassConnPending:
      return DAT_INVALID_STATE_EP_PASSCONNPENDING;
    case Subtype::kEpTentConnPending:
      return DAT_INVALID_STATE_EP_TENTCONNPENDING;
    case Subtype::kEpConnected:
      return DAT_INVALID_STATE_EP_CONNECTED;
    case Subtype::kEpDisconnected:
      return DAT_INVALID_STATE_EP_DISCONNECTED;
    case Subtype::kEpReserved:
      return DAT_INVALID_STATE_EP_RESERVED;
    case Subtype::kEpComplPending:
      return DAT_INVALID_STATE_EP_COMPLPENDING;
    case Subtype::kEpDiscPending:
      return DAT_INVALID_STATE_EP_DISCPENDING;
    case Subtype::kEpNotReady:
      return DAT_INVALID_STATE_EP_NOTREADY;
    case Subtype::kEpEvdConnect:
      return DAT_INVALID_STATE_EP_EVD_CONNECT;
    case Subtype::kEpPz:
      return DAT_INVALID_STATE_EP_PZ;
    case Subtype::kEpUnconfigured:
      return DAT_INVALID_STATE_EP_UNCONFIGURED;
    case Subtype::kEpUnconfReserved:
      return DAT_INVALID_STATE_EP_UNCONFRESERVED;
    case Subtype::kEpUnconfPassive:
      return DAT_INVALID_STATE_EP_UNCONFPASSIVE;
    case Subtype::kEpUnconfTentative:
      return DAT_INVALID_STATE_EP_UNCONFTENTATIVE;
    case Subtype::kEvdInUse:
      return DAT_INVALID_STATE_EVD_IN_USE;
    case Subtype::kEvdWaiter:
      return DAT_INVALID_STATE_EVD_WAITER;
    case Subtype::kEvdUnwaitable:
      return DAT_INVALID_STATE_EVD_UNWAITABLE;
    case Subtype::kEvdAsync:
      return DAT_INVALID_STATE_EVD_ASYNC;
    case Subtype::kEvdConfig:
      return DAT_INVALID_STATE_EVD_CONFIG_NOTIFY;
    case Subtype::kIaInUse:
      return DAT_INVALID_STATE_IA_IN_USE;
    case Subtype::kLmrInUse:
      return DAT_INVALID_STATE_LMR_IN_USE;
    case Subtype::kPzInUse:
      return DAT_INVALID_STATE_PZ_IN_USE;
    case Subtype::kCnoInUse:
      return DAT_INVALID_STATE_CNO_IN_USE;
    case Subtype::kEvdConfigSolicited:
      return DAT_INVALID_STATE_EVD_CONFIG_SOLICITED;
    case Subtype::kEvdConfigThreshold:
      return DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD;
    case Subtype::kHandleSrq:
      return DAT_INVALID_HANDLE_SRQ;
    case Subtype::kSrqInUse:
      return DAT_INVALID_STATE_SRQ_IN_USE;
    case Subtype::kAddressUnsupported:
      return DAT_INVALID_ADDRESS_UNSUPPORTED;
    case Subtype::kAddressUnreachable:
      return DAT_INVALID_ADDRESS_UNREACHABLE;
    case Subtype::kAddressMalformed:
      return DAT_INVALID_ADDRESS_MALFORMED;
  }
  return DAT_NO_SUBTYPE;
}

DAT_EVENT_NUMBER to_number(dat::EventKind kind) {
  using dat::EventKind;
  switch (kind) {
    case EventKind::kDtoCompletion:
      return DAT_DTO_COMPLETION_EVENT;
    case EventKind::kBindCompletion:
      return DAT_RMR_BIND_COMPLETION_EVENT;
    case EventKind::kConnectionRequest:
      return DAT_CONNECTION_REQUEST_EVENT;
    case EventKind::kEstablished:
      return DAT_CONNECTION_EVENT_ESTABLISHED;
    case EventKind::kPeerRejected:
      return DAT_CONNECTION_EVENT_PEER_REJECTED;
    case EventKind::kNonPeerRejected:
      return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
    case EventKind::kAcceptCompletionError:
      return DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
    case EventKind::kDisconnected:
      return DAT_CONNECTION_EVENT_DISCONNECTED;
    case EventKind::kBroken:
      return DAT_CONNECTION_EVENT_BROKEN;
    case EventKind::kTimedOut:
      return DAT_CONNECTION_EVENT_TIMED_OUT;
    case EventKind::kUnreachable:
      return DAT_CONNECTION_EVENT_UNREACHABLE;
    case EventKind::kAsyncEvdOverflow:
      return DAT_ASYNC_ERROR_EVD_OVERFLOW;
    case EventKind::kAsyncIaCatastrophic:
      return DAT_ASYNC_ERROR_IA_CATASTROPHIC;
    case EventKind::kAsyncEpBroken:
      return DAT_ASYNC_ERROR_EP_BROKEN;
    case EventKind::kAsyncProviderInternal:
      return DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR;
    case EventKind::kSoftware:
      return DAT_SOFTWARE_EVENT;
    case EventKind::kUdRequest:
      return static_cast<DAT_EVENT_NUMBER>(DAT_IB_UD_CONNECTION_REQUEST_EVENT);
    case EventKind::kUdEstablished:
      return static_cast<DAT_EVENT_NUMBER>(DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
    case EventKind::kUdRejected:
      return static_cast<DAT_EVENT_NUMBER>(DAT_IB_UD_CONNECTION_REJECT_EVENT);
    case EventKind::kUdError:
      return static_cast<DAT_EVENT_NUMBER>(DAT_IB_UD_CONNECTION_ERROR_EVENT);
    case EventKind::kAsyncSrq:
      // DEVIATION: the headers have reasons for SRQs but no event number; the handle's kind tells.
      return DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR;
  }
  return DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR;
}

// The core keeps DAT's own values where both API versions agree on them.
static_assert(static_cast<int>(dat::DtoStatus::kSuccess) == DAT_DTO_SUCCESS);
static_assert(static_cast<int>(dat::DtoStatus::kFlushed) == DAT_DTO_ERR_FLUSHED);
static_assert(static_cast<int>(dat::DtoStatus::kLocalLength) == DAT_DTO_ERR_LOCAL_LENGTH);
static_assert(static_cast<int>(dat::DtoStatus::kLocalEp) == DAT_DTO_ERR_LOCAL_EP);
static_assert(static_cast<int>(dat::DtoStatus::kLocalProtection) == DAT_DTO_ERR_LOCAL_PROTECTION);
static_assert(static_cast<int>(dat::DtoStatus::kBadResponse) == DAT_DTO_ERR_BAD_RESPONSE);
static_assert(static_cast<int>(dat::DtoStatus::kRemoteAccess) == DAT_DTO_ERR_REMOTE_ACCESS);
static_assert(static_cast<int>(dat::DtoStatus::kRemoteResponder) == DAT_DTO_ERR_REMOTE_RESPONDER);
static_assert(static_cast<int>(dat::DtoStatus::kTransport) == DAT_DTO_ERR_TRANSPORT);
static_assert(static_cast<int>(dat::DtoStatus::kReceiverNotReady) == DAT_DTO_ERR_RECEIVER_NOT_READY);
static_assert(static_cast<int>(dat::DtoStatus::kPartialPacket) == DAT_DTO_ERR_PARTIAL_PACKET);
static_assert(static_cast<int>(dat::DtoStatus::kRmrOperationFailed) == DAT_RMR_OPERATION_FAILED);
static_assert(static_cast<int>(dat::DtoOperation::kSend) == DAT_DTO_SEND);
static_assert(static_cast<int>(dat::DtoOperation::kRdmaWrite) == DAT_DTO_RDMA_WRITE);
static_assert(static_cast<int>(dat::DtoOperation::kRdmaRead) == DAT_DTO_RDMA_READ);
static_assert(static_cast<int>(dat::DtoOperation::kReceive) == DAT_DTO_RECEIVE);
static_assert(static_cast<int>(dat::DtoOperation::kReceiveWithInvalidate) == DAT_DTO_RECEIVE_WITH_INVALIDATE);
static_assert(static_cast<int>(dat::DtoOperation::kRdmaWriteImmed) == DAT_IB_DTO_RDMA_WRITE_IMMED);
static_assert(static_cast<int>(dat::DtoOperation::kReceiveImmed) == DAT_IB_DTO_RECV_IMMED);
static_assert(static_cast<int>(dat::DtoOperation::kFetchAndAdd) == DAT_IB_DTO_FETCH_ADD);
static_assert(static_cast<int>(dat::DtoOperation::kCompareAndSwap) == DAT_IB_DTO_CMP_SWAP);
static_assert(static_cast<int>(dat::DtoOperation::kSendUd) == DAT_IB_DTO_SEND_UD);
static_assert(static_cast<int>(dat::DtoOperation::kReceiveUd) == DAT_IB_DTO_RECV_UD);

DAT_IB_EXTENSION_EVENT_DATA& extension_of(DAT_EVENT& event) {
  static_assert(sizeof(DAT_IB_EXTENSION_EVENT_DATA) <= sizeof event.event_extension_data);
  return *reinterpret_cast<DAT_IB_EXTENSION_EVENT_DATA*>(event.event_extension_data);
}

// Turns the completion of an extension's DTO into the extension's event.
void extend(const dat::DtoCompletion& dto, DAT_EVENT& out) {
  out.event_number = static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT);
  auto& data = extension_of(out);
  data.status = static_cast<DAT_IB_STATUS>(dto.status);
  switch (dto.operation) {
    case dat::DtoOperation::kReceiveImmed:
      data.type = DAT_IB_RDMA_WRITE_IMMED_DATA;
      data.val.immed.data = dto.immediate;
      break;
    case dat::DtoOperation::kFetchAndAdd:
      data.type = DAT_IB_FETCH_AND_ADD;
      break;
    case dat::DtoOperation::kCompareAndSwap:
      data.type = DAT_IB_CMP_AND_SWAP;
      break;
    case dat::DtoOperation::kSendUd:
      data.type = DAT_IB_UD_SEND;
      break;
    case dat::DtoOperation::kReceiveUd:
      data.type = DAT_IB_UD_RECV;
      break;
    default:
      data.type = DAT_IB_RDMA_WRITE_IMMED;
      break;
  }
}

DAT_IB_EXT_TYPE to_extension_type(const dat::Event& event) {
  switch (event.kind) {
    case dat::EventKind::kUdEstablished:
      return event.datagrams.connection->passive() ? DAT_IB_UD_PASSIVE_REMOTE_AH : DAT_IB_UD_REMOTE_AH;
    case dat::EventKind::kUdRejected:
      return DAT_IB_UD_CONNECT_REJECT;
    default:
      return DAT_IB_UD_CONNECT_ERROR;
  }
}

// What became of connecting or accepting datagrams. The context is for dat_ib_ud_cm_free.
void tell_of_datagrams(const dat::Event& event, DAT_EVENT& out) {
  const dat::UdConnection& connection = *event.datagrams.connection;
  auto& told = out.event_data.connect_event_data;
  told.ep_handle = event.datagrams.ep;
  told.private_data_size = static_cast<DAT_COUNT>(connection.private_data().size());
  told.private_data = told.private_data_size ? const_cast<uint8_t*>(connection.private_data().data()) : nullptr;
  auto& data = extension_of(out);
  data = {};
  data.type = to_extension_type(event);
  data.status = event.kind == dat::EventKind::kUdEstablished ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
  data.remote_ah.ah = connection.address_handle();
  data.remote_ah.qpn = connection.qp_num();
  std::memcpy(&data.remote_ah.ia_addr, connection.peer(), sizeof data.remote_ah.ia_addr);
  data.context.as_ptr = const_cast<dat::UdConnection*>(&connection);
}

}  // namespace

DAT_RETURN to_dat(dat::Error failure) noexcept {
  return error(to_type(failure.type), to_subtype(failure.subtype));
}

void to_dat(const dat::Event& event, DAT_EVENT& out) noexcept {
  using dat::EventKind;
  out.event_number = to_number(event.kind);
  out.evd_handle = event.evd;
  switch (event.kind) {
    case EventKind::kDtoCompletion: {
      auto& data = out.event_data.dto_completion_event_data;
      data.ep_handle = event.dto.ep;
      data.user_cookie.as_64 = event.dto.user_cookie;
      data.status = static_cast<DAT_DTO_COMPLETION_STATUS>(event.dto.status);
      data.transfered_length = static_cast<DAT_SEG_LENGTH>(event.dto.length);
      data.operation = static_cast<DAT_DTOS>(event.dto.operation);
      data.rmr_context = event.dto.rmr_context;
      if (event.dto.operation >= dat::DtoOperation::kRdmaWriteImmed) [[unlikely]]
        extend(event.dto, out);
      break;
    }
    case EventKind::kBindCompletion: {
      auto& data = out.event_data.rmr_completion_event_data;
      data.rmr_handle = event.bind.rmr;
      data.user_cookie.as_64 = event.bind.user_cookie;
      data.status = static_cast<DAT_RMR_BIND_COMPLETION_STATUS>(event.bind.status);
      break;
    }
    case EventKind::kUdEstablished:
    case EventKind::kUdRejected:
    case EventKind::kUdError:
      tell_of_datagrams(event, out);
      break;
    case EventKind::kUdRequest:
      extension_of(out) = {};
      extension_of(out).type = DAT_IB_UD_CONNECT_REQUEST;
      [[fallthrough]];
    case EventKind::kConnectionRequest: {
      auto& data = out.event_data.cr_arrival_event_data;
      data.sp_handle.psp_handle = event.cr.service_point;
      // Of the EVD, not of the service point, which may have been freed since.
      data.local_ia_address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(event.evd->ia().address());
      data.conn_qual = event.cr.conn_qual;
      data.cr_handle = event.cr.cr;
      data.truncate_flag = DAT_FALSE;
      break;
    }
    case EventKind::kAsyncEvdOverflow:
    case EventKind::kAsyncIaCatastrophic:
    case EventKind::kAsyncEpBroken:
    case EventKind::kAsyncProviderInternal:
    case EventKind::kAsyncSrq:
      out.event_data.asynch_error_event_data.dat_handle = event.async.object;
      out.event_data.asynch_error_event_data.reason = event.async.reason;
      break;
    case EventKind::kSoftware:
      out.event_data.software_event_data.pointer = event.software;
      break;
    default: {
      auto& data = out.event_data.connect_event_data;
      data.ep_handle = event.connection.ep;
      data.private_data_size = static_cast<DAT_COUNT>(event.connection.private_data_size);
      data.private_data = const_cast<void*>(event.connection.private_data);
      break;
    }
  }
}

DAT_HANDLE_TYPE to_dat(dat::Kind kind) noexcept {
  using dat::Kind;
  switch (kind) {
    case Kind::kIa:
      return DAT_HANDLE_TYPE_IA;
    case Kind::kPz:
      return DAT_HANDLE_TYPE_PZ;
    case Kind::kLmr:
      return DAT_HANDLE_TYPE_LMR;
    case Kind::kEvd:
      return DAT_HANDLE_TYPE_EVD;
    case Kind::kEp:
      return DAT_HANDLE_TYPE_EP;
    case Kind::kPsp:
      return DAT_HANDLE_TYPE_PSP;
    case Kind::kCr:
      return DAT_HANDLE_TYPE_CR;
    case Kind::kRsp:
      return DAT_HANDLE_TYPE_RSP;
    case Kind::kCsp:
      return DAT_HANDLE_TYPE_CSP;
    case Kind::kRmr:
      return DAT_HANDLE_TYPE_RMR;
    case Kind::kCno:
      return DAT_HANDLE_TYPE_CNO;
    case Kind::kSrq:
      return DAT_HANDLE_TYPE_SRQ;
    case Kind::kUdConnection:
    case Kind::kNone:
      break;
  }
  return DAT_HANDLE_TYPE_EXTENSION_BASE;
}

}  // namespace dapple::dat20
