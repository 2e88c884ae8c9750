// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The reasons of the errors that the library finds itself, for dapple-run --explain and --check. tests/checks/refusals
// fails for an error without a reason. Without these options the functions only return the error.
//
// Threads: any number of threads may use everything here. errno stays.
#pragma once

#include <librpma.h>

#include <initializer_list>
#include <type_traits>

namespace dapple::rpma {

// A function of librpma that fails.
struct Caller {
  Caller(const char* name, bool in_a_line = false) : function(name), is_told_in_a_line(in_a_line) {}

  const char* function;
  bool is_told_in_a_line;
};
// A right program may get the error: it is told in a line, and only with --explain.
inline Caller in_a_line(const char* function) {
  return {function, true};
}

// Reports an error that a mistake of the program has caused. text: "REASON.\nREMEDY.", for printf(). Returns the error.
[[gnu::cold, gnu::noinline, gnu::format(printf, 3, 4)]] int refuse(Caller caller, int error, const char* text,
                                                                   ...) noexcept;

// Such a line, for RPMA_E_NOMEM. Returns it.
[[gnu::cold, gnu::noinline]] int refuse_memory() noexcept;

// Such a line about a call to another library that has failed and has no report. error: as text.
[[gnu::cold, gnu::noinline]] void tell_failure(const char* call, const char* error) noexcept;

// A pointer that the program passes.
struct Pointer {
  const char* name;  // of the argument
  const void* value;
  const char* remedy;  // a sentence
};

// Reports the first of these that is NULL. Returns RPMA_E_INVAL.
[[gnu::cold, gnu::noinline]] int refuse_null(const char* function, std::initializer_list<Pointer> pointers) noexcept;

// How the program gets a right pointer of this kind.
template <class Pointee>
inline constexpr const char* kRemedy = "Pass the address of a variable.";
template <class Pointee>
inline constexpr const char* kRemedy<Pointee*> = "Pass the address of a variable that has, or will get, the pointer.";
template <>
inline constexpr const char* kRemedy<void> = "Pass the address of the memory.";
template <>
inline constexpr const char* kRemedy<char> = "Pass a string.";
template <>
inline constexpr const char* kRemedy<ibv_context> = "Pass the device of rpma_utils_get_ibv_context().";
template <>
inline constexpr const char* kRemedy<rpma_peer> = "Pass the peer that rpma_peer_new() has made.";
template <>
inline constexpr const char* kRemedy<rpma_peer_cfg> =
    "Pass a configuration of rpma_peer_cfg_new() or rpma_peer_cfg_from_descriptor().";
template <>
inline constexpr const char* kRemedy<rpma_mr_local> = "Pass a region of rpma_mr_reg().";
template <>
inline constexpr const char* kRemedy<rpma_mr_remote> = "Pass a region of rpma_mr_remote_from_descriptor().";
template <>
inline constexpr const char* kRemedy<rpma_srq_cfg> = "Pass a configuration of rpma_srq_cfg_new().";
template <>
inline constexpr const char* kRemedy<rpma_srq> = "Pass the queue that rpma_srq_new() has made.";
template <>
inline constexpr const char* kRemedy<rpma_conn_cfg> = "Pass a configuration of rpma_conn_cfg_new().";
template <>
inline constexpr const char* kRemedy<rpma_ep> = "Pass the endpoint that rpma_ep_listen() has made.";
template <>
inline constexpr const char* kRemedy<rpma_conn_req> =
    "Pass a request of rpma_conn_req_new() or rpma_ep_next_conn_req(). rpma_conn_req_connect() ends it.";
template <>
inline constexpr const char* kRemedy<rpma_conn> = "Pass the connection that rpma_conn_req_connect() has made.";
template <>
inline constexpr const char* kRemedy<rpma_cq> =
    "Pass the CQ of rpma_conn_get_cq(). rpma_conn_get_rcq() and rpma_srq_get_rcq() give NULL if the size of that CQ is "
    "0.";

template <class Pointee>
constexpr Pointer named(const char* name, Pointee* value) {
  return {name, value, kRemedy<std::remove_cv_t<Pointee>>};
}

}  // namespace dapple::rpma

// An argument of the function, for refuse_null().
#define NAMED(pointer) ::dapple::rpma::named(#pointer, pointer)
