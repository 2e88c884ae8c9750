// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// RESOLVE_IP with neighbours that answer late or never.
#include <initializer_list>

#include "tests/unit/dappled-rdma-cm/rig.hpp"

using namespace dapple::dappled::rdma_cm;
using namespace dapple::dappled::rdma_cm::test;

namespace {

constexpr uint32_t kLooksAtOnce = 64;

struct One {
  Host host{1};
  Channel channel;

  uint32_t create() { return host.create(channel, RDMA_PS_TCP, 1); }
  // Resolves 10.0.0.`last`, which does not answer.
  uint32_t begin(uint8_t last = 2, uint32_t timeout_ms = 2000) {
    host.neighbour_error = ENODATA;
    const uint32_t id = create();
    assert_int_equal(host.resolve(channel, id, ipv4(last, 7174), timeout_ms), 0);
    return id;
  }
  void answer(uint8_t last) {
    Neighbour neighbour{.netdev_index = 2, .address = {}};
    read_address(ipv4(last, 0), neighbour.address);
    host.service->neighbour_answers(host.now, neighbour);
  }
  // One pass of dappled's loop.
  void advance() {
    if (host.service->deadline() <= host.now) host.service->advance(host.now);
  }
  void pass(Time time) {
    const Time end = host.now + time;
    while (host.service->deadline() <= end) {
      host.now = std::max(host.now, host.service->deadline());
      advance();
    }
    host.now = end;
  }
};

int setup_one(void** state) {
  *state = new One;
  return 0;
}

int teardown_one(void** state) {
  One* one = static_cast<One*>(*state);
  one->host.service->close(one->host.now, one->channel);
  assert_int_equal(one->host.service->ids(), 0);
  assert_int_equal(one->host.service->resolving(), 0);
  assert_true(one->host.service->deadline() == dapple::roce::kNever);
  delete one;
  return 0;
}

One& one_of(void** state) {
  return *static_cast<One*>(*state);
}

int status_of(const rdma_ucm_event_resp& event) {
  return static_cast<int>(event.status);
}

void resolve__late_answer__is_resolved_then(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.begin();
  one.advance();
  one.host.assert_no_event(one.channel);
  assert_int_equal(one.host.resolve_route(one.channel, id), EINVAL);
  one.host.neighbour_error = 0;
  one.answer(2);
  one.advance();
  one.host.event(one.channel, EventKind::kAddrResolved);
  one.host.assert_no_event(one.channel);
  assert_int_equal(one.host.resolve_route(one.channel, id), 0);
  assert_int_equal(one.host.service->resolving(), 0);
}

void resolve__other_answers__are_not_looked_at(void** state) {
  One& one = one_of(state);
  one.begin(2);
  one.begin(3);
  const uint32_t looks = one.host.looks;
  one.answer(4);
  one.advance();
  assert_int_equal(one.host.looks, looks);
  one.answer(3);
  one.advance();
  assert_int_equal(one.host.looks, looks + 1);
}

void resolve__no_answer__ends_in_time(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.begin(2, 2500);
  assert_int_equal(one.host.looks, 1);
  one.pass(2499 * (kSecond / 1000));
  one.host.assert_no_event(one.channel);
  // The kernel is asked again each second.
  assert_int_equal(one.host.looks, 3);
  one.pass(kSecond / 1000);
  assert_int_equal(status_of(one.host.event(one.channel, EventKind::kAddrError)), -ETIMEDOUT);
  one.host.assert_no_event(one.channel);
  assert_int_equal(one.host.resolve_route(one.channel, id), EINVAL);
  // The program may try again.
  one.host.neighbour_error = 0;
  assert_int_equal(one.host.resolve(one.channel, id, ipv4(3, 7174)), 0);
  one.host.event(one.channel, EventKind::kAddrResolved);
}

void resolve__answer_between_two_looks__is_found(void** state) {
  One& one = one_of(state);
  one.begin(2, 5000);
  // No notification of the answer arrives.
  one.host.neighbour_error = 0;
  one.pass(kSecond);
  one.host.event(one.channel, EventKind::kAddrResolved);
}

void resolve__news_lost__looks_for_all(void** state) {
  One& one = one_of(state);
  one.begin(2);
  one.begin(3);
  one.host.neighbour_error = 0;
  one.host.service->missed_answers(one.host.now);
  one.advance();
  one.host.event(one.channel, EventKind::kAddrResolved);
  one.host.event(one.channel, EventKind::kAddrResolved);
}

void resolve__time_of_0__ends_at_once(void** state) {
  One& one = one_of(state);
  one.begin(2, 0);
  one.host.assert_no_event(one.channel);
  one.advance();
  assert_int_equal(status_of(one.host.event(one.channel, EventKind::kAddrError)), -ETIMEDOUT);
}

void resolve__negative_time__is_for_ever(void** state) {
  One& one = one_of(state);
  one.begin(2, UINT32_MAX);
  one.pass(3600 * kSecond);
  one.host.assert_no_event(one.channel);
  one.host.neighbour_error = 0;
  one.pass(kSecond);
  one.host.event(one.channel, EventKind::kAddrResolved);
}

void resolve__route_lost_meanwhile__is_an_error_event(void** state) {
  One& one = one_of(state);
  one.begin();
  one.host.route_error = ENETUNREACH;
  one.pass(kSecond);
  assert_int_equal(status_of(one.host.event(one.channel, EventKind::kAddrError)), -ENETUNREACH);
}

// ff02::1
sockaddr_in6 group_of_a_link() {
  sockaddr_in6 address = any_ipv6(7174);
  address.sin6_addr.s6_addr[0] = 0xFF;
  address.sin6_addr.s6_addr[1] = 2;
  address.sin6_addr.s6_addr[15] = 1;
  return address;
}

void resolve__without_a_neighbour__asks_none(void** state) {
  One& one = one_of(state);
  one.host.neighbour_error = ENODATA;
  for (const sockaddr_in6& address : {ipv4(1, 7174), ipv6(1, 7174), any_ipv4(7174), group_of_a_link()}) {
    assert_int_equal(one.host.resolve(one.channel, one.create(), address), 0);
    one.host.event(one.channel, EventKind::kAddrResolved);
  }
  assert_int_equal(one.host.looks, 0);
}

void resolve__group_of_a_link__is_on_the_netdev_of_the_bound_id(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  assert_int_equal(one.host.bind(one.channel, id, ipv6(1, 0)), 0);
  assert_int_equal(one.host.resolve(one.channel, id, group_of_a_link()), 0);
  one.host.event(one.channel, EventKind::kAddrResolved);
  assert_int_equal(one.host.asked_route.scope, 2);
  // The program's own choice counts, and an id that is not bound has no netdev.
  sockaddr_in6 scoped = group_of_a_link();
  scoped.sin6_scope_id = 7;
  const uint32_t second = one.create();
  assert_int_equal(one.host.bind(one.channel, second, ipv6(1, 0)), 0);
  assert_int_equal(one.host.resolve(one.channel, second, scoped), 0);
  one.host.event(one.channel, EventKind::kAddrResolved);
  assert_int_equal(one.host.asked_route.scope, 7);
  assert_int_equal(one.host.resolve(one.channel, one.create(), group_of_a_link()), 0);
  one.host.event(one.channel, EventKind::kAddrResolved);
  assert_int_equal(one.host.asked_route.scope, 0);
}

void commands__while_resolving__are_refused(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.begin();
  assert_int_equal(one.host.resolve(one.channel, id, ipv4(3, 7174)), EINVAL);
  assert_int_equal(one.host.bind(one.channel, id, ipv4(1, 7174)), EINVAL);
  assert_int_equal(one.host.listen(one.channel, id), EINVAL);
  assert_int_equal(one.host.connect(one.channel, id, parameters(1)), EINVAL);
}

void destroy__while_resolving__leaves_nothing(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.begin();
  uint32_t reported = 1;
  assert_int_equal(one.host.destroy(one.channel, id, &reported), 0);
  assert_int_equal(reported, 0);
  assert_int_equal(one.host.service->resolving(), 0);
  one.answer(2);
  one.pass(5 * kSecond);
  one.host.assert_no_event(one.channel);
}

void device_lost__while_resolving__ends_it(void** state) {
  One& one = one_of(state);
  one.host.neighbour_error = ENODATA;
  const uint32_t id = one.create();
  assert_int_equal(one.host.bind(one.channel, id, ipv4(1, 7174)), 0);
  assert_int_equal(one.host.resolve(one.channel, id, ipv4(2, 7174)), 0);
  one.host.lose_device();
  one.host.event(one.channel, EventKind::kDeviceRemoval);
  one.pass(5 * kSecond);
  one.host.assert_no_event(one.channel);
}

void migrate__while_resolving__takes_the_event_along(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.begin();
  Channel other;
  rdma_ucm_migrate_id command = {};
  command.id = id;
  rdma_ucm_migrate_resp response = {};
  assert_int_equal(one.host.ask(other, RDMA_USER_CM_CMD_MIGRATE_ID, command, response, sizeof response, &one.channel),
                   0);
  one.pass(3 * kSecond);
  one.host.assert_no_event(one.channel);
  assert_int_equal(status_of(one.host.event(other, EventKind::kAddrError)), -ETIMEDOUT);
  one.host.service->close(one.host.now, other);
}

void dappled_dies__while_resolving__the_next_goes_on(void** state) {
  One& one = one_of(state);
  const uint32_t answered = one.begin(2, 2000);
  one.begin(3, 3000);
  one.pass(kSecond / 2);
  one.host.die(one.channel);
  assert_int_equal(one.host.service->resolving(), 2);
  one.pass(kSecond / 4);
  one.host.neighbour_error = 0;
  one.answer(2);
  one.advance();
  const auto event = one.host.event(one.channel, EventKind::kAddrResolved);
  assert_int_equal(event.id, answered);
  one.host.neighbour_error = ENODATA;
  // The program's time-out does not start again.
  one.pass(2 * kSecond + kSecond / 4 - 1);
  one.host.assert_no_event(one.channel);
  one.pass(1);
  assert_int_equal(status_of(one.host.event(one.channel, EventKind::kAddrError)), -ETIMEDOUT);
}

void many_absent_hosts__leave_others_their_turn(void** state) {
  One& one = one_of(state);
  constexpr uint32_t kMany = 1000;
  for (uint32_t i = 0; i < kMany; i++) one.begin(static_cast<uint8_t>(3 + i % 200));
  one.host.looks = 0;
  one.host.now += kSecond;
  one.advance();
  assert_in_range(one.host.looks, 1, kLooksAtOnce);
  // Another program's id.
  Channel channel;
  one.host.neighbour_error = 0;
  const uint32_t id = one.host.create(channel, RDMA_PS_TCP, 2);
  assert_int_equal(one.host.resolve(channel, id, ipv4(2, 7174)), 0);
  one.host.event(channel, EventKind::kAddrResolved);
  one.host.service->close(one.host.now, channel);
  one.host.neighbour_error = ENODATA;
  one.pass(2 * kSecond);
  for (uint32_t i = 0; i < kMany; i++) one.host.event(one.channel, EventKind::kAddrError);
  one.host.assert_no_event(one.channel);
}

}  // namespace

