// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/cm_causes.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using namespace dapple::soft::explain;

namespace {

// To 192.0.2.7:18515.
CmFailure failure_of(rdma_cm_event_type event, int status) {
  CmFailure failure = {.event = event, .status = status, .source = {}, .destination = {}};
  auto& peer = reinterpret_cast<sockaddr_in&>(failure.destination);
  peer.sin_family = AF_INET;
  peer.sin_port = htons(18515);
  inet_pton(AF_INET, "192.0.2.7", &peer.sin_addr);
  return failure;
}

struct Expected {
  rdma_cm_event_type event;
  int status;
  const char* clause;  // a part of it
  const char* remedy;
};

void expect(const Expected& expected) {
  const Cause cause = cause_of(failure_of(expected.event, expected.status));
  if (strstr(cause.clause.c_str(), expected.clause) == nullptr) print_error("%s\n", cause.clause.c_str());
  assert_non_null(strstr(cause.clause.c_str(), expected.clause));
  assert_non_null(strstr(cause.clause.c_str(), "192.0.2.7:18515"));
  assert_non_null(strstr(cause.remedy, expected.remedy));
}

// IBTA 12.6.7.2 has the reasons.
void rejected__names_the_reason(void**) {
  constexpr Expected kAll[] = {
      {RDMA_CM_EVENT_REJECTED, 3, "no room for another connection (IBTA reason 3)", "raise the limits"},
      {RDMA_CM_EVENT_REJECTED, 4, "waited too long for an answer of this program (IBTA reason 4)", "rdma_establish()"},
      {RDMA_CM_EVENT_REJECTED, 8, "nobody listens at", "Start the server first"},
      {RDMA_CM_EVENT_REJECTED, 9, "another kind of queue pair (IBTA reason 9)", "port space"},
      {RDMA_CM_EVENT_REJECTED, 10, "an older connection of this queue pair's number (IBTA reason 10)", "Disconnect"},
      {RDMA_CM_EVENT_REJECTED, 28, "called rdma_reject()", "Look at the server"},
      {RDMA_CM_EVENT_REJECTED, 26, "with the IBTA reason 26", "Look at the peer"},
  };
  for (const Expected& expected : kAll) expect(expected);
}

void silent__names_the_cause(void**) {
  constexpr Expected kAll[] = {
      {RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, "did not answer", "dapple-info --ping"},
      {RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT, "did not answer", "UDP port 4791"},
      {RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET, "ended during the handshake", "Connect again"},
      {RDMA_CM_EVENT_UNREACHABLE, 1, "nobody listens for datagrams", "RDMA_PS_UDP"},
      {RDMA_CM_EVENT_UNREACHABLE, 2, "refuses (SIDR status 2)", "Look at the server"},
  };
  for (const Expected& expected : kAll) expect(expected);
}

void no_way__names_the_cause(void**) {
  constexpr Expected kAll[] = {
      {RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, "a network device that has no RDMA device", "ip route get"},
      {RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, "no host answered", "ping"},
      {RDMA_CM_EVENT_ROUTE_ERROR, -ENETUNREACH, "(ENETUNREACH)", "ip route get"},
      {RDMA_CM_EVENT_MULTICAST_ERROR, -EINVAL, "another Q_Key", "the same Q_Key"},
  };
  for (const Expected& expected : kAll) expect(expected);
}

// The peer's address does not matter.
void removed__names_the_device(void**) {
  CmFailure failure = failure_of(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
  failure.source = failure.destination;
  failure.destination = {};
  assert_non_null(strstr(cause_of(failure).clause.c_str(), "the id bound to 192.0.2.7:18515 has gone"));
}

void unknown_address__is_said(void**) {
  CmFailure failure = failure_of(RDMA_CM_EVENT_REJECTED, 8);
  failure.destination = {};
  assert_non_null(strstr(cause_of(failure).clause.c_str(), "nobody listens at an unknown address"));
}

void names__failures_only(void**) {
  assert_string_equal(name_of_failure(RDMA_CM_EVENT_UNREACHABLE), "RDMA_CM_EVENT_UNREACHABLE");
  assert_null(name_of_failure(RDMA_CM_EVENT_ESTABLISHED));
  assert_null(name_of_failure(RDMA_CM_EVENT_DISCONNECTED));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(rejected__names_the_reason), cmocka_unit_test(silent__names_the_cause),
      cmocka_unit_test(no_way__names_the_cause),    cmocka_unit_test(removed__names_the_device),
      cmocka_unit_test(unknown_address__is_said),   cmocka_unit_test(names__failures_only),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
