// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The differences between kinds of devices. The data path and the connections ask for a rule, never for a device.
#pragma once

#include <cstdint>

#include "ibverbs-glue/verbs.hpp"

namespace dapple::udapl {

struct DeviceRules {
  // The transport: iWARP (RFC 5040, RFC 5044), otherwise InfiniBand or RoCE.
  bool iwarp;
  // Two software devices.
  bool siw;
  bool rxe;

  // ---- iWARP ----
  bool has_immediate_data = !iwarp;  // of RDMA Writes
  bool has_datagrams = !iwarp;
  // A registration may choose the address that peers and segments use. siw ignores the choice; other iWARP devices are
  // not known.
  bool has_zero_based = !iwarp;
  bool reads_into_one_segment = iwarp;
  // A queue pair accepts receives from the state INIT on, not from the start.
  bool receives_need_init = !iwarp;
  // A queue pair enters the error state by itself only when something has failed. On iWARP the kernel also puts it
  // there when the peer disconnects.
  bool error_state_is_a_failure = !iwarp;
  // A device that refuses a peer's request tells the peer's device, and a disconnect must not overtake that.
  bool tells_peer_of_refusals = !iwarp;
  // A rejected connection has a reason code.
  bool rejects_with_reason = !iwarp;
  // An RDMA Write of 0 bytes needs no valid key.
  bool ignores_key_of_empty_write = !iwarp || siw;

  // ---- software iWARP (siw) ----
  // A request that is posted in the error state is flushed. siw flushes the requests that it finds when a queue pair
  // enters that state, and ignores later ones.
  bool flushes_late_requests = !siw;
  // A receive or an RDMA Read may have no segment (ibverbs-glue/no_segments.hpp).
  bool takes_no_segments = !siw;
  // A receive notifies a CQ that was armed for solicited events.
  bool notifies_of_solicited_receives = !siw;
  // libsiw would send a key other than the request's.
  bool sends_right_key_to_invalidate = !siw;
  // siw counts pages in 32 bits and uses a count that overflowed.
  uint64_t max_pages_of_a_region = siw ? UINT64_C(1) << 31 : UINT64_MAX;

  // ---- Soft-RoCE (rxe) ----
  // The flags of a receive whose Send has invalidated one of our windows. rxe passes the kernel's flags on unchanged,
  // and the kernel's flag is bit 2. In verbs that bit means a good IP checksum, which an RC queue pair never reports.
  unsigned int invalidation_flags = IBV_WC_WITH_INV | (rxe ? 1U << 2 : 0U);

  // The vendor id identifies the software devices. siw has its author's initials there.
  static DeviceRules of(const ibv_context& context, const ibv_device_attr& device) {
    const bool iwarp = verbs::is_iwarp(context);
    return {
        .iwarp = iwarp, .siw = iwarp && device.vendor_id == 0x626d74, .rxe = !iwarp && device.vendor_id == 0xffffff};
  }
};

}  // namespace dapple::udapl
