// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/core/transitions.hpp"

#include "roce/packet/psn.hpp"

namespace dapple::roce {
namespace {

enum Column { kColumnRc, kColumnUc, kColumnUd, kColumnXrcSend, kColumnXrcReceive, kColumnRawPacket, kColumns };

struct Transition {
  QpState from;
  QpState to;
  uint32_t required[kColumns];
  uint32_t optional[kColumns];
};

constexpr uint32_t kRcMoves = kCurrentState | kAlternatePath | kAccessFlags | kMinRnrTimer | kPathMigration;
constexpr uint32_t kUcMoves = kCurrentState | kAlternatePath | kAccessFlags | kPathMigration;
constexpr uint32_t kUdMoves = kCurrentState | kQkey;
constexpr uint32_t kOfConnection = kPkeyIndex | kPort | kAccessFlags;
constexpr uint32_t kPathToPeer = kAddress | kPathMtu | kDestinationQpn | kReceivePsn;
constexpr uint32_t kConnectionOptions = kAlternatePath | kAccessFlags | kPkeyIndex;
constexpr uint32_t kOfRequester = kTimeout | kRetryCount | kRnrRetry | kMaxRdAtomic;
constexpr uint32_t kOfResponder = kMaxDestRdAtomic | kMinRnrTimer;
constexpr uint32_t kDrainedChanges = kPort | kAddress | kConnectionOptions | kPathMigration | kNotifyDrained;

// The sending end of XRC has the attributes of a requester, and the receiving end those of a responder. As in the
// kernel, the receiving end has a timeout, too. A raw packet queue pair has a port and nothing else.
constexpr Transition kTransitions[] = {
    {QpState::kReset,
     QpState::kInit,
     {kOfConnection, kOfConnection, kPkeyIndex | kPort | kQkey, kOfConnection, kOfConnection, kPort},
     {}},
    {QpState::kInit,
     QpState::kInit,
     {},
     {kOfConnection, kOfConnection, kPkeyIndex | kPort | kQkey, kOfConnection, kOfConnection}},
    {QpState::kInit,
     QpState::kRtr,
     {kPathToPeer | kOfResponder, kPathToPeer, 0, kPathToPeer, kPathToPeer | kOfResponder},
     {kConnectionOptions, kConnectionOptions, kPkeyIndex | kQkey, kConnectionOptions, kConnectionOptions}},
    {QpState::kRtr,
     QpState::kRts,
     {kOfRequester | kSendPsn, kSendPsn, kSendPsn, kOfRequester | kSendPsn, kTimeout | kSendPsn},
     {kRcMoves, kUcMoves, kUdMoves, kUcMoves, kRcMoves}},
    {QpState::kRts, QpState::kRts, {}, {kRcMoves, kUcMoves, kUdMoves, kUcMoves, kRcMoves}},
    {QpState::kRts,
     QpState::kSqd,
     {},
     {kNotifyDrained, kNotifyDrained, kNotifyDrained, kNotifyDrained, kNotifyDrained}},
    {QpState::kSqd, QpState::kRts, {}, {kRcMoves, kUcMoves, kUdMoves, kUcMoves, kRcMoves}},
    {QpState::kSqd,
     QpState::kSqd,
     {},
     {kDrainedChanges | kOfRequester | kOfResponder, kDrainedChanges, kPkeyIndex | kQkey | kNotifyDrained,
      kDrainedChanges | kOfRequester, kDrainedChanges | kTimeout | kOfResponder}},
    // A reliable queue pair has no such state: its errors stop both halves.
    {QpState::kSqe, QpState::kRts, {}, {0, kCurrentState | kAccessFlags, kUdMoves, 0, 0}},
};

Column column_of(QpType type) {
  switch (type) {
    case QpType::kRc:
      return kColumnRc;
    case QpType::kUc:
      return kColumnUc;
    case QpType::kUd:
      return kColumnUd;
    case QpType::kXrcSend:
      return kColumnXrcSend;
    case QpType::kRawPacket:
      return kColumnRawPacket;
    case QpType::kXrcReceive:
      break;
  }
  return kColumnXrcReceive;
}

}  // namespace

TransitionMasks transition_masks(QpType type, QpState from, QpState to) {
  // From anywhere. As in the kernel, these changes take no attributes.
  if (to == QpState::kReset || to == QpState::kError) return {.exists = true};
  const Column column = column_of(type);
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
