// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/refusals/refusal.hpp"

#include <errno.h>
#include <string.h>

#include <string>

#include "provider/network/address_text.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "roce/core/transitions.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
namespace roce = dapple::roce;

namespace {

// The first test, because nothing ends the explanations of a process.
void refuse__without_explanations__keeps_nothing(void**) {
  assert_false(explains_refusals());
  assert_int_equal(refuse(EINVAL, "a is %d.\nSet a.", 1), EINVAL);
  assert_int_equal(refusal().error, 0);
  assert_int_equal(refuse_by_plan(ENOMEM), ENOMEM);
  assert_false(refusal().is_planned);
}

void refuse__with_explanations__keeps_the_last_reason(void**) {
  explain_refusals();
  errno = ERANGE;
  assert_int_equal(refuse_by_plan(EINVAL), EINVAL);
  assert_true(refusal().is_planned);
  assert_int_equal(refuse(EBUSY, "a is %d.\nSet a.", 1), EBUSY);
  assert_int_equal(errno, ERANGE);
  assert_int_equal(refusal().error, EBUSY);
  assert_false(refusal().is_planned);
  assert_string_equal(refusal().text, "a is 1.\nSet a.");
  assert_int_equal(refusal_error(EBUSY), EBUSY);
  forget_refusal();
  assert_int_equal(refusal().error, 0);
}

void refuse__long_reason__is_cut(void**) {
  const std::string reason(2 * Refusal::kSize, 'x');
  refuse(EINVAL, "%s\nSet it.", reason.c_str());
  assert_int_equal(strlen(refusal().text), Refusal::kSize - 1);
}

void attribute_names__bits__are_a_list(void**) {
  assert_string_equal(attribute_names(IBV_QP_STATE).c_str(), "IBV_QP_STATE");
  assert_string_equal(attribute_names(IBV_QP_STATE | IBV_QP_AV).c_str(), "IBV_QP_STATE and IBV_QP_AV");
  assert_string_equal(attribute_names(IBV_QP_AV | IBV_QP_PORT | 1 << 30).c_str(),
                      "IBV_QP_PORT, IBV_QP_AV and 0x40000000");
  assert_string_equal(attribute_names(0).c_str(), "");
  assert_string_equal(attribute_member(IBV_QP_RQ_PSN | IBV_QP_SQ_PSN), "rq_psn");
}

void attribute_names__all_bits__fit(void**) {
  const std::string all = attribute_names(~0u).c_str();
  assert_true(all.starts_with("IBV_QP_STATE, "));
  assert_true(all.size() < 480);
}

void names__values_beyond_the_constants__are_no_names(void**) {
  assert_string_equal(state_name(IBV_QPS_RTS), "IBV_QPS_RTS");
  assert_string_equal(state_name(7), "an unknown state");
  assert_string_equal(state_name(-1), "an unknown state");
  assert_string_equal(mtu_name(IBV_MTU_256), "IBV_MTU_256");
  assert_string_equal(mtu_name(1024), "no MTU");
  assert_string_equal(access_names(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC).c_str(),
                      "IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_REMOTE_ATOMIC");
}

void address_text__both_families__are_addresses(void**) {
  const uint8_t ipv4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1};
  const uint8_t ipv6[16] = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  assert_string_equal(AddressText(ipv4).c_str(), "10.0.0.1");
  assert_string_equal(AddressText(ipv6).c_str(), "fe80::1");
  assert_string_equal(AddressText(ipv4, 4420).c_str(), "10.0.0.1:4420");
  assert_string_equal(AddressText(ipv6, 4420).c_str(), "[fe80::1]:4420");
}

void transition_masks__each_transition__agrees_with_what_is_allowed(void**) {
  for (const roce::QpType type : {roce::QpType::kRc, roce::QpType::kUc, roce::QpType::kUd}) {
    for (int from = 0; from <= IBV_QPS_ERR; from++) {
      for (int to = 0; to <= IBV_QPS_ERR; to++) {
        const auto before = static_cast<roce::QpState>(from), after = static_cast<roce::QpState>(to);
        const roce::TransitionMasks masks = roce::transition_masks(type, before, after);
        assert_int_equal(roce::transition_allowed(type, before, after, roce::kState | masks.required), masks.exists);
        assert_int_equal(roce::transition_allowed(type, before, after, masks.required | masks.optional), masks.exists);
        for (uint32_t bit = roce::kCurrentState; bit <= roce::kDestinationQpn; bit <<= 1) {
          const bool is_known = ((masks.required | masks.optional) & bit) != 0;
          assert_int_equal(roce::transition_allowed(type, before, after, masks.required | bit),
                           masks.exists && is_known);
          if ((masks.required & bit) != 0)
            assert_false(roce::transition_allowed(type, before, after, masks.required & ~bit));
        }
      }
    }
  }
}

// As in the kernel, not even the present state.
void transition_masks__to_reset_and_error__take_no_attributes(void**) {
  for (const roce::QpType type : {roce::QpType::kRc, roce::QpType::kUc, roce::QpType::kUd, roce::QpType::kXrcSend,
                                  roce::QpType::kXrcReceive, roce::QpType::kRawPacket}) {
    for (int from = 0; from <= IBV_QPS_ERR; from++) {
      for (const roce::QpState to : {roce::QpState::kReset, roce::QpState::kError}) {
        const auto before = static_cast<roce::QpState>(from);
        assert_true(roce::transition_allowed(type, before, to, roce::kState));
        for (uint32_t bit = roce::kCurrentState; bit <= roce::kDestinationQpn; bit <<= 1)
          assert_false(roce::transition_allowed(type, before, to, roce::kState | bit));
      }
    }
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(refuse__without_explanations__keeps_nothing),
      cmocka_unit_test(refuse__with_explanations__keeps_the_last_reason),
      cmocka_unit_test(refuse__long_reason__is_cut),
      cmocka_unit_test(attribute_names__bits__are_a_list),
      cmocka_unit_test(attribute_names__all_bits__fit),
      cmocka_unit_test(names__values_beyond_the_constants__are_no_names),
      cmocka_unit_test(address_text__both_families__are_addresses),
      cmocka_unit_test(transition_masks__each_transition__agrees_with_what_is_allowed),
      cmocka_unit_test(transition_masks__to_reset_and_error__take_no_attributes),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
