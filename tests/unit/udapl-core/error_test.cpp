// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The tables from the core's errors to DAT 2.0's numbers. Each is checked completely: one line for each error, in their
// order.
#include <pthread.h>

#include <iterator>

#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/functions/convert.hpp"

using namespace dapple::udapl;

namespace {

struct TypeRow {
  Type type;
  uint32_t expected;
};
// clang-format off
const TypeRow kTypes[] = {
    {Type::kAbort, DAT_ABORT},
    {Type::kConnQualInUse, DAT_CONN_QUAL_IN_USE},
    {Type::kInsufficientResources, DAT_INSUFFICIENT_RESOURCES},
    {Type::kInternalError, DAT_INTERNAL_ERROR},
    {Type::kInvalidHandle, DAT_INVALID_HANDLE},
    {Type::kInvalidParameter, DAT_INVALID_PARAMETER},
    {Type::kInvalidState, DAT_INVALID_STATE},
    {Type::kLengthError, DAT_LENGTH_ERROR},
    {Type::kModelNotSupported, DAT_MODEL_NOT_SUPPORTED},
    {Type::kPrivilegesViolation, DAT_PRIVILEGES_VIOLATION},
    {Type::kProtectionViolation, DAT_PROTECTION_VIOLATION},
    {Type::kQueueEmpty, DAT_QUEUE_EMPTY},
    {Type::kQueueFull, DAT_QUEUE_FULL},
    {Type::kTimeoutExpired, DAT_TIMEOUT_EXPIRED},
    {Type::kConnQualUnavailable, DAT_CONN_QUAL_UNAVAILABLE},
    {Type::kInterruptedCall, DAT_INTERRUPTED_CALL},
    {Type::kInvalidAddress, DAT_INVALID_ADDRESS},
    {Type::kPortInUse, DAT_PORT_IN_USE},
    {Type::kCommNotSupported, DAT_COMM_NOT_SUPPORTED},
};
static_assert(std::size(kTypes) == static_cast<size_t>(Type::kCommNotSupported) + 1);

struct SubtypeRow {
  Subtype subtype;
  uint32_t expected;
};
const SubtypeRow kSubtypes[] = {
    {Subtype::kNone, DAT_NO_SUBTYPE},
    {Subtype::kMemory, DAT_RESOURCE_MEMORY},
    {Subtype::kDevice, DAT_RESOURCE_DEVICE},
    {Subtype::kTep, DAT_RESOURCE_TEP},
    {Subtype::kMemoryRegion, DAT_RESOURCE_MEMORY_REGION},
    {Subtype::kErrorHandler, DAT_RESOURCE_ERROR_HANDLER},
    {Subtype::kHandleEp, DAT_INVALID_HANDLE_EP},
    {Subtype::kHandleLmr, DAT_INVALID_HANDLE_LMR},
    {Subtype::kEpUnconnected, DAT_INVALID_STATE_EP_UNCONNECTED},
    {Subtype::kEpActConnPending, DAT_INVALID_STATE_EP_ACTCONNPENDING},
    {Subtype::kEpPassConnPending, DAT_INVALID_STATE_EP_PASSCONNPENDING},
    {Subtype::kEpTentConnPending, DAT_INVALID_STATE_EP_TENTCONNPENDING},
    {Subtype::kEpConnected, DAT_INVALID_STATE_EP_CONNECTED},
    {Subtype::kEpDisconnected, DAT_INVALID_STATE_EP_DISCONNECTED},
    {Subtype::kEpReserved, DAT_INVALID_STATE_EP_RESERVED},
    {Subtype::kEpComplPending, DAT_INVALID_STATE_EP_COMPLPENDING},
    {Subtype::kEpDiscPending, DAT_INVALID_STATE_EP_DISCPENDING},
    {Subtype::kEpEvdConnect, DAT_INVALID_STATE_EP_EVD_CONNECT},
    {Subtype::kEpPz, DAT_INVALID_STATE_EP_PZ},
    {Subtype::kEpUnconfigured, DAT_INVALID_STATE_EP_UNCONFIGURED},
    {Subtype::kEpUnconfReserved, DAT_INVALID_STATE_EP_UNCONFRESERVED},
    {Subtype::kEpUnconfPassive, DAT_INVALID_STATE_EP_UNCONFPASSIVE},
    {Subtype::kEpUnconfTentative, DAT_INVALID_STATE_EP_UNCONFTENTATIVE},
    {Subtype::kEvdInUse, DAT_INVALID_STATE_EVD_IN_USE},
    {Subtype::kEvdWaiter, DAT_INVALID_STATE_EVD_WAITER},
    {Subtype::kEvdUnwaitable, DAT_INVALID_STATE_EVD_UNWAITABLE},
    {Subtype::kEvdConfig, DAT_INVALID_STATE_EVD_CONFIG_NOTIFY},
    {Subtype::kIaInUse, DAT_INVALID_STATE_IA_IN_USE},
    {Subtype::kLmrInUse, DAT_INVALID_STATE_LMR_IN_USE},
    {Subtype::kPzInUse, DAT_INVALID_STATE_PZ_IN_USE},
    {Subtype::kCnoInUse, DAT_INVALID_STATE_CNO_IN_USE},
    {Subtype::kEvdConfigSolicited, DAT_INVALID_STATE_EVD_CONFIG_SOLICITED},
    {Subtype::kEvdConfigThreshold, DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD},
    {Subtype::kSrqInUse, DAT_INVALID_STATE_SRQ_IN_USE},
    {Subtype::kAddressUnsupported, DAT_INVALID_ADDRESS_UNSUPPORTED},
    {Subtype::kAddressUnreachable, DAT_INVALID_ADDRESS_UNREACHABLE},
    {Subtype::kAddressMalformed, DAT_INVALID_ADDRESS_MALFORMED},
};
static_assert(std::size(kSubtypes) == static_cast<size_t>(Subtype::kAddressMalformed) + 1);
// clang-format on

void to_dat__every_type_has_its_number() {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    CHECK_EQUAL(static_cast<size_t>(kTypes[i].type), i);
    const DAT_RETURN status = functions::to_dat(Error{kTypes[i].type});
    CHECK_EQUAL(status, DAT_CLASS_ERROR | kTypes[i].expected);
    CHECK_EQUAL(DAT_GET_TYPE(status), kTypes[i].expected);
  }
}

