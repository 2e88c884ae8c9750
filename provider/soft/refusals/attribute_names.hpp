// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// libibverbs' names for the values that a refusal is about. A name of more than one constant is a list: "A, B and C".
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dapple::soft {

// A text in place. A part that does not fit is left out.
class ShortText {
 public:
  const char* c_str() const { return text_; }
  bool empty() const { return length_ == 0; }
  // At the end.
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...);
  // As an element of a list, of which it is the last or not.
  void add_element(const char* name, bool is_last);

 private:
  static constexpr size_t kSize = 480;
  char text_[kSize] = "";
  size_t length_ = 0;
};

// IBV_QP_STATE and so on, of ibv_modify_qp()'s mask; bits without a name as a number.
ShortText attribute_names(uint32_t mask);
// The member of struct ibv_qp_attr for the first bit of the mask: "rq_psn".
const char* attribute_member(uint32_t mask);
// IBV_ACCESS_...
ShortText access_names(uint32_t access);
// "IBV_QPS_RTR"; "an unknown state" for another number.
const char* state_name(int state);
// "RC"; "a queue pair of another type".
const char* type_name(ibv_qp_type type);
// "IBV_MTU_1024".
const char* mtu_name(int mtu);

}  // namespace dapple::soft
