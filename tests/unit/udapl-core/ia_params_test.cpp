// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/ia/ia_params.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <initializer_list>

#include "tests/unit/udapl-core/captured.hpp"
#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple::udapl;

namespace {

void expect(const char* text, const char* where, uint32_t port, const char* coherence) {
  const auto params = IaParams::parse(text);
  CHECK(params.has_value());
  if (!params) return;
  CHECK_EQUAL(params->where, where);
  CHECK_EQUAL(params->port, port);
  CHECK_EQUAL(params->coherence, coherence);
}

void expect_refused(const char* text) {
  bool refused = false;
  const std::string said = captured([&] {
    const auto params = IaParams::parse(text);
    refused = !params && params.error() == Error{Type::kInvalidParameter, Subtype::kNone};
  });
  if (!refused || !is_one_line(said)) std::cout << "for \"" << text << "\": " << said << std::endl;
  CHECK(refused);
  CHECK(is_one_line(said));
}

void ia_params_parse__every_form() {
  expect("eth0 0", "eth0", 0, "");
  expect("eth0", "eth0", 0, "");
  expect("10.9.0.1 0", "10.9.0.1", 0, "");
  expect("fd09::1 0", "fd09::1", 0, "");
  expect("host.example 0", "host.example", 0, "");
  expect("mlx5_0 1", "mlx5_0", 1, "");
  expect("mlx5_0 255", "mlx5_0", 255, "");
  expect("  \teth0 \t 0  ", "eth0", 0, "");
  expect("eth0 0 coherence=cpu", "eth0", 0, "cpu");
  expect("eth0 coherence=io 0", "eth0", 0, "io");
  expect("eth0 coherence=coherent", "eth0", 0, "coherent");
  // The library that knows the words checks them.
  expect("eth0 0 coherence=perhaps", "eth0", 0, "perhaps");
}

void ia_params_parse__malformed() {
  for (const char* text : {"", "   ", "\t\n", "eth0 x", "eth0 -1", "eth0 1x", "eth0 0x1", "eth0 256", "eth0 1.5",
                           "eth0 99999999999999999999", "eth0 0 0", "eth0 1 2", "eth0 0 what=ever", "eth0 0 coherence",
                           "eth0 0 coherence="}) {
    expect_refused(text);
  }
}

void resolve__network_device() {
  IaParams params;
  params.where = "lo";
  const auto address = resolve(params);
  CHECK(address.has_value());
  if (!address) return;
  CHECK_EQUAL(address->family(), AF_INET);  // before IPv6
  const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(*address->get());
  CHECK_EQUAL(ntohl(ipv4.sin_addr.s_addr), INADDR_LOOPBACK);
  CHECK_EQUAL(ipv4.sin_port, 0);
}

void resolve__addresses() {
  IaParams params;
  params.where = "192.0.2.7";
  auto address = resolve(params);
  CHECK(address.has_value());
  if (address) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(*address->get());
    CHECK_EQUAL(address->family(), AF_INET);
    CHECK_EQUAL(ntohl(ipv4.sin_addr.s_addr), 0xc0000207);
    CHECK_EQUAL(ipv4.sin_port, 0);
  }
  params.where = "2001:db8::7";
  address = resolve(params);
  CHECK(address.has_value());
  if (address) {
    char text[INET6_ADDRSTRLEN] = "";
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(*address->get());
    inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof text);
    CHECK_EQUAL(address->family(), AF_INET6);
    CHECK_EQUAL(std::string(text), "2001:db8::7");
    CHECK_EQUAL(ipv6.sin6_port, 0);
  }
}

void expect_no_address(const char* where, uint32_t port, Subtype subtype, const char* named) {
  IaParams params;
  params.where = where;
  params.port = port;
  Error error{};
  const std::string said = captured([&] {
    const auto address = resolve(params);
    error = address ? Error{} : address.error();
  });
  CHECK(error.type == Type::kInvalidAddress);
  CHECK(error.subtype == subtype);
  CHECK(is_one_line(said));
  CHECK(said.find(named) != std::string::npos);
}

void resolve__unknown_names() {
  expect_no_address("no-such-netdev.invalid", 0, Subtype::kAddressMalformed, "no-such-netdev.invalid");
  expect_no_address("no_such_hca_0", 1, Subtype::kAddressUnsupported, "no_such_hca_0");
  expect_no_address("no_such_hca_0", 255, Subtype::kAddressUnsupported, "255");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(ia_params_parse__every_form), TEST(ia_params_parse__malformed), TEST(resolve__network_device),
      TEST(resolve__addresses),          TEST(resolve__unknown_names),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
