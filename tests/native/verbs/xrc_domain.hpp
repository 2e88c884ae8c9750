// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// XRC domains of files, and their receiving queue pairs.
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>

namespace dapple::tests {

inline ibv_xrcd* open_domain(ibv_context* context, int fd, int flags) {
  ibv_xrcd_init_attr attr = {};
  attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attr.fd = fd;
  attr.oflags = flags;
  errno = 0;
  return ibv_open_xrcd(context, &attr);
}

inline ibv_qp* make_receiver(ibv_xrcd* domain) {
  ibv_qp_init_attr_ex attr = {};
  attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  attr.qp_type = IBV_QPT_XRC_RECV;
  attr.xrcd = domain;
  errno = 0;
  return ibv_create_qp_ex(domain->context, &attr);
}

}  // namespace dapple::tests
