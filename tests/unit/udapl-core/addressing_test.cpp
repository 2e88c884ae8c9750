// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Tests the two parts of a peer's address: the conn_qual and the socket address.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/connection/service_point.hpp"
#include "udapl/functions/peer_address.hpp"

using dapple::udapl::to_port;
using dapple::udapl::functions::peer_address;

namespace {

void to_port__up_to_16_bits_as_it_is() {
  for (uint64_t qualifier = 0; qualifier <= 0xffff; ++qualifier) CHECK_EQUAL(to_port(qualifier), qualifier);
}

void to_port__beyond_folded_as_the_original_does() {
  // conn_qual % 32001 + 33534, computed separately.
  CHECK_EQUAL(to_port(0x10000), 1534 + 33534);
  CHECK_EQUAL(to_port(0x10001), 1535 + 33534);
  CHECK_EQUAL(to_port(3 * 32001), 33534);
  CHECK_EQUAL(to_port(4 * 32001 - 1), 65534);
  CHECK_EQUAL(to_port(1'000'000), 7969 + 33534);
  CHECK_EQUAL(to_port(0x1'0000'0000), 17083 + 33534);
  CHECK_EQUAL(to_port(UINT64_MAX), 11769 + 33534);
}

// An address of the given family at the very end of a page, after which nothing can be read.
class AtPageEnd {
 public:
  AtPageEnd(const void* bytes, size_t size)
      : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        base_(
            static_cast<char*>(mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(base_ + page_, page_, PROT_NONE);
    address_ = base_ + page_ - size;
    std::memcpy(address_, bytes, size);
  }
  ~AtPageEnd() { munmap(base_, 2 * page_); }
  AtPageEnd(const AtPageEnd&) = delete;
  AtPageEnd& operator=(const AtPageEnd&) = delete;
  const sockaddr& get() const { return *reinterpret_cast<const sockaddr*>(address_); }

 private:
  size_t page_;
  char* base_;
  char* address_;
};

void peer_address__sixteen_bytes_are_read_of_any_family_but_one() {
  for (sa_family_t family : {AF_INET, AF_UNSPEC, AF_UNIX, AF_PACKET, 0x1234}) {
    sockaddr_in given{};
    given.sin_family = family;
    given.sin_port = htons(77);
    given.sin_addr.s_addr = htonl(0x0a090001);
    const AtPageEnd end(&given, sizeof given);
    const auto address = peer_address(end.get());
    CHECK_EQUAL(address.family(), AF_INET);
    CHECK_EQUAL(ntohl(reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr.s_addr), 0x0a090001);
    CHECK_EQUAL(address.port(), 77);
  }
}

void peer_address__ipv6_keeps_all_28_bytes() {
  sockaddr_in6 given{};
  given.sin6_family = AF_INET6;
  inet_pton(AF_INET6, "fe80::1:2:3:4", &given.sin6_addr);
  given.sin6_scope_id = 5;
  const AtPageEnd end(&given, sizeof given);
  const auto address = peer_address(end.get());
  CHECK_EQUAL(address.family(), AF_INET6);
  CHECK_EQUAL(std::memcmp(address.get(), &given, sizeof given), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(to_port__up_to_16_bits_as_it_is),
      TEST(to_port__beyond_folded_as_the_original_does),
      TEST(peer_address__sixteen_bytes_are_read_of_any_family_but_one),
      TEST(peer_address__ipv6_keeps_all_28_bytes),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
