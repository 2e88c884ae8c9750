// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <dat2/dat_ib_extensions.h>

#include <cstring>

#include "tests/unit/udapl-core/fixture.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/connection/service_point.hpp"
#include "udapl/functions/convert.hpp"

using namespace dapple::udapl;

// Replaces the registry.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* ia_handle);

namespace {

// Stand-ins for objects; only their addresses matter.
int any_ep, any_psp, any_cr, any_data, any_number;
DAT_IA_HANDLE numbered_ia;  // the one that the consumer knows by that number

template <class T>
T* fake(int& where) {
  return reinterpret_cast<T*>(&where);
}

DAT_EVENT converted(const Event& event) {
  DAT_EVENT out;
  std::memset(&out, 0xa5, sizeof out);
  functions::to_dat(event, out);
  return out;
}

}  // namespace

DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* ia_handle) {
  if (handle != numbered_ia) return DAT_INVALID_HANDLE;
  *ia_handle = &any_number;
  return DAT_SUCCESS;
}

namespace {

struct Fixture {
  no_device::OpenIa ia;
  no_device::OpenEvd evd{ia.get(), 4};
  Event event{};
  Fixture() { event.evd = &evd.get(); }
};

void to_dat__connection_events() {
  const std::pair<EventKind, int> rows[] = {
      {EventKind::kEstablished, DAT_CONNECTION_EVENT_ESTABLISHED},
      {EventKind::kPeerRejected, DAT_CONNECTION_EVENT_PEER_REJECTED},
      {EventKind::kNonPeerRejected, DAT_CONNECTION_EVENT_NON_PEER_REJECTED},
      {EventKind::kAcceptCompletionError, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR},
      {EventKind::kDisconnected, DAT_CONNECTION_EVENT_DISCONNECTED},
      {EventKind::kBroken, DAT_CONNECTION_EVENT_BROKEN},
      {EventKind::kTimedOut, DAT_CONNECTION_EVENT_TIMED_OUT},
      {EventKind::kUnreachable, DAT_CONNECTION_EVENT_UNREACHABLE},
  };
  Fixture f;
  for (const auto& [kind, number] : rows) {
    f.event.kind = kind;
    f.event.connection = {fake<Ep>(any_ep), &any_data, 56};
    const DAT_EVENT out = converted(f.event);
    CHECK_EQUAL(static_cast<int>(out.event_number), number);
    CHECK_EQUAL(out.evd_handle, &f.evd.get());
    CHECK_EQUAL(out.event_data.connect_event_data.ep_handle, &any_ep);
    CHECK_EQUAL(out.event_data.connect_event_data.private_data, &any_data);
    CHECK_EQUAL(out.event_data.connect_event_data.private_data_size, 56);
  }
}

void to_dat__windows() {
  Fixture f;
  f.event.kind = EventKind::kBindCompletion;
  f.event.bind = {fake<Rmr>(any_data), 77, DtoStatus::kRmrOperationFailed};
  DAT_EVENT out = converted(f.event);
  CHECK_EQUAL(static_cast<int>(out.event_number), static_cast<int>(DAT_RMR_BIND_COMPLETION_EVENT));
  CHECK_EQUAL(out.event_data.rmr_completion_event_data.rmr_handle, &any_data);
  CHECK_EQUAL(out.event_data.rmr_completion_event_data.user_cookie.as_64, 77);
  CHECK(out.event_data.rmr_completion_event_data.status == DAT_RMR_OPERATION_FAILED);

  f.event.kind = EventKind::kDtoCompletion;
  f.event.dto = {fake<Ep>(any_ep), 5, 100, 0, DtoStatus::kSuccess, DtoOperation::kReceiveWithInvalidate, 0x1234};
  out = converted(f.event);
  CHECK(out.event_number == DAT_DTO_COMPLETION_EVENT);
  CHECK(out.event_data.dto_completion_event_data.operation == DAT_DTO_RECEIVE_WITH_INVALIDATE);
  CHECK_EQUAL(out.event_data.dto_completion_event_data.rmr_context, 0x1234);
}

void to_dat__asynchronous_events() {
  const std::pair<EventKind, int> rows[] = {
      {EventKind::kAsyncEvdOverflow, DAT_ASYNC_ERROR_EVD_OVERFLOW},
      {EventKind::kAsyncEpBroken, DAT_ASYNC_ERROR_EP_BROKEN},
      {EventKind::kAsyncProviderInternal, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR},
  };
  Fixture f;
  for (const auto& [kind, number] : rows) {
    f.event.kind = kind;
    f.event.async = {fake<Object>(any_ep), 7};
    const DAT_EVENT out = converted(f.event);
    CHECK_EQUAL(static_cast<int>(out.event_number), number);
    CHECK_EQUAL(out.evd_handle, &f.evd.get());
    CHECK_EQUAL(out.event_data.asynch_error_event_data.dat_handle, &any_ep);
    CHECK_EQUAL(out.event_data.asynch_error_event_data.reason, 7);
  }
}

void to_dat__ia_catastrophic_names_the_consumers_ia() {
  Fixture f;
  numbered_ia = reinterpret_cast<DAT_IA_HANDLE>(&f.ia.get());
  f.event.kind = EventKind::kAsyncIaCatastrophic;
  f.event.async = {&f.ia.get(), 7};
  const DAT_EVENT out = converted(f.event);
  CHECK_EQUAL(static_cast<int>(out.event_number), static_cast<int>(DAT_ASYNC_ERROR_IA_CATASTROPHIC));
  CHECK_EQUAL(out.event_data.asynch_error_event_data.dat_handle, &any_number);
  CHECK_EQUAL(out.event_data.asynch_error_event_data.reason, 7);
}

void to_dat__software_event() {
  Fixture f;
  f.event.kind = EventKind::kSoftware;
  f.event.software = &any_data;
  const DAT_EVENT out = converted(f.event);
  CHECK_EQUAL(static_cast<int>(out.event_number), DAT_SOFTWARE_EVENT);
  CHECK_EQUAL(out.event_data.software_event_data.pointer, &any_data);
}

// The service point may have been freed before the consumer takes the event.
void to_dat__connection_request_of_a_freed_psp() {
  Fixture f;
  f.event.kind = EventKind::kConnectionRequest;
  f.event.cr = {fake<ServicePoint>(any_psp), fake<Cr>(any_cr), 0x123456789abcULL};
  const DAT_EVENT out = converted(f.event);
  const DAT_CR_ARRIVAL_EVENT_DATA& data = out.event_data.cr_arrival_event_data;
  CHECK_EQUAL(static_cast<int>(out.event_number), DAT_CONNECTION_REQUEST_EVENT);
  CHECK_EQUAL(data.sp_handle.psp_handle, &any_psp);
  CHECK_EQUAL(data.cr_handle, &any_cr);
  CHECK_EQUAL(data.conn_qual, 0x123456789abcULL);
  CHECK_EQUAL(data.local_ia_address_ptr, f.ia.get().address());
  CHECK_EQUAL(data.truncate_flag, DAT_FALSE);
}

void to_dat__dto_completions() {
  const std::pair<DtoOperation, int> operations[] = {
      {DtoOperation::kSend, DAT_DTO_SEND},
      {DtoOperation::kRdmaWrite, DAT_DTO_RDMA_WRITE},
      {DtoOperation::kRdmaRead, DAT_DTO_RDMA_READ},
      {DtoOperation::kReceive, DAT_DTO_RECEIVE},
  };
  Fixture f;
  f.event.kind = EventKind::kDtoCompletion;
  for (const auto& [operation, number] : operations) {
    for (int status = 0; status <= 11; ++status) {
      f.event.dto = {
          fake<Ep>(any_ep), 0xfedcba9876543210ULL, 0x80000000ULL, 0, static_cast<DtoStatus>(status), operation, 0};
      const DAT_EVENT out = converted(f.event);
      const DAT_DTO_COMPLETION_EVENT_DATA& data = out.event_data.dto_completion_event_data;
      CHECK_EQUAL(static_cast<int>(out.event_number), DAT_DTO_COMPLETION_EVENT);
      CHECK_EQUAL(out.evd_handle, &f.evd.get());
      CHECK_EQUAL(data.ep_handle, &any_ep);
      CHECK_EQUAL(data.user_cookie.as_64, 0xfedcba9876543210ULL);
      CHECK_EQUAL(static_cast<int>(data.status), status);
      CHECK_EQUAL(data.transfered_length, 0x80000000U);
      CHECK_EQUAL(static_cast<int>(data.operation), number);
      CHECK_EQUAL(data.rmr_context, 0);
    }
  }
}

void to_dat__immediate_data() {
  Fixture f;
  f.event.kind = EventKind::kDtoCompletion;
  f.event.dto = {fake<Ep>(any_ep), 5, 100, 0x01020304, DtoStatus::kSuccess, DtoOperation::kReceiveImmed, 0};
  DAT_EVENT out = converted(f.event);
  const auto* data = reinterpret_cast<const DAT_IB_EXTENSION_EVENT_DATA*>(out.event_extension_data);
  CHECK_EQUAL(static_cast<int>(out.event_number), static_cast<int>(DAT_IB_DTO_EVENT));
  CHECK_EQUAL(static_cast<int>(data->type), DAT_IB_RDMA_WRITE_IMMED_DATA);
  CHECK_EQUAL(data->val.immed.data, 0x01020304);
  CHECK_EQUAL(static_cast<int>(data->status), DAT_OP_SUCCESS);
  CHECK_EQUAL(out.event_data.dto_completion_event_data.transfered_length, 100);

  f.event.dto.operation = DtoOperation::kRdmaWriteImmed;
  out = converted(f.event);
  CHECK_EQUAL(static_cast<int>(out.event_number), static_cast<int>(DAT_IB_DTO_EVENT));
  CHECK_EQUAL(static_cast<int>(data->type), DAT_IB_RDMA_WRITE_IMMED);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(to_dat__connection_events),   TEST(to_dat__windows),
      TEST(to_dat__asynchronous_events), TEST(to_dat__ia_catastrophic_names_the_consumers_ia),
      TEST(to_dat__software_event),      TEST(to_dat__connection_request_of_a_freed_psp),
      TEST(to_dat__dto_completions),     TEST(to_dat__immediate_data),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
