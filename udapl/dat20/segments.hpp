// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <dat2/udat.h>

#include <cstddef>
#include <span>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/ep.hpp"
#include "udapl/dat20/convert.hpp"

namespace dapple::dat20 {

// A local segment is a scatter/gather entry under another name.
static_assert(sizeof(DAT_LMR_TRIPLET) == sizeof(ibv_sge) &&
              offsetof(DAT_LMR_TRIPLET, virtual_address) == offsetof(ibv_sge, addr) &&
              offsetof(DAT_LMR_TRIPLET, segment_length) == offsetof(ibv_sge, length) &&
              offsetof(DAT_LMR_TRIPLET, lmr_context) == offsetof(ibv_sge, lkey));

struct Segments {
  std::span<const ibv_sge> list;
  DAT_RETURN status;
};

inline Segments to_segments(DAT_COUNT count, const DAT_LMR_TRIPLET* iov) {
  if (count < 0) return {{}, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2)};
  if (count > 0 && !iov) return {{}, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3)};
  return {{reinterpret_cast<const ibv_sge*>(iov), static_cast<size_t>(count)}, DAT_SUCCESS};
}

inline dat::RemoteBuffer to_remote(const DAT_RMR_TRIPLET& remote) {
  return {remote.virtual_address, remote.segment_length, remote.rmr_context};
}

}  // namespace dapple::dat20
