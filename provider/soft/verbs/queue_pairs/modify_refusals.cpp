// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/verbs/queue_pairs/modify_refusals.hpp"

#include <errno.h>

#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "roce/core/transitions.hpp"

namespace dapple::soft::verbs {
namespace {

using roce::QpState;

constexpr QpState kStates[] = {QpState::kReset, QpState::kInit, QpState::kRtr,  QpState::kRts,
                               QpState::kSqd,   QpState::kSqe,  QpState::kError};

const char* name_of(QpState state) {
  return state_name(static_cast<int>(state));
}

// The states that follow `from`.
ShortText following(roce::QpType type, QpState from) {
  ShortText list;
  for (const QpState to : kStates) {
    if (to != from && roce::transition_masks(type, from, to).exists)
      list.add("%s%s", list.empty() ? "" : ", ", name_of(to));
  }
  return list;
}

// A queue pair gets each attribute first in one of these.
void refuse_forbidden(const Qp& qp, QpState from, QpState to, uint32_t forbidden) {
  const auto type = static_cast<roce::QpType>(qp.init.qp_type);
  static constexpr QpState kWay[][2] = {
      {QpState::kReset, QpState::kInit}, {QpState::kInit, QpState::kRtr}, {QpState::kRtr, QpState::kRts}};
  ShortText remedy;
  uint32_t left = forbidden;
  for (const auto& [before, after] : kWay) {
    const uint32_t there = left & roce::transition_masks(type, before, after).required;
    left &= ~there;
    if (there != 0) {
      remedy.add("Set %s in the change from %s to %s. ", attribute_names(there).c_str(), name_of(before),
                 name_of(after));
    }
  }
  if (left != 0) remedy.add("Leave %s out.", attribute_names(left).c_str());
  refuse(EINVAL, "attr_mask has %s, which the change of a queue pair of type %s from %s to %s does not take.\n%s",
         attribute_names(forbidden).c_str(), type_name(qp.init.qp_type), name_of(from), name_of(to), remedy.c_str());
}

void refuse_range(const char* member, unsigned value, unsigned most, const char* meaning) {
  refuse(EINVAL, "%s is %u, and its field has values up to %u.\n%s", member, value, most, meaning);
}

// False if all are possible.
bool refuse_values(const ibv_qp_attr& attr, uint32_t mask) {
  if ((mask & roce::kTimeout) != 0 && attr.timeout > 31) {
    refuse_range("timeout", attr.timeout, 31, "Set timeout to the exponent n of 4.096 us * 2^n: 14 is 67 ms.");
  } else if ((mask & roce::kRetryCount) != 0 && attr.retry_cnt > 7) {
    refuse_range("retry_cnt", attr.retry_cnt, 7, "Set retry_cnt to a number of retries from 0 to 7.");
  } else if ((mask & roce::kRnrRetry) != 0 && attr.rnr_retry > 7) {
    refuse_range("rnr_retry", attr.rnr_retry, 7, "Set rnr_retry to a number from 0 to 6, or to 7 to retry for ever.");
  } else if ((mask & roce::kMinRnrTimer) != 0 && attr.min_rnr_timer > 31) {
    refuse_range("min_rnr_timer", attr.min_rnr_timer, 31,
                 "Set min_rnr_timer to a code of ibv_modify_qp(3), not to a time: 12 is 0.64 ms.");
  } else if ((mask & roce::kDestinationQpn) != 0 && attr.dest_qp_num > 0xFFFFFF) {
    refuse_range("dest_qp_num", attr.dest_qp_num, 0xFFFFFF,
                 "Set dest_qp_num to the peer's qp_num; compare the byte order in which the peer sends it.");
  } else {
    return false;
  }
  return true;
}

}  // namespace

void refuse_modify(const Qp& qp, const ibv_qp_attr& attr, uint32_t mask) {
  assert_held(qp.mutex);
  const auto type = static_cast<roce::QpType>(qp.init.qp_type);
  const QpState from = qp.engine->state();
  const QpState to = (mask & roce::kState) != 0 ? static_cast<QpState>(attr.qp_state) : from;
  const char* kind = type_name(qp.init.qp_type);
  if ((mask & roce::kCurrentState) != 0 && static_cast<QpState>(attr.cur_qp_state) != from) {
    refuse(EINVAL,
           "cur_qp_state is %s, and the queue pair is in %s.\nSet cur_qp_state to the present state, or leave "
           "IBV_QP_CUR_STATE out.",
           state_name(attr.cur_qp_state), name_of(from));
    return;
  }
  const roce::TransitionMasks masks = roce::transition_masks(type, from, to);
  const uint32_t given = mask & ~uint32_t{roce::kState};
  if (!masks.exists && (mask & roce::kState) == 0) {
    refuse(EINVAL,
           "attr_mask lacks IBV_QP_STATE, and a queue pair in %s takes no attributes without a change of its "
           "state.\nSet qp_state, and IBV_QP_STATE in attr_mask.",
           name_of(from));
    return;
  }
  if (!masks.exists) {
    refuse(EINVAL,
           "the queue pair is in %s, from which a queue pair of type %s cannot change to %s.\n"
           "Change it to one of these first: %s.",
           name_of(from), kind, name_of(to), following(type, from).c_str());
    return;
  }
  if (const uint32_t missing = masks.required & ~given; missing != 0) {
    refuse(EINVAL,
           "attr_mask lacks %s, which the change of a queue pair of type %s from %s to %s needs.\n"
           "Set the members (%s%s) and their bits.",
           attribute_names(missing).c_str(), kind, name_of(from), name_of(to), attribute_member(missing),
           (missing & (missing - 1)) == 0 ? "" : " and so on");
    return;
  }
  if (const uint32_t forbidden = given & ~(masks.required | masks.optional); forbidden != 0) {
    refuse_forbidden(qp, from, to, forbidden);
    return;
  }
  if (refuse_values(attr, mask)) return;
  refuse(EINVAL,
         "the process has no memory for the queue pair's Reads and atomics.\n"
         "Set a smaller max_dest_rd_atomic, or free memory.");
}

}  // namespace dapple::soft::verbs
