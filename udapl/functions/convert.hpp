// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Converts the core's values to DAT's.
#pragma once

#include <initializer_list>
#include <mutex>
#include <new>
#include <type_traits>

#include "ibverbs-glue/no_cancel.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/events/event.hpp"
#include "udapl/core/lock.hpp"
#include "udapl/core/object.hpp"
#include "udapl/core/refusal.hpp"
#include "udapl/functions/dat.hpp"

namespace dapple::udapl::functions {

// A full DAT_RETURN: class, type and subtype.
constexpr DAT_RETURN error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype = DAT_NO_SUBTYPE) {
  return DAT_CLASS_ERROR | static_cast<DAT_UINT32>(type) | static_cast<DAT_UINT32>(subtype);
}

inline constexpr DAT_RETURN kSuccess = DAT_SUCCESS;

// The argument of this number is wrong. The report of the call has the argument's value and the reason.
inline DAT_RETURN wrong_argument(DAT_RETURN_SUBTYPE number, const char* why) noexcept {
  expect(why);
  return error(DAT_INVALID_PARAMETER, number);
}

// An argument that the core may refuse, and its number in the called function.
struct ArgumentNumber {
  Subtype argument;
  DAT_RETURN_SUBTYPE number;
};

// arguments: those of the called function that this error may name.
DAT_RETURN to_dat(Error failure, std::initializer_list<ArgumentNumber> arguments = {}) noexcept;
void to_dat(const Event& event, DAT_EVENT& out) noexcept;
// attributes.cpp. Both fill the whole structure and leave nothing of the memory's earlier contents.
void fill(const Ia& ia, DAT_IA_ATTR& attr);
void fill(const Ia& ia, const DAT_PROVIDER_INFO& info, DAT_PROVIDER_ATTR& attr);
DAT_HANDLE_TYPE to_dat(Kind kind) noexcept;

inline DAT_RETURN to_dat(const Result<>& result, std::initializer_list<ArgumentNumber> arguments = {}) noexcept {
  return result ? kSuccess : to_dat(result.error(), arguments);
}

constexpr DAT_BOOLEAN to_dat(bool value) {
  return value ? DAT_TRUE : DAT_FALSE;
}

// The checks of a query or a change, whose mask is argument 2 and whose structure is argument 3.
template <class Mask, class All>
DAT_RETURN check_query(Mask mask, All all, const void* param) noexcept {
  if (mask & ~all) return wrong_argument(DAT_INVALID_ARG2, "it has bits of no member, or of one that cannot be set");
  return param ? kSuccess : error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

// Runs code of a C function that may allocate: no exception leaves it, and no thread is cancelled in it.
template <class Function>
DAT_RETURN guarded(Function&& function) noexcept {
  const NoCancel whole;
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
  } catch (...) {
    return error(DAT_INTERNAL_ERROR);
  }
}

// Calls the core under the control mutex and converts its Result<>. A call that returns a DAT_RETURN has converted its
// own. A call that takes the lock may release it meanwhile.
template <class Call>
DAT_RETURN controlled(Call&& call, std::initializer_list<ArgumentNumber> arguments = {}) noexcept {
  return guarded([&]() -> DAT_RETURN {
    std::unique_lock control(control_mutex());
    if constexpr (std::is_invocable_v<Call, std::unique_lock<std::mutex>&>) {
      return call(control);
    } else if constexpr (std::is_same_v<std::invoke_result_t<Call>, Result<>>) {
      return to_dat(call(), arguments);
    } else {
      return call();
    }
  });
}

// Gives a new object's handle to the consumer.
template <class T>
Result<> store(const Result<T*>& made, DAT_HANDLE* handle) {
  if (!made) return tl::unexpected(made.error());
  *handle = *made;
  return {};
}

}  // namespace dapple::udapl::functions
