// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tag_matching/tag_memory.hpp"

#include <algorithm>

namespace dapple::soft {
namespace {

// The bytes of a loan behind its first ones.
class RestOfLoan final : public roce::Loan {
 public:
  RestOfLoan(const roce::Loan& whole, uint64_t begin)
      : Loan(whole.length() - begin, whole.packets()), whole_(whole), begin_(begin) {}
  bool copy(uint64_t offset, std::byte* to, size_t size) const override {
    return whole_.copy(begin_ + offset, to, size);
  }

 private:
  const roce::Loan& whole_;
  const uint64_t begin_;
};

// Of `size` bytes at `offset`, those among the first `skipped` ones.
uint64_t part_without_memory(uint64_t skipped, uint64_t offset, uint64_t size) {
  return offset >= skipped ? 0 : std::min(skipped - offset, size);
}

}  // namespace

roce::Fault TagMemory::scatter(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                               const std::byte* from, size_t size) {
  const uint64_t skipped = receives_.skipped(segments);
  if (skipped == 0) return below_.scatter(who, segments, offset, from, size);
  const uint64_t left_out = part_without_memory(skipped, offset, size);
  if (left_out == size) return roce::Fault::kNone;
  return below_.scatter(who, segments.subspan(1), offset + left_out - skipped, from + left_out, size - left_out);
}

roce::Fault TagMemory::scatter_loan(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                                    const roce::Loan& loan) {
  const uint64_t skipped = receives_.skipped(segments);
  if (skipped == 0) return below_.scatter_loan(who, segments, offset, loan);
  const uint64_t left_out = part_without_memory(skipped, offset, loan.length());
  if (left_out == loan.length()) return roce::Fault::kNone;
  if (left_out == 0) return below_.scatter_loan(who, segments.subspan(1), offset - skipped, loan);
  return below_.scatter_loan(who, segments.subspan(1), 0, RestOfLoan(loan, left_out));
}

}  // namespace dapple::soft
