// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The release of the cookies of suppressed requests while earlier completions wait to be dequeued.
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/cookie_ring.hpp"

using namespace dapple::udapl;

namespace {

Cookie& push(CookieRing& ring) {
  Cookie& cookie = ring.next();
  ring.push();
  return cookie;
}

// Acts on the results of finish() and deliver() as an endpoint does.
void retire(CookieRing& ring, uint32_t end) {
  if (end != ring.tail()) ring.retire(ring.at(end - 1));
}

void cookie_ring_finish__keeps_a_waiting_cookie_when_a_suppressed_one_follows() {
  CookieRing ring(2, 0);
  const Cookie& waiting = push(ring);
  const Cookie& suppressed = push(ring);
  retire(ring, ring.finish(waiting, true));
  retire(ring, ring.finish(suppressed, false));
  CHECK_EQUAL(ring.tail(), 0);
  CHECK(ring.full());
  CHECK_EQUAL(ring.finished(), 2);
  retire(ring, ring.deliver(waiting));
  CHECK(ring.empty());
}

void cookie_ring_deliver__stops_before_the_next_waiting_cookie() {
  CookieRing ring(4, 0);
  const Cookie& first = push(ring);
  const Cookie& suppressed = push(ring);
  const Cookie& second = push(ring);
  retire(ring, ring.finish(first, true));
  retire(ring, ring.finish(suppressed, false));
  retire(ring, ring.finish(second, true));
  retire(ring, ring.deliver(first));
  CHECK_EQUAL(ring.tail(), 1);
  retire(ring, ring.deliver(second));
  CHECK(ring.empty());
}

void cookie_ring_finish__retires_a_suppressed_one_at_once_when_nothing_waits() {
  CookieRing ring(4, 0);
  push(ring);  // asks for no completion
  const Cookie& suppressed = push(ring);
  retire(ring, ring.finish(suppressed, false));
  CHECK(ring.empty());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(cookie_ring_finish__keeps_a_waiting_cookie_when_a_suppressed_one_follows),
      TEST(cookie_ring_deliver__stops_before_the_next_waiting_cookie),
      TEST(cookie_ring_finish__retires_a_suppressed_one_at_once_when_nothing_waits),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
