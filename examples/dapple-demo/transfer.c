/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "transfer.h"

#include "events.h"
#include "report.h"

struct flow {
  struct session* session;
  enum direction direction;
  unsigned outstanding;
};

static void await_one(struct flow* flow) {
  await_completion(flow->session, flow->session->request_evd,
                   flow->direction == kRdmaWrite ? "the completion of an RDMA Write" : "the completion of an RDMA Read",
                   NULL);
  flow->outstanding--;
}

static void post(struct flow* flow, DAT_LMR_TRIPLET local, DAT_RMR_TRIPLET remote) {
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = 0;
  if (flow->outstanding == kMaxRequests) {
    await_one(flow);
  }
  if (flow->direction == kRdmaWrite) {
    must(dat_ep_post_rdma_write(flow->session->ep, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
         "dat_ep_post_rdma_write", "is the peer alive?");
  } else {
    must(dat_ep_post_rdma_read(flow->session->ep, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
         "dat_ep_post_rdma_read", "is the peer alive?");
  }
  flow->outstanding++;
}

void transfer(struct session* session, enum direction direction, const struct region* local, size_t offset,
              uint64_t remote_address, DAT_RMR_CONTEXT rmr_context, uint64_t length, unsigned times) {
  struct flow flow = {session, direction, 0};
  uint64_t largest_piece = session->ia_attr.max_rdma_size;
  while (times-- > 0) {
    for (uint64_t done = 0; done < length;) {
      uint64_t piece = length - done < largest_piece ? length - done : largest_piece;
      DAT_RMR_TRIPLET remote;
      set_remote_address(&remote, remote_address + done);
      remote.segment_length = (segment_length)piece;
      remote.rmr_context = rmr_context;
      post(&flow, region_segment(local, offset + done, piece), remote);
      done += piece;
    }
  }
  while (flow.outstanding > 0) {
    await_one(&flow);
  }
}