#define ONE_TEST(function) cmocka_unit_test_setup_teardown(function, setup_one, teardown_one)

int main() {
  const CMUnitTest tests[] = {
      ONE_TEST(resolve__late_answer__is_resolved_then),
      ONE_TEST(resolve__other_answers__are_not_looked_at),
      ONE_TEST(resolve__no_answer__ends_in_time),
      ONE_TEST(resolve__answer_between_two_looks__is_found),
      ONE_TEST(resolve__news_lost__looks_for_all),
      ONE_TEST(resolve__time_of_0__ends_at_once),
      ONE_TEST(resolve__negative_time__is_for_ever),
      ONE_TEST(resolve__route_lost_meanwhile__is_an_error_event),
      ONE_TEST(resolve__without_a_neighbour__asks_none),
      ONE_TEST(resolve__group_of_a_link__is_on_the_netdev_of_the_bound_id),
      ONE_TEST(commands__while_resolving__are_refused),
      ONE_TEST(destroy__while_resolving__leaves_nothing),
      ONE_TEST(device_lost__while_resolving__ends_it),
      ONE_TEST(migrate__while_resolving__takes_the_event_along),
      ONE_TEST(dappled_dies__while_resolving__the_next_goes_on),
      ONE_TEST(many_absent_hosts__leave_others_their_turn),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
