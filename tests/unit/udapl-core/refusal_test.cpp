// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The line about a refused attribute, on an IA without a device, whose limits are 0.
#include "udapl/core/refusal.hpp"

#include <cstdlib>

#include "tests/unit/udapl-core/captured.hpp"
#include "tests/unit/udapl-core/fixture.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/endpoint/ep_limits.hpp"

using namespace dapple::udapl;

namespace {

EpAttr empty_attr() {
  EpAttr attr;
  attr.max_recv_dtos = attr.max_request_dtos = attr.max_recv_iov = attr.max_request_iov = 0;
  attr.max_rdma_read_in = attr.max_rdma_read_out = attr.max_rdma_read_iov = attr.max_rdma_write_iov = 0;
  return attr;
}

template <class Change>
std::string said_about(Change change) {
  no_device::OpenIa ia;
  EpAttr attr = empty_attr();
  change(attr);
  Result<> result;
  const std::string said = captured([&] { result = check(ia.get(), attr); });
  CHECK((!result && result.error() == Error{Type::kInvalidParameter, Subtype::kAttr}));
  return said;
}

void check__nothing_is_said_about_what_fits() {
  no_device::OpenIa ia;
  CHECK_EQUAL(captured([&] { CHECK(check(ia.get(), empty_attr()).has_value()); }), "");
}

void check__names_the_attribute_and_the_limit() {
  CHECK_EQUAL(said_about([](EpAttr& attr) { attr.max_message_size = UINT64_C(1) << 31; }),
              "dapple: IA none: an EP's max_message_size 2147483648 is refused: the limit is 0\n");
  CHECK_EQUAL(said_about([](EpAttr& attr) { attr.max_rdma_read_out = 7; }),
              "dapple: IA none: an EP's max_rdma_read_out 7 is refused: the limit is 0\n");
  CHECK_EQUAL(said_about([](EpAttr& attr) { attr.recv_completion_flags = 0x100; }),
              "dapple: IA none: an EP's completion_flags 256 is refused: unknown flags\n");
}

void check__names_each_attribute() {
  static const struct {
    uint32_t EpAttr::*member;
    const char* name;
  } members[] = {
      {&EpAttr::max_recv_dtos, " max_recv_dtos "},         {&EpAttr::max_request_dtos, " max_request_dtos "},
      {&EpAttr::max_recv_iov, " max_recv_iov "},           {&EpAttr::max_request_iov, " max_request_iov "},
      {&EpAttr::max_rdma_read_in, " max_rdma_read_in "},   {&EpAttr::max_rdma_read_out, " max_rdma_read_out "},
      {&EpAttr::max_rdma_read_iov, " max_rdma_read_iov "}, {&EpAttr::max_rdma_write_iov, " max_rdma_write_iov "},
  };
  for (const auto& [member, name] : members) {
    const std::string said = said_about([member = member](EpAttr& attr) { attr.*member = 5; });
    CHECK(is_one_line(said));
    CHECK(said.find(name) != std::string::npos);
  }
}

void within__says_nothing_when_errors_are_off() {
  no_device::OpenIa ia;
  ::setenv("DAPL_DBG_TYPE", "0", 1);
  CHECK_EQUAL(captured([&] { CHECK(!within(ia.get(), "an EVD's length", 5, 4)); }), "");
  ::unsetenv("DAPL_DBG_TYPE");
  CHECK(is_one_line(captured([&] { CHECK(!within(ia.get(), "an EVD's length", 5, 4)); })));
  CHECK_EQUAL(captured([&] { CHECK(within(ia.get(), "an EVD's length", 4, 4)); }), "");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(check__nothing_is_said_about_what_fits),
      TEST(check__names_the_attribute_and_the_limit),
      TEST(check__names_each_attribute),
      TEST(within__says_nothing_when_errors_are_off),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
