// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The objects for the tables of wrong arguments: one valid object of each kind with everything that it needs, a freed
// one, and one of another IA.
#pragma once

extern "C" {
#include "tests/softroce/api/api.h"
}
#include <cstdint>

namespace arguments {

enum Kind { kIa, kPz, kLmr, kRmr, kEvd, kCno, kEp, kSrq, kPsp, kRsp, ONLY_20(kCsp, ) kCr, kKinds };

// A plain structure, so that a failed assertion may leave the function that fills it.
struct World {
  fixture f;  // an IA whose two ends are connected
  fixture other;
  DAT_HANDLE good[kKinds];   // EP: unconnected; RMR: unbound, null on iWARP; CR: not answered; EVD: every stream, used
                             // by nobody
  DAT_HANDLE freed[kKinds];  // of each kind
  DAT_HANDLE foreign[kKinds];  // of another IA; null for kinds that are never a further argument

  DAT_EVD_HANDLE full_evd;      // every stream; the EPs below use it
  DAT_EP_HANDLE bind_ep;        // connected; windows can be bound on it
  DAT_EP_HANDLE other_zone_ep;  // the same with another PZ
  DAT_EP_HANDLE srq_ep;         // unconnected, with an SRQ
  DAT_EP_HANDLE reserved_ep;    // reserved by good[kRsp]
  DAT_EP_HANDLE bare_ep;        // no PZ, no EVD
  DAT_EP_HANDLE requesting_ep;  // its request is good[kCr]
  DAT_SRQ_HANDLE used_srq;      // used by srq_ep
  DAT_PZ_HANDLE spare_pz;       // used by nobody but other_zone_ep
  DAT_PZ_HANDLE free_pz;        // used by nobody
  DAT_LMR_HANDLE read_only_lmr;
  DAT_LMR_CONTEXT read_only_context;
  DAT_EVD_HANDLE plain_evd;  // software events only
  ONLY_20(DAT_CNO_HANDLE fd_cno;)
  DAT_CNO_HANDLE used_cno;  // used by full_evd
  ONLY_20(DAT_FD fd;)
};

// For cmocka: state points to a World.
int set_up_world(void** state);
int tear_down_world(void** state);

// The results of all queries on all valid objects, as one number that changes with any of them.
uint64_t fingerprint(const World& w);
// Waits until the number has been the same for 100 ms, because a correct call may have started something, such as a
// connection.
void settle(const World& w);

}  // namespace arguments
