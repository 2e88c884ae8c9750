// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/convert.hpp"

#include "udapl/core/connection/cr.hpp"
#include "udapl/core/connection/service_point.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/memory/rmr.hpp"
#include "udapl/functions/version.hpp"

namespace dapple::udapl::functions {
namespace {

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
    case Type::kPortInUse:
      return kPortInUse;
    case Type::kCommNotSupported:
      return kCommNotSupported;
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
    case Subtype::kHandleEp:
      return DAT_INVALID_HANDLE_EP;
    case Subtype::kHandleLmr:
      return DAT_INVALID_HANDLE_LMR;
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
    case Subtype::kSrqInUse:
      return DAT_INVALID_STATE_SRQ_IN_USE;
    case Subtype::kAddressUnsupported:
      return DAT_INVALID_ADDRESS_UNSUPPORTED;
    case Subtype::kAddressUnreachable:
      return DAT_INVALID_ADDRESS_UNREACHABLE;
    case Subtype::kAddressMalformed:
      return DAT_INVALID_ADDRESS_MALFORMED;
    case Subtype::kAddress:
    case Subtype::kAttr:
    case Subtype::kConnection:
    case Subtype::kConnQual:
    case Subtype::kEvd:
    case Subtype::kFlags:
    case Subtype::kLength:
    case Subtype::kPrivateData:
    case Subtype::kPrivileges:
    case Subtype::kPz:
    case Subtype::kSegmentCount:
    case Subtype::kSegments:
    case Subtype::kThreshold:
      break;  // their numbers are the called function's
  }
  return DAT_NO_SUBTYPE;
}

DAT_EVENT_NUMBER to_number(EventKind kind) {
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
    case EventKind::kUdEstablished:
    case EventKind::kUdRejected:
    case EventKind::kUdError:
      return extension_number(kind);
    case EventKind::kAsyncSrq:
      // DEVIATION: the headers have reasons for SRQs but no event number; the handle's kind identifies them.
      return DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR;
  }
  return DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR;
}

// The core keeps DAT's own values where both API versions agree on them.
static_assert(static_cast<int>(DtoStatus::kSuccess) == DAT_DTO_SUCCESS);
static_assert(static_cast<int>(DtoStatus::kFlushed) == DAT_DTO_ERR_FLUSHED);
static_assert(static_cast<int>(DtoStatus::kLocalLength) == DAT_DTO_ERR_LOCAL_LENGTH);
static_assert(static_cast<int>(DtoStatus::kLocalEp) == DAT_DTO_ERR_LOCAL_EP);
static_assert(static_cast<int>(DtoStatus::kLocalProtection) == DAT_DTO_ERR_LOCAL_PROTECTION);
static_assert(static_cast<int>(DtoStatus::kBadResponse) == DAT_DTO_ERR_BAD_RESPONSE);
static_assert(static_cast<int>(DtoStatus::kRemoteAccess) == DAT_DTO_ERR_REMOTE_ACCESS);
static_assert(static_cast<int>(DtoStatus::kRemoteResponder) == DAT_DTO_ERR_REMOTE_RESPONDER);
static_assert(static_cast<int>(DtoStatus::kTransport) == DAT_DTO_ERR_TRANSPORT);
static_assert(static_cast<int>(DtoStatus::kReceiverNotReady) == DAT_DTO_ERR_RECEIVER_NOT_READY);
static_assert(static_cast<int>(DtoStatus::kPartialPacket) == DAT_DTO_ERR_PARTIAL_PACKET);
static_assert(static_cast<int>(DtoStatus::kRmrOperationFailed) == DAT_RMR_OPERATION_FAILED);

}  // namespace

DAT_RETURN to_dat(Error failure, std::initializer_list<ArgumentNumber> arguments) noexcept {
  for (const auto& [argument, number] : arguments) {
    if (failure.subtype == argument) return error(to_type(failure.type), number);
  }
  return error(to_type(failure.type), to_subtype(failure.subtype));
}

void to_dat(const Event& event, DAT_EVENT& out) noexcept {
  out.event_number = to_number(event.kind);
  out.evd_handle = event.evd;
  switch (data_of(event.kind)) {
    case EventData::kDto: {
      auto& data = out.event_data.dto_completion_event_data;
      data.ep_handle = event.dto.ep;
      data.user_cookie.as_64 = event.dto.user_cookie;
      data.status = static_cast<DAT_DTO_COMPLETION_STATUS>(event.dto.status);
      data.transfered_length = static_cast<decltype(data.transfered_length)>(event.dto.length);
      fill_operation(data, event.dto.operation, event.dto.rmr_context);
      if (event.dto.operation >= DtoOperation::kRdmaWriteImmed) [[unlikely]]
        extend_completion(event.dto, out);
      break;
    }
    case EventData::kBind: {
      auto& data = out.event_data.rmr_completion_event_data;
      data.rmr_handle = event.bind.rmr;
      data.user_cookie.as_64 = event.bind.user_cookie;
      data.status = static_cast<DAT_RMR_BIND_COMPLETION_STATUS>(event.bind.status);
      break;
    }
    case EventData::kDatagrams:
      fill_datagrams(event, out);
      break;
    case EventData::kCr: {
      if (event.kind == EventKind::kUdRequest) extend_request(out);
      auto& data = out.event_data.cr_arrival_event_data;
      data.sp_handle.psp_handle = event.cr.service_point;
      // The EVD's IA, not the service point's: the service point may have been freed since.
      data.local_ia_address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(event.evd->ia().address());
      data.conn_qual = event.cr.conn_qual;
      data.cr_handle = event.cr.cr;
      fill_truncation(data);
      break;
    }
    case EventData::kAsync:
      out.event_data.asynch_error_event_data.dat_handle = event.kind == EventKind::kAsyncIaCatastrophic
                                                              ? consumer_handle(event.async.object->ia())
                                                              : event.async.object;
      out.event_data.asynch_error_event_data.reason = event.async.reason;
      break;
    case EventData::kSoftware:
      out.event_data.software_event_data.pointer = event.software;
      break;
    case EventData::kConnection: {
      auto& data = out.event_data.connect_event_data;
      data.ep_handle = event.connection.ep;
      data.private_data_size = static_cast<DAT_COUNT>(event.connection.private_data_size);
      data.private_data = const_cast<void*>(event.connection.private_data);
      break;
    }
  }
}

DAT_HANDLE_TYPE to_dat(Kind kind) noexcept {
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
      return kCspHandle;
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
  return kOtherHandle;
}

}  // namespace dapple::udapl::functions