void to_dat__every_subtype_has_its_number() {
  for (size_t i = 0; i < std::size(kSubtypes); ++i) {
    CHECK_EQUAL(static_cast<size_t>(kSubtypes[i].subtype), i);
    const DAT_RETURN status = functions::to_dat(Error{Type::kInvalidState, kSubtypes[i].subtype});
    CHECK_EQUAL(status, DAT_CLASS_ERROR | DAT_INVALID_STATE | kSubtypes[i].expected);
  }
}

void to_dat__no_two_subtypes_share_a_number() {
  for (const SubtypeRow& a : kSubtypes) {
    for (const SubtypeRow& b : kSubtypes) {
      if (&a == &b) continue;
      CHECK(functions::to_dat(Error{Type::kInvalidState, a.subtype}) !=
            functions::to_dat(Error{Type::kInvalidState, b.subtype}));
    }
  }
}

void to_dat__a_refused_argument_has_the_called_functions_number() {
  const Error bad_flags{Type::kInvalidParameter, Subtype::kFlags};
  CHECK_EQUAL(
      functions::to_dat(bad_flags, {{Subtype::kPrivileges, DAT_INVALID_ARG4}, {Subtype::kFlags, DAT_INVALID_ARG8}}),
      DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG8);
  CHECK_EQUAL(functions::to_dat(bad_flags, {{Subtype::kFlags, DAT_INVALID_ARG6}}),
              DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG6);
  CHECK_EQUAL(functions::to_dat(bad_flags), DAT_CLASS_ERROR | DAT_INVALID_PARAMETER);
  CHECK_EQUAL(functions::to_dat(Error{Type::kInvalidState, Subtype::kEpPz}, {{Subtype::kFlags, DAT_INVALID_ARG6}}),
              DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_EP_PZ);
}

// The values in consumers that were built long ago.
void to_dat__numbers_of_the_specification() {
  CHECK_EQUAL(functions::to_dat(Error{Type::kAbort}), 0x80010000U);
  CHECK_EQUAL(functions::to_dat(Error{Type::kTimeoutExpired}), 0x80000000U | DAT_TIMEOUT_EXPIRED);
  CHECK_EQUAL(functions::to_dat(Result<>{}), 0);
}

void to_dat__every_one_can_be_spelled() {
  for (const TypeRow& row : kTypes) {
    const char* major = nullptr;
    const char* minor = nullptr;
    CHECK_EQUAL(dat_strerror(functions::to_dat(Error{row.type}), &major, &minor), DAT_SUCCESS);
  }
  for (const SubtypeRow& row : kSubtypes) {
    const char* major = nullptr;
    const char* minor = nullptr;
    CHECK_EQUAL(dat_strerror(functions::to_dat(Error{Type::kInvalidState, row.subtype}), &major, &minor), DAT_SUCCESS);
  }
}

