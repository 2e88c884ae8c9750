// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/functions.hpp"
#include "udapl/functions/segments.hpp"

namespace dapple::udapl::functions {

static_assert(static_cast<int>(SrqReason::kTransferToError) == DAT_SRQ_TRANSFER_TO_ERROR &&
              static_cast<int>(SrqReason::kLowWatermark) == DAT_SRQ_LOW_WATERMARK_EVENT);

namespace {

bool is_sensible(const DAT_SRQ_ATTR& attr) {
  if (attr.max_recv_dtos <= 0) {
    expect_of("max_recv_dtos", attr.max_recv_dtos, "it must be above 0");
  } else if (attr.max_recv_iov < 0) {
    expect_of("max_recv_iov", attr.max_recv_iov, "it must not be negative");
  } else if (attr.low_watermark < 0) {
    expect_of("low_watermark", attr.low_watermark, "it must not be negative");
  } else {
    return true;
  }
  return false;
}

}  // namespace

DAT_RETURN srq_create(Ia& ia, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR* attr, DAT_SRQ_HANDLE* srq_handle) {
  auto* pz = find_object<Pz>(pz_handle, ia);
  if (!pz) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
  if (!attr || !is_sensible(*attr)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  if (!srq_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  return controlled(
      [&] {
        return store(Srq::create(ia, *pz,
                                 {.max_recv_dtos = static_cast<uint32_t>(attr->max_recv_dtos),
                                  .max_recv_iov = static_cast<uint32_t>(attr->max_recv_iov),
                                  .low_watermark = static_cast<uint32_t>(attr->low_watermark)}),
                     srq_handle);
      },
      {{Subtype::kAttr, DAT_INVALID_ARG3}});
}

DAT_RETURN srq_query(Srq& srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM* param) {
  if (auto status = check_query(mask, DAT_SRQ_FIELD_ALL, param)) return status;
  return controlled([&] {
    const SrqCounts counts = srq.count();
    *param = {};
    param->ia_handle = consumer_handle(srq.ia());
    param->srq_state = srq.failed() ? DAT_SRQ_STATE_ERROR : DAT_SRQ_STATE_OPERATIONAL;
    param->pz_handle = &srq.pz();
    param->max_recv_dtos = static_cast<DAT_COUNT>(srq.attr().max_recv_dtos);
    param->max_recv_iov = static_cast<DAT_COUNT>(srq.attr().max_recv_iov);
    param->low_watermark = static_cast<DAT_COUNT>(srq.attr().low_watermark);
    param->available_dto_count = static_cast<DAT_COUNT>(counts.available);
    param->outstanding_dto_count = static_cast<DAT_COUNT>(counts.outstanding);
    return kSuccess;
  });
}

DAT_RETURN srq_resize(Srq& srq, DAT_COUNT max_recv_dtos) {
  if (max_recv_dtos <= 0) return wrong_argument(DAT_INVALID_ARG2, "it must be above 0");
  return controlled([&] { return srq.resize(static_cast<uint32_t>(max_recv_dtos)); },
                    {{Subtype::kAttr, DAT_INVALID_ARG2}});
}

DAT_RETURN srq_set_lw(Srq& srq, DAT_COUNT low_watermark) {
  if (low_watermark < 0) return wrong_argument(DAT_INVALID_ARG2, "it must not be negative");
  return controlled([&] { return srq.set_low_watermark(static_cast<uint32_t>(low_watermark)); },
                    {{Subtype::kAttr, DAT_INVALID_ARG2}});
}

DAT_RETURN srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie) {
  auto* srq = object_of<Srq>(srq_handle);
  if (!srq) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
  const ReceiveSegments segments(count, iov);
  if (auto status = segments.status()) return status;
  return to_dat(srq->post_recv(segments.span(), cookie.as_64), {{Subtype::kSegmentCount, DAT_INVALID_ARG2}});
}

DAT_RETURN srq_free(Srq& srq) {
  return controlled([&] { return Srq::free(srq); });
}

}  // namespace dapple::udapl::functions
