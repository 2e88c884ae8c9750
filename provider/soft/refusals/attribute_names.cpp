// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/refusals/attribute_names.hpp"

#include <bit>
#include <cstdarg>
#include <cstdio>

namespace dapple::soft {
namespace {

struct Bit {
  uint32_t bit;
  const char* name;
  const char* member;
};

constexpr Bit kAttributes[] = {
    {IBV_QP_STATE, "IBV_QP_STATE", "qp_state"},
    {IBV_QP_CUR_STATE, "IBV_QP_CUR_STATE", "cur_qp_state"},
    {IBV_QP_EN_SQD_ASYNC_NOTIFY, "IBV_QP_EN_SQD_ASYNC_NOTIFY", "en_sqd_async_notify"},
    {IBV_QP_ACCESS_FLAGS, "IBV_QP_ACCESS_FLAGS", "qp_access_flags"},
    {IBV_QP_PKEY_INDEX, "IBV_QP_PKEY_INDEX", "pkey_index"},
    {IBV_QP_PORT, "IBV_QP_PORT", "port_num"},
    {IBV_QP_QKEY, "IBV_QP_QKEY", "qkey"},
    {IBV_QP_AV, "IBV_QP_AV", "ah_attr"},
    {IBV_QP_PATH_MTU, "IBV_QP_PATH_MTU", "path_mtu"},
    {IBV_QP_TIMEOUT, "IBV_QP_TIMEOUT", "timeout"},
    {IBV_QP_RETRY_CNT, "IBV_QP_RETRY_CNT", "retry_cnt"},
    {IBV_QP_RNR_RETRY, "IBV_QP_RNR_RETRY", "rnr_retry"},
    {IBV_QP_RQ_PSN, "IBV_QP_RQ_PSN", "rq_psn"},
    {IBV_QP_MAX_QP_RD_ATOMIC, "IBV_QP_MAX_QP_RD_ATOMIC", "max_rd_atomic"},
    {IBV_QP_ALT_PATH, "IBV_QP_ALT_PATH", "alt_ah_attr"},
    {IBV_QP_MIN_RNR_TIMER, "IBV_QP_MIN_RNR_TIMER", "min_rnr_timer"},
    {IBV_QP_SQ_PSN, "IBV_QP_SQ_PSN", "sq_psn"},
    {IBV_QP_MAX_DEST_RD_ATOMIC, "IBV_QP_MAX_DEST_RD_ATOMIC", "max_dest_rd_atomic"},
    {IBV_QP_PATH_MIG_STATE, "IBV_QP_PATH_MIG_STATE", "path_mig_state"},
    {IBV_QP_CAP, "IBV_QP_CAP", "cap"},
    {IBV_QP_DEST_QPN, "IBV_QP_DEST_QPN", "dest_qp_num"},
};

// libibverbs has two more, which older headers lack.
constexpr Bit kRights[] = {
    {IBV_ACCESS_LOCAL_WRITE, "IBV_ACCESS_LOCAL_WRITE", ""},
    {IBV_ACCESS_REMOTE_WRITE, "IBV_ACCESS_REMOTE_WRITE", ""},
    {IBV_ACCESS_REMOTE_READ, "IBV_ACCESS_REMOTE_READ", ""},
    {IBV_ACCESS_REMOTE_ATOMIC, "IBV_ACCESS_REMOTE_ATOMIC", ""},
    {IBV_ACCESS_MW_BIND, "IBV_ACCESS_MW_BIND", ""},
    {IBV_ACCESS_ZERO_BASED, "IBV_ACCESS_ZERO_BASED", ""},
    {IBV_ACCESS_ON_DEMAND, "IBV_ACCESS_ON_DEMAND", ""},
    {IBV_ACCESS_HUGETLB, "IBV_ACCESS_HUGETLB", ""},
    {1 << 8, "IBV_ACCESS_FLUSH_GLOBAL", ""},
    {1 << 9, "IBV_ACCESS_FLUSH_PERSISTENT", ""},
    {IBV_ACCESS_RELAXED_ORDERING, "IBV_ACCESS_RELAXED_ORDERING", ""},
};

template <size_t kCount>
ShortText names_in(const Bit (&bits)[kCount], uint32_t mask) {
  ShortText names;
  for (const Bit& each : bits) {
    if ((mask & each.bit) == 0) continue;
    mask &= ~each.bit;
    names.add_element(each.name, mask == 0);
  }
  for (; mask != 0; mask &= mask - 1) {
    char number[16];
    snprintf(number, sizeof number, "0x%x", 1u << std::countr_zero(mask));
    names.add_element(number, (mask & (mask - 1)) == 0);
  }
  return names;
}

}  // namespace

void ShortText::add(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = vsnprintf(text_ + length_, kSize - length_, format, arguments);
  va_end(arguments);
  if (written < 0 || length_ + static_cast<size_t>(written) >= kSize) {
    text_[length_] = '\0';
  } else {
    length_ += static_cast<size_t>(written);
  }
}

void ShortText::add_element(const char* name, bool is_last) {
  add("%s%s", empty() ? "" : is_last ? " and " : ", ", name);
}

ShortText attribute_names(uint32_t mask) {
  return names_in(kAttributes, mask);
}

const char* attribute_member(uint32_t mask) {
  for (const Bit& each : kAttributes) {
    if ((mask & each.bit) != 0) return each.member;
  }
  return "attr_mask";
}

ShortText access_names(uint32_t access) {
  return names_in(kRights, access);
}

const char* state_name(int state) {
  static constexpr const char* kNames[] = {"IBV_QPS_RESET", "IBV_QPS_INIT", "IBV_QPS_RTR", "IBV_QPS_RTS",
                                           "IBV_QPS_SQD",   "IBV_QPS_SQE",  "IBV_QPS_ERR"};
  return state >= 0 && state <= IBV_QPS_ERR ? kNames[state] : "an unknown state";
}

const char* type_name(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_RAW_PACKET:
      return "RAW_PACKET";
    case IBV_QPT_XRC_SEND:
      return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
      return "XRC_RECV";
    default:
      return "another type";
  }
}

const char* mtu_name(int mtu) {
  static constexpr const char* kNames[] = {"IBV_MTU_256", "IBV_MTU_512", "IBV_MTU_1024", "IBV_MTU_2048",
                                           "IBV_MTU_4096"};
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? kNames[mtu - IBV_MTU_256] : "no MTU";
}

}  // namespace dapple::soft
