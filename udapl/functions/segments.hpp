// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The segment lists of posts in the form that verbs takes: 2.0's have that form already, 1.2's are copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/functions/convert.hpp"
#include "udapl/functions/dat.hpp"

namespace dapple::udapl::functions {

// count and iov are arguments 2 and 3 of the posting functions.
inline DAT_RETURN check_segments(DAT_COUNT count, const DAT_LMR_TRIPLET* iov) noexcept {
  if (count < 0) return wrong_argument(DAT_INVALID_ARG2, "it must not be negative");
  if (count > 0 && !iov) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  return kSuccess;
}

// The result of a posting function. flags: the number of its flags argument.
inline DAT_RETURN to_dat_of_post(const Result<>& result, DAT_RETURN_SUBTYPE flags) noexcept {
  return to_dat(
      result,
      {{Subtype::kSegmentCount, DAT_INVALID_ARG2}, {Subtype::kSegments, DAT_INVALID_ARG3}, {Subtype::kFlags, flags}});
}

#if DAPPLE_DAT_MAJOR == 1

// More than any device takes in one request.
inline constexpr uint32_t kMaxSegments = 256;

// Only the used elements are initialised. The object lives for the time of one post.
template <bool kIsReceive>
class SegmentList {
 public:
  SegmentList(DAT_COUNT count, const DAT_LMR_TRIPLET* iov) noexcept : count_(count), iov_(iov) {
    if (!iov || static_cast<uint32_t>(count) > kMaxSegments) return;
    constexpr uint64_t kLongest = std::numeric_limits<uint32_t>::max();
    for (uint32_t i = 0; i < static_cast<uint32_t>(count); ++i) {
      const DAT_LMR_TRIPLET& in = iov[i];
      // No message can fill so long a segment. For a receive, the part that a message can fill is sufficient.
      if (!kIsReceive && in.segment_length > kLongest) return;
      sges_[i] = {in.virtual_address, static_cast<uint32_t>(std::min(in.segment_length, kLongest)), in.lmr_context};
    }
    converted_ = true;
  }

  // Null if the list cannot be posted; status() then returns the reason, unless the list has no segments.
  const ibv_sge* data() const noexcept { return converted_ ? sges_ : nullptr; }
  DAT_RETURN status() const noexcept {
    if (const DAT_RETURN bad = check_segments(count_, iov_)) return bad;
    if (static_cast<uint32_t>(count_) > kMaxSegments) {
      expect_at_most(kMaxSegments);
      return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    }
    if (converted_ || count_ == 0) return kSuccess;
    return wrong_argument(DAT_INVALID_ARG3, "a segment has 4 GiB or more");
  }
  std::span<const ibv_sge> span() const noexcept { return {data(), static_cast<size_t>(count_)}; }

 private:
  DAT_COUNT count_;
  const DAT_LMR_TRIPLET* iov_;
  bool converted_ = false;
  ibv_sge sges_[kMaxSegments];  // NOLINT(cppcoreguidelines-pro-type-member-init): see above
};

inline RemoteBuffer to_remote(const DAT_RMR_TRIPLET& remote) noexcept {
  return {remote.target_address, remote.segment_length, remote.rmr_context};
}

#else

// A local segment is a scatter/gather entry under another name.
static_assert(sizeof(DAT_LMR_TRIPLET) == sizeof(ibv_sge) &&
              offsetof(DAT_LMR_TRIPLET, virtual_address) == offsetof(ibv_sge, addr) &&
              offsetof(DAT_LMR_TRIPLET, segment_length) == offsetof(ibv_sge, length) &&
              offsetof(DAT_LMR_TRIPLET, lmr_context) == offsetof(ibv_sge, lkey));

template <bool kIsReceive>
class SegmentList {
 public:
  SegmentList(DAT_COUNT count, const DAT_LMR_TRIPLET* iov) noexcept : count_(count), iov_(iov) {}

  const ibv_sge* data() const noexcept { return reinterpret_cast<const ibv_sge*>(iov_); }
  DAT_RETURN status() const noexcept { return check_segments(count_, iov_); }
  std::span<const ibv_sge> span() const noexcept { return {data(), static_cast<size_t>(count_)}; }

 private:
  DAT_COUNT count_;
  const DAT_LMR_TRIPLET* iov_;
};

inline RemoteBuffer to_remote(const DAT_RMR_TRIPLET& remote) noexcept {
  return {remote.virtual_address, remote.segment_length, remote.rmr_context};
}

#endif

using RequestSegments = SegmentList<false>;
using ReceiveSegments = SegmentList<true>;

}  // namespace dapple::udapl::functions
