// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/transitions.hpp"

#include "roce/psn.hpp"

namespace dapple::roce {
namespace {

struct Transition {
  QpState from;
  QpState to;
  uint32_t required[3];  // RC, UC, UD
  uint32_t optional[3];
};

constexpr uint32_t kRcMoves = kCurrentState | kAlternatePath | kAccessFlags | kMinRnrTimer | kPathMigration;
constexpr uint32_t kUcMoves = kCurrentState | kAlternatePath | kAccessFlags | kPathMigration;
constexpr uint32_t kUdMoves = kCurrentState | kQkey;
constexpr uint32_t kPathToPeer = kAddress | kPathMtu | kDestinationQpn | kReceivePsn;
constexpr uint32_t kConnectionOptions = kAlternatePath | kAccessFlags | kPkeyIndex;

constexpr Transition kTransitions[] = {
    {QpState::kReset,
     QpState::kInit,
     {kPkeyIndex | kPort | kAccessFlags, kPkeyIndex | kPort | kAccessFlags, kPkeyIndex | kPort | kQkey},
     {}},
    {QpState::kInit,
     QpState::kInit,
     {},
     {kPkeyIndex | kPort | kAccessFlags, kPkeyIndex | kPort | kAccessFlags, kPkeyIndex | kPort | kQkey}},
    {QpState::kInit,
     QpState::kRtr,
     {kPathToPeer | kMaxDestRdAtomic | kMinRnrTimer, kPathToPeer, 0},
     {kConnectionOptions, kConnectionOptions, kPkeyIndex | kQkey}},
    {QpState::kRtr,
     QpState::kRts,
     {kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxRdAtomic, kSendPsn, kSendPsn},
     {kRcMoves, kUcMoves, kUdMoves}},
    {QpState::kRts, QpState::kRts, {}, {kRcMoves, kUcMoves, kUdMoves}},
    {QpState::kRts, QpState::kSqd, {}, {kNotifyDrained, kNotifyDrained, kNotifyDrained}},
    {QpState::kSqd, QpState::kRts, {}, {kRcMoves, kUcMoves, kUdMoves}},
    {QpState::kSqd,
     QpState::kSqd,
     {},
     {kPort | kAddress | kTimeout | kRetryCount | kRnrRetry | kMaxRdAtomic | kMaxDestRdAtomic | kAlternatePath |
          kAccessFlags | kPkeyIndex | kMinRnrTimer | kPathMigration | kNotifyDrained,
      kPort | kAddress | kConnectionOptions | kPathMigration | kNotifyDrained, kPkeyIndex | kQkey | kNotifyDrained}},
    // A reliable queue pair has no such state: its errors stop both halves.
    {QpState::kSqe, QpState::kRts, {}, {0, kCurrentState | kAccessFlags, kUdMoves}},
};

int column_of(QpType type) {
  return type == QpType::kRc ? 0 : type == QpType::kUc ? 1 : 2;
}

}  // namespace

TransitionMasks transition_masks(QpType type, QpState from, QpState to) {
  // From anywhere; the other attributes mean nothing there.
  if (to == QpState::kReset || to == QpState::kError) return {.exists = true, .optional = kCurrentState};
  const int column = column_of(type);
  for (const Transition& transition : kTransitions) {
    if (transition.from != from || transition.to != to) continue;
    return {.exists = true, .required = transition.required[column], .optional = transition.optional[column]};
  }
  return {};
}

bool transition_allowed(QpType type, QpState from, QpState to, uint32_t mask) {
  const TransitionMasks masks = transition_masks(type, from, to);
  const uint32_t attributes = mask & ~static_cast<uint32_t>(kState);
  return masks.exists && (attributes & masks.required) == masks.required &&
         (attributes & ~(masks.required | masks.optional)) == 0;
}

bool values_possible(const QpAttributes& attributes, uint32_t mask) {
  const uint32_t mtu = attributes.path_mtu;
  if ((mask & kPathMtu) && mtu != 256 && mtu != 512 && mtu != 1024 && mtu != 2048 && mtu != 4096) return false;
  if ((mask & kTimeout) && attributes.timeout > 31) return false;
  if ((mask & kRetryCount) && attributes.retry_count > 7) return false;
  if ((mask & kRnrRetry) && attributes.rnr_retry > 7) return false;
  if ((mask & kMinRnrTimer) && attributes.min_rnr_timer > 31) return false;
  if ((mask & kDestinationQpn) && attributes.destination_qpn > 0xFFFFFF) return false;
  return true;
}

void apply(QpAttributes& attributes, const QpAttributes& changes, uint32_t mask) {
  if (mask & kNotifyDrained) attributes.notify_drained = changes.notify_drained;
  if (mask & kAccessFlags) attributes.access = changes.access;
  if (mask & kQkey) attributes.qkey = changes.qkey;
  if (mask & kPathMtu) attributes.path_mtu = changes.path_mtu;
  if (mask & kTimeout) attributes.timeout = changes.timeout;
  if (mask & kRetryCount) attributes.retry_count = changes.retry_count;
  if (mask & kRnrRetry) attributes.rnr_retry = changes.rnr_retry;
  if (mask & kMinRnrTimer) attributes.min_rnr_timer = changes.min_rnr_timer;
  if (mask & kReceivePsn) attributes.receive_psn = changes.receive_psn & kPsnMask;
  if (mask & kSendPsn) attributes.send_psn = changes.send_psn & kPsnMask;
  if (mask & kMaxRdAtomic) attributes.max_rd_atomic = changes.max_rd_atomic;
  if (mask & kMaxDestRdAtomic) attributes.max_dest_rd_atomic = changes.max_dest_rd_atomic;
  if (mask & kDestinationQpn) attributes.destination_qpn = changes.destination_qpn;
}

}  // namespace dapple::roce