void fail_errno__what_verbs_and_rdma_cm_report() {
  const std::pair<int, Error> rows[] = {
      {ENOMEM, {Type::kInsufficientResources, Subtype::kMemory}},
      {ENOBUFS, {Type::kInsufficientResources, Subtype::kMemory}},
      {EMFILE, {Type::kInsufficientResources, Subtype::kDevice}},
      {ENFILE, {Type::kInsufficientResources, Subtype::kDevice}},
      {ENOSPC, {Type::kInsufficientResources, Subtype::kDevice}},
      {EINVAL, {Type::kInvalidParameter}},
      {EACCES, {Type::kPrivilegesViolation}},
      {EPERM, {Type::kPrivilegesViolation}},
      {EADDRINUSE, {Type::kConnQualInUse}},
      {EADDRNOTAVAIL, {Type::kInvalidAddress, Subtype::kAddressUnreachable}},
      {ENETUNREACH, {Type::kInvalidAddress, Subtype::kAddressUnreachable}},
      {EHOSTUNREACH, {Type::kInvalidAddress, Subtype::kAddressUnreachable}},
      {EAFNOSUPPORT, {Type::kInvalidAddress, Subtype::kAddressUnsupported}},
      {ETIMEDOUT, {Type::kTimeoutExpired}},
      {ENOSYS, {Type::kModelNotSupported}},
      {EOPNOTSUPP, {Type::kModelNotSupported}},
      {EIO, {Type::kInternalError}},
      {0, {Type::kInternalError}},
  };
  for (const auto& [error, expected] : rows) CHECK(fail_errno(error).value() == expected);
}

void guarded__nothing_is_thrown_through() {
  CHECK_EQUAL(functions::guarded([]() -> DAT_RETURN { throw std::bad_alloc(); }),
              DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY);
  CHECK_EQUAL(functions::guarded([]() -> DAT_RETURN { throw 1; }), DAT_CLASS_ERROR | DAT_INTERNAL_ERROR);
  CHECK_EQUAL(functions::guarded([] { return functions::kSuccess; }), DAT_SUCCESS);
}

void to_dat__every_kind_of_handle() {
  CHECK_EQUAL(functions::to_dat(Kind::kIa), DAT_HANDLE_TYPE_IA);
  CHECK_EQUAL(functions::to_dat(Kind::kPz), DAT_HANDLE_TYPE_PZ);
  CHECK_EQUAL(functions::to_dat(Kind::kLmr), DAT_HANDLE_TYPE_LMR);
  CHECK_EQUAL(functions::to_dat(Kind::kEvd), DAT_HANDLE_TYPE_EVD);
  CHECK_EQUAL(functions::to_dat(Kind::kEp), DAT_HANDLE_TYPE_EP);
  CHECK_EQUAL(functions::to_dat(Kind::kPsp), DAT_HANDLE_TYPE_PSP);
  CHECK_EQUAL(functions::to_dat(Kind::kRsp), DAT_HANDLE_TYPE_RSP);
  CHECK_EQUAL(functions::to_dat(Kind::kCsp), DAT_HANDLE_TYPE_CSP);
  CHECK_EQUAL(functions::to_dat(Kind::kCr), DAT_HANDLE_TYPE_CR);
  CHECK_EQUAL(functions::to_dat(Kind::kRmr), DAT_HANDLE_TYPE_RMR);
  CHECK_EQUAL(functions::to_dat(Kind::kCno), DAT_HANDLE_TYPE_CNO);
  CHECK_EQUAL(functions::to_dat(Kind::kSrq), DAT_HANDLE_TYPE_SRQ);
}

[[gnu::noinline]] DAT_RETURN be_guarded() {
  return functions::guarded([]() -> DAT_RETURN {
    pthread_testcancel();
    return DAT_CONN_QUAL_IN_USE;
  });
}

// This function has no variables of its own, because AddressSanitizer would not notice that the cancellation ends their
// lives.
void* call_guarded(void* result) {
  pthread_cancel(pthread_self());
  *static_cast<DAT_RETURN*>(result) = be_guarded();
  pthread_testcancel();
  return nullptr;
}

// Cancellation would have to unwind through a noexcept function.
void guarded__waits_with_cancellation() {
  DAT_RETURN result = DAT_SUCCESS;
  pthread_t thread;
  void* end = nullptr;
  CHECK_EQUAL(pthread_create(&thread, nullptr, call_guarded, &result), 0);
  CHECK_EQUAL(pthread_join(thread, &end), 0);
  CHECK(end == PTHREAD_CANCELED);
  CHECK_EQUAL(result, DAT_CONN_QUAL_IN_USE);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(to_dat__every_type_has_its_number),
      TEST(to_dat__every_subtype_has_its_number),
      TEST(to_dat__no_two_subtypes_share_a_number),
      TEST(to_dat__a_refused_argument_has_the_called_functions_number),
      TEST(to_dat__numbers_of_the_specification),
      TEST(to_dat__every_one_can_be_spelled),
      TEST(fail_errno__what_verbs_and_rdma_cm_report),
      TEST(guarded__nothing_is_thrown_through),
      TEST(to_dat__every_kind_of_handle),
      TEST(guarded__waits_with_cancellation),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
