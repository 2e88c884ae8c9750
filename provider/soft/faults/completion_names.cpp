// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/completion_names.hpp"

namespace dapple::soft {
namespace {

template <typename Value>
struct Name {
  std::string_view name;
  Value value;
};

constexpr Name<roce::CompletionStatus> kStatuses[] = {
    {"SUCCESS", roce::CompletionStatus::kSuccess},
    {"LOC_LEN_ERR", roce::CompletionStatus::kLocalLength},
    {"LOC_QP_OP_ERR", roce::CompletionStatus::kLocalQpOperation},
    {"LOC_PROT_ERR", roce::CompletionStatus::kLocalProtection},
    {"WR_FLUSH_ERR", roce::CompletionStatus::kFlushed},
    {"MW_BIND_ERR", roce::CompletionStatus::kWindowBind},
    {"BAD_RESP_ERR", roce::CompletionStatus::kBadResponse},
    {"LOC_ACCESS_ERR", roce::CompletionStatus::kLocalAccess},
    {"REM_INV_REQ_ERR", roce::CompletionStatus::kRemoteInvalidRequest},
    {"REM_ACCESS_ERR", roce::CompletionStatus::kRemoteAccess},
    {"REM_OP_ERR", roce::CompletionStatus::kRemoteOperation},
    {"RETRY_EXC_ERR", roce::CompletionStatus::kRetryExceeded},
    {"RNR_RETRY_EXC_ERR", roce::CompletionStatus::kRnrRetryExceeded},
};

constexpr Name<roce::CompletionOpcode> kCompletionOpcodes[] = {
    {"SEND", roce::CompletionOpcode::kSend},
    {"RDMA_WRITE", roce::CompletionOpcode::kWrite},
    {"RDMA_READ", roce::CompletionOpcode::kRead},
    {"COMP_SWAP", roce::CompletionOpcode::kCompareSwap},
    {"FETCH_ADD", roce::CompletionOpcode::kFetchAdd},
    {"BIND_MW", roce::CompletionOpcode::kBindWindow},
    {"LOCAL_INV", roce::CompletionOpcode::kLocalInvalidate},
    {"FLUSH", roce::CompletionOpcode::kFlush},
    {"ATOMIC_WRITE", roce::CompletionOpcode::kAtomicWrite},
    {"RECV", roce::CompletionOpcode::kReceive},
    {"RECV_RDMA_WITH_IMM", roce::CompletionOpcode::kReceiveWriteImmediate},
};

constexpr Name<roce::SendOpcode> kSendOpcodes[] = {
    {"RDMA_WRITE", roce::SendOpcode::kWrite},
    {"RDMA_WRITE_WITH_IMM", roce::SendOpcode::kWriteImmediate},
    {"SEND", roce::SendOpcode::kSend},
    {"SEND_WITH_IMM", roce::SendOpcode::kSendImmediate},
    {"RDMA_READ", roce::SendOpcode::kRead},
    {"ATOMIC_CMP_AND_SWP", roce::SendOpcode::kCompareSwap},
    {"ATOMIC_FETCH_AND_ADD", roce::SendOpcode::kFetchAdd},
    {"LOCAL_INV", roce::SendOpcode::kLocalInvalidate},
    {"BIND_MW", roce::SendOpcode::kBindWindow},
    {"SEND_WITH_INV", roce::SendOpcode::kSendInvalidate},
    {"FLUSH", roce::SendOpcode::kFlush},
    {"ATOMIC_WRITE", roce::SendOpcode::kAtomicWrite},
};

template <typename Value, size_t kCount>
std::string_view name_in(const Name<Value> (&names)[kCount], Value value) {
  for (const Name<Value>& candidate : names) {
    if (candidate.value == value) return candidate.name;
  }
  return "unknown";
}

}  // namespace

std::string_view status_name(roce::CompletionStatus status) {
  return name_in(kStatuses, status);
}

roce::CompletionStatus status_of(std::string_view name) {
  for (const auto& candidate : kStatuses) {
    if (candidate.name == name) return candidate.value;
  }
  return roce::CompletionStatus::kSuccess;
}

std::string_view opcode_name(roce::CompletionOpcode opcode) {
  return name_in(kCompletionOpcodes, opcode);
}

std::string_view opcode_name(roce::SendOpcode opcode) {
  return name_in(kSendOpcodes, opcode);
}

}  // namespace dapple::soft
