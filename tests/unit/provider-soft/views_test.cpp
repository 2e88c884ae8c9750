// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappled's views: one for each identity, as long as programs use it.
#include "provider/dappled/views.hpp"

#include <errno.h>
#include <stdio.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using dappled::Views;

namespace {

class EmptyProfile final : public face::ProfileSource {
 public:
  bool read(std::string_view, std::string_view& text, soft::Problem&) override {
    text = {};
    return true;
  }
};

Views* views = nullptr;
EmptyProfile source;

int make(void**) {
  views = new Views;
  return 0;
}
int drop(void**) {
  delete views;
  return 0;
}

uint32_t take(const char* text) {
  soft::Problem problem;
  return views->take(text, source, problem);
}

soft::DeviceInfo shown(uint32_t view) {
  soft::DeviceInfo device;
  device.index = soft::kFirstDeviceIndex + 2;
  snprintf(device.name, sizeof device.name, "dapple2");
  views->show(view, device);
  return device;
}

void take__the_same_identity__is_the_same_view(void**) {
  const uint32_t first = take("card,name=a%d"), again = take("card,name=a%d"), other = take("card,name=b%d");
  assert_int_not_equal(first, Views::kDefault);
  assert_int_equal(first, again);
  assert_int_not_equal(first, other);
  assert_int_equal(views->users(first), 2);
  assert_string_equal(shown(first).name, "a2");
  assert_string_equal(shown(other).name, "b2");
  assert_string_equal(shown(Views::kDefault).name, "dapple2");
}

void leave__last_user__makes_room(void**) {
  char text[64];
  for (uint32_t i = 1; i < Views::kMax; ++i) {
    snprintf(text, sizeof text, "card,hw_ver=%u", i);
    assert_int_not_equal(take(text), Views::kDefault);
  }
  soft::Problem problem;
  assert_int_equal(views->take("card", source, problem), Views::kDefault);
  assert_int_equal(problem.error, EBUSY);
  // An identity that is told already needs no room.
  const uint32_t known = take("card,hw_ver=3");
  assert_int_equal(views->users(known), 2);
  views->leave(known);
  assert_int_equal(take("card"), Views::kDefault);
  views->leave(known);
  assert_int_equal(take("card"), known);
  views->leave(Views::kDefault);
}

void most_devices__of_views_in_use__on_the_same_netdev(void**) {
  const uint32_t three = take("card:3"), five = take("card:5,netdev=lo"), other = take("card:7,netdev=eth0");
  soft::Rails rails = views->rails(three);
  assert_int_equal(rails.count, 3);
  assert_int_equal(views->most_devices(rails), 5);
  assert_int_equal(views->most_devices(views->rails(other)), 7);
  views->leave(five);
  assert_int_equal(views->most_devices(rails), 3);
  views->leave(three);
  assert_int_equal(views->most_devices(rails), 0);
}

void take__wrong_word__has_the_reason(void**) {
  soft::Problem problem;
  assert_int_equal(views->take("card,nam=x%d", source, problem), Views::kDefault);
  assert_string_equal(problem.line, "unknown key nam; the nearest is name");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(take__the_same_identity__is_the_same_view, make, drop),
      cmocka_unit_test_setup_teardown(leave__last_user__makes_room, make, drop),
      cmocka_unit_test_setup_teardown(most_devices__of_views_in_use__on_the_same_netdev, make, drop),
      cmocka_unit_test_setup_teardown(take__wrong_word__has_the_reason, make, drop),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
