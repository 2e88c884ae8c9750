// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dat_event_str() and dat_dto_status_str(), built for each version of the API.
#if DAPPLE_DAT_MAJOR == 1
#include <dat/udat.h>
#else
#include <dat2/dat_ib_extensions.h>
#endif

#include <string>

#include "tests/unit/udapl-registry/checks.hpp"

namespace {

struct Constant {
  std::string name;
  long long value;
};

// The facts list the constants of each enumeration one after the other.
#define DAT12_CONSTANT(name, value) {#name, value},
#define DAT12_SIZE(type, size)
#define DAT12_MEMBER(type, member, offset, size)
#define DAT12_FUNCTION(name, args)
#define DAT12_SLOT(slot, args)
#define DAT20_CONSTANT(name, value) {#name, value},
#define DAT20_POINTER(name, value)
#define DAT20_STRING(name, value)
#define DAT20_SIZE(type, size)
#define DAT20_MEMBER(type, member, offset, size)
#define DAT20_FUNCTION(name, args)
#define DAT20_SLOT(slot, args)

const Constant kConstants[] = {
#if DAPPLE_DAT_MAJOR == 1
#include "tests/abi/dat12_facts.inc"
#else
#include "tests/abi/dat20_facts.inc"
#endif
};

/// Calls `check` with each constant from `first` to `last`, and returns their number.
template <class Check>
int for_each(const std::string& first, const std::string& last, Check check) {
  int count = 0;
  bool within = false;
  for (const Constant& constant : kConstants) {
    within = within || constant.name == first;
    if (within) {
      check(constant);
      ++count;
    }
    if (constant.name == last) within = false;
  }
  return count;
}

std::string event(int number) {
  return dat_event_str(static_cast<DAT_EVENT_NUMBER>(number));
}

void dat_event_str__spells_every_event() {
#if DAPPLE_DAT_MAJOR == 1
  const char* const last = "DAT_SOFTWARE_EVENT";
  const int events = 17;
#else
  const char* const last = "DAT_IW_EXTENSION_RANGE_BASE";
  const int events = 22;
#endif
  const int found = for_each("DAT_DTO_COMPLETION_EVENT", last, [](const Constant& constant) {
    // The first event of the InfiniBand extensions has the number of their range.
    const bool is_range = constant.name == "DAT_IB_EXTENSION_RANGE_BASE";
    CHECK_EQUAL(event(static_cast<int>(constant.value)), is_range ? "DAT_IB_DTO_EVENT" : constant.name);
  });
  CHECK_EQUAL(found, events);
}

#if DAPPLE_DAT_MAJOR != 1
void dat_event_str__spells_the_extensions() {
  CHECK_EQUAL(event(DAT_IB_UD_CONNECTION_REQUEST_EVENT), std::string("DAT_IB_UD_CONNECTION_REQUEST_EVENT"));
  CHECK_EQUAL(event(DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED), std::string("DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED"));
  CHECK_EQUAL(event(DAT_IB_UD_CONNECTION_REJECT_EVENT), std::string("DAT_IB_UD_CONNECTION_REJECT_EVENT"));
  CHECK_EQUAL(event(DAT_IB_UD_CONNECTION_ERROR_EVENT), std::string("DAT_IB_UD_CONNECTION_ERROR_EVENT"));
  CHECK_EQUAL(event(DAT_IB_COLLECTIVE_EVENT), std::string("DAT_IB_COLLECTIVE_EVENT"));
}
#endif

void dat_event_str__unknown_number_is_printable() {
  CHECK_EQUAL(event(0), std::string("unknown event"));
  CHECK_EQUAL(event(-1), std::string("unknown event"));
}

void dat_dto_status_str__spells_every_status() {
#if DAPPLE_DAT_MAJOR == 1
  const char* const last = "DAT_RMR_OPERATION_FAILED";
  const int statuses = 12;
#else
  const char* const last = "DAT_DTO_ERR_LOCAL_MM_ERROR";
  const int statuses = 13;
#endif
  const int found = for_each("DAT_DTO_SUCCESS", last, [](const Constant& constant) {
    CHECK_EQUAL(std::string(dat_dto_status_str(static_cast<DAT_DTO_COMPLETION_STATUS>(constant.value))), constant.name);
  });
  CHECK_EQUAL(found, statuses);
}

void dat_dto_status_str__unknown_status_is_printable() {
  CHECK_EQUAL(std::string(dat_dto_status_str(static_cast<DAT_DTO_COMPLETION_STATUS>(13))),
              std::string("unknown status"));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
    TEST(dat_event_str__spells_every_event),
#if DAPPLE_DAT_MAJOR != 1
    TEST(dat_event_str__spells_the_extensions),
#endif
    TEST(dat_event_str__unknown_number_is_printable),
    TEST(dat_dto_status_str__spells_every_status),
    TEST(dat_dto_status_str__unknown_status_is_printable),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
