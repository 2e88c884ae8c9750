// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The tables of functions: the provider's, and the one of freed objects.
#include "ibverbs-glue/explains.hpp"
#include "udapl/functions/explained.hpp"
#include "udapl/functions/functions.hpp"
#include "udapl/functions/provider.hpp"
#include "udapl/functions/version.hpp"

namespace dapple::udapl::functions {
namespace {

// A function of any slot's type that only returns a status.
template <class Pointer>
struct Answer;

template <class... Arguments>
struct Answer<DAT_RETURN (*)(Arguments...)> {
  template <DAT_RETURN_TYPE kType, DAT_RETURN_SUBTYPE kSubtype>
  static DAT_RETURN call(Arguments...) {
    return error(kType, kSubtype);
  }
};

template <class Text, auto kCall, class Slot>
void put(Slot& slot) {
  slot = explains() ? Explained<Text, kCall, Slot>::call : kCall;
}

// The names of one function. The list's rows without arguments are functions of the registry.
#define TEXT(NAME, ARGUMENTS)                                        \
  struct Text {                                                      \
    static constexpr const char* function() { return "dat_" #NAME; } \
    static constexpr const char* arguments() { return ARGUMENTS; }   \
  }

template <DAT_RETURN_TYPE kType, DAT_RETURN_SUBTYPE kSubtype, class Pointer>
void refuse(Pointer& slot) {
  slot = Answer<Pointer>::template call<kType, kSubtype>;
}

// The function of a slot that checks the handle and calls the function with the object.
template <DAT_RETURN_SUBTYPE kSubtype, auto kFunction, class Slot>
struct Checked;

template <DAT_RETURN_SUBTYPE kSubtype, auto kFunction, class Handle, class... Rest>
struct Checked<kSubtype, kFunction, DAT_RETURN (*)(Handle, Rest...)> {
  static DAT_RETURN call(Handle handle, Rest... rest) {
    auto* object = object_of<typename ClassOf<kSubtype>::Type>(handle);
    return object ? kFunction(*object, rest...) : error(DAT_INVALID_HANDLE, kSubtype);
  }
};

template <class Text, DAT_RETURN_SUBTYPE kSubtype, auto kFunction, class Slot>
void fill(Slot& slot) {
  if constexpr (std::is_same_v<decltype(kFunction), Slot>) {
    put<Text, kFunction>(slot);
  } else {
    put<Text, Checked<kSubtype, kFunction, Slot>::call>(slot);
  }
}

DAT_PROVIDER empty_table(const char* name) {
  DAT_PROVIDER table{};
  table.device_name = name;
  table.extension = reinterpret_cast<DAT_PVOID>(kTableMark);  // NOLINT(performance-no-int-to-ptr): it is a number
  return table;
}

}  // namespace

const DAT_PROVIDER& dead_table() {
  static const DAT_PROVIDER table = [] {
    DAT_PROVIDER dead = empty_table("freed");
    refuse<DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA>(dead.ia_open_func);
#define SLOT(SUBTYPE, NAME)                                                                   \
  {                                                                                           \
    TEXT(NAME, "");                                                                           \
    using Slot = decltype(dead.NAME##_func);                                                  \
    put<Text, &Answer<Slot>::template call<DAT_INVALID_HANDLE, (SUBTYPE)>>(dead.NAME##_func); \
  }
#include "udapl/api/functions.def"
    return dead;
  }();
  return table;
}

void refuse_everything(DAT_PROVIDER& table) {
  refuse<DAT_INVALID_STATE, DAT_NO_SUBTYPE>(table.ia_open_func);
#define SLOT(SUBTYPE, NAME) refuse<DAT_INVALID_STATE, DAT_NO_SUBTYPE>(table.NAME##_func);
#include "udapl/api/functions.def"
}

DAT_PROVIDER make_table(const char* name, DAT_IA_OPEN_FUNC ia_open) {
  DAT_PROVIDER table = empty_table(name);
  table.ia_open_func = ia_open;
#define FUNCTION(SUBTYPE, NAME, PARAMETERS, ...)  \
  {                                               \
    TEXT(NAME, #__VA_ARGS__);                     \
    fill<Text, SUBTYPE, NAME>(table.NAME##_func); \
  }
#define SLOT(SUBTYPE, NAME) FUNCTION(SUBTYPE, NAME, (), )
#include "udapl/api/functions.def"
  return table;
}

}  // namespace dapple::udapl::functions
