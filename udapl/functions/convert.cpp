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
#define TYPE(NAME, DAT) \
  case Type::NAME:      \
    return DAT;
#include "udapl/api/names.def"
  }
  return DAT_INTERNAL_ERROR;
}

DAT_RETURN_SUBTYPE to_subtype(Subtype subtype) {
  switch (subtype) {
#define SUBTYPE(NAME, DAT) \
  case Subtype::NAME:      \
    return DAT;
#define ARGUMENT(NAME) \
  case Subtype::NAME:  \
    break;
#include "udapl/api/names.def"
  }
  return DAT_NO_SUBTYPE;
}

DAT_EVENT_NUMBER to_number(EventKind kind) {
  switch (kind) {
#define EVENT(NAME, DATA, DAT) \
  case EventKind::NAME:        \
    return static_cast<DAT_EVENT_NUMBER>(DAT);
#if DAPPLE_DAT_MAJOR == 1
// No endpoint or DTO of 1.2 causes these events.
#define EXTENSION(NAME, DATA, DAT) \
  case EventKind::NAME:            \
    break;
#endif
#include "udapl/api/names.def"
  }
  return DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR;
}

#define DTO_STATUS(NAME, DAT) static_assert(static_cast<int>(DtoStatus::NAME) == (DAT));
#include "udapl/api/names.def"

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
#define KIND(NAME, DAT) \
  case Kind::NAME:      \
    return DAT;
#include "udapl/api/names.def"
  }
  return kOtherHandle;
}

}  // namespace dapple::udapl::functions
