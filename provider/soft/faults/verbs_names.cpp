// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/verbs_names.hpp"

#include "provider/system/name_table.hpp"

namespace dapple::soft {
namespace {

constexpr Named<roce::CompletionStatus> kStatuses[] = {
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
    {"TM_ERR", roce::CompletionStatus::kTagError},
    {"TM_RNDV_INCOMPLETE", roce::CompletionStatus::kRendezvousIncomplete},
};

constexpr Named<roce::CompletionOpcode> kCompletionOpcodes[] = {
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
    {"TM_ADD", roce::CompletionOpcode::kTagAdd},
    {"TM_DEL", roce::CompletionOpcode::kTagDelete},
    {"TM_SYNC", roce::CompletionOpcode::kTagSync},
    {"TM_RECV", roce::CompletionOpcode::kTagReceive},
    {"TM_NO_TAG", roce::CompletionOpcode::kReceiveNoTag},
};

constexpr Named<roce::SendOpcode> kSendOpcodes[] = {
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

constexpr Named<int> kTagOpcodes[] = {
    {"TAG_ADD", IBV_WR_TAG_ADD},
    {"TAG_DEL", IBV_WR_TAG_DEL},
    {"TAG_SYNC", IBV_WR_TAG_SYNC},
};

constexpr Named<int> kEvents[] = {
    {"CQ_ERR", IBV_EVENT_CQ_ERR},
    {"QP_FATAL", IBV_EVENT_QP_FATAL},
    {"QP_REQ_ERR", IBV_EVENT_QP_REQ_ERR},
    {"QP_ACCESS_ERR", IBV_EVENT_QP_ACCESS_ERR},
    {"COMM_EST", IBV_EVENT_COMM_EST},
    {"SQ_DRAINED", IBV_EVENT_SQ_DRAINED},
    {"PATH_MIG", IBV_EVENT_PATH_MIG},
    {"PATH_MIG_ERR", IBV_EVENT_PATH_MIG_ERR},
    {"DEVICE_FATAL", IBV_EVENT_DEVICE_FATAL},
    {"PORT_ACTIVE", IBV_EVENT_PORT_ACTIVE},
    {"PORT_ERR", IBV_EVENT_PORT_ERR},
    {"LID_CHANGE", IBV_EVENT_LID_CHANGE},
    {"PKEY_CHANGE", IBV_EVENT_PKEY_CHANGE},
    {"SM_CHANGE", IBV_EVENT_SM_CHANGE},
    {"SRQ_ERR", IBV_EVENT_SRQ_ERR},
    {"SRQ_LIMIT_REACHED", IBV_EVENT_SRQ_LIMIT_REACHED},
    {"QP_LAST_WQE_REACHED", IBV_EVENT_QP_LAST_WQE_REACHED},
    {"CLIENT_REREGISTER", IBV_EVENT_CLIENT_REREGISTER},
    {"GID_CHANGE", IBV_EVENT_GID_CHANGE},
};

}  // namespace

std::string_view status_name(roce::CompletionStatus status) {
  return name_in(kStatuses, status, "unknown");
}

roce::CompletionStatus status_of(std::string_view name) {
  return value_in(kStatuses, name, roce::CompletionStatus::kSuccess);
}

std::string_view opcode_name(roce::CompletionOpcode opcode) {
  return name_in(kCompletionOpcodes, opcode, "unknown");
}

std::string_view opcode_name(roce::SendOpcode opcode) {
  return name_in(kSendOpcodes, opcode, "unknown");
}

std::string_view opcode_name(ibv_ops_wr_opcode opcode) {
  return name_in<int>(kTagOpcodes, opcode, "unknown");
}

std::string_view event_name(ibv_event_type type) {
  return name_in<int>(kEvents, type, "unknown");
}

int event_of(std::string_view name) {
  return value_in(kEvents, name, -1);
}

}  // namespace dapple::soft
