// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Tables of wrong arguments: each function's correct arguments, and for each of those the wrong values and the
// function's status for them. Arguments are 64-bit words; a structure passed by value is given by its address.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/softroce/api/arguments/world.hpp"

namespace arguments {

constexpr DAT_RETURN status(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype = DAT_NO_SUBTYPE) {
  return static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | static_cast<DAT_RETURN>(type) | static_cast<DAT_RETURN>(subtype);
}
constexpr DAT_RETURN state(DAT_RETURN_SUBTYPE subtype) {
  return status(DAT_INVALID_STATE, subtype);
}
constexpr DAT_RETURN handle_error(DAT_RETURN_SUBTYPE subtype) {
  return status(DAT_INVALID_HANDLE, subtype);
}
constexpr DAT_RETURN argument_error(size_t number) {
  return status(DAT_INVALID_PARAMETER, static_cast<DAT_RETURN_SUBTYPE>(DAT_INVALID_ARG1 + number - 1));
}
constexpr DAT_RETURN kByNumber = 0xffffffff;  // INVALID_PARAMETER with the number of the argument

template <class T>
uint64_t word(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<uint64_t>(value);
  } else if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else {
    return static_cast<uint64_t>(value);
  }
}

struct Other {
  std::string what;
  uint64_t value;
  DAT_RETURN status;
};

struct Argument {
  uint64_t good = 0;
  std::vector<Other> others;
  bool is_free = false;  // every value is correct: a cookie, for example

  template <class T>
  Argument also(const char* what, T value, DAT_RETURN expected = kByNumber) && {
    others.push_back({what, word(value), expected});
    return std::move(*this);
  }
};

template <class T>
Argument good(T value) {
  return {word(value), {}, false};
}
template <class T>
Argument any(T value) {
  return {word(value), {}, true};
}
// A pointer that must not be NULL, and one that may be.
template <class T>
Argument needed(T* pointer, DAT_RETURN expected = kByNumber) {
  return good(pointer).also("NULL", nullptr, expected);
}
template <class T>
Argument optional(T* pointer) {
  return any(pointer);
}
// The mask of a query.
inline Argument mask(uint64_t all) {
  return good(all).also("a bit too many", all | 0x8000000);
}
inline Argument mask64(uint64_t all) {
  return good(all).also("a bit too many", all | uint64_t{1} << 62);
}

template <class T>
T as(uint64_t value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(value);
  } else if constexpr (std::is_same_v<T, DAT_CONTEXT>) {
    DAT_CONTEXT context;
    context.as_64 = value;
    return context;
  } else if constexpr (std::is_class_v<T> || std::is_union_v<T>) {
    T copy;
    std::memcpy(&copy, reinterpret_cast<const void*>(value), sizeof copy);
    return copy;
  } else {
    return static_cast<T>(value);
  }
}

template <auto kFunction>
struct Call;
template <class... Parameters, DAT_RETURN (*kFunction)(Parameters...)>
struct Call<kFunction> {
  static constexpr size_t kParameters = sizeof...(Parameters);
  static DAT_RETURN make(const uint64_t* arguments) {
    return make(arguments, std::index_sequence_for<Parameters...>());
  }
  template <size_t... kIndex>
  static DAT_RETURN make(const uint64_t* arguments, std::index_sequence<kIndex...>) {
    return kFunction(as<Parameters>(arguments[kIndex])...);
  }
};

struct Function {
  const char* name;
  size_t parameters;  // as its prototype says
  DAT_RETURN (*make)(const uint64_t*);
  DAT_RETURN result;  // of the good arguments
  std::vector<Argument> arguments;
};

class Table {
 public:
  explicit Table(World& world) : w(world) {}
  void add(Function function) { functions_.push_back(std::move(function)); }
  const std::vector<Function>& functions() const { return functions_; }

  // The handle on which a function is called, with every wrong value.
  Argument self(Kind kind) const { return self(kind, w.good[kind]); }
  Argument self(Kind kind, DAT_HANDLE handle) const;
  // A further handle that is required, and one that is optional.
  Argument further(Kind kind, DAT_HANDLE handle, DAT_RETURN_SUBTYPE subtype) const;
  Argument further(Kind kind) const;
  Argument optional_further(Kind kind, DAT_HANDLE handle, DAT_RETURN_SUBTYPE subtype) const;
  // A handle of any kind.
  Argument any_kind(DAT_HANDLE handle) const;

  World& w;

 private:
  void add_wrong_kinds(Argument& argument, Kind kind, DAT_RETURN expected) const;
  std::vector<Function> functions_;
};

#define FUNCTION(function, ...)                                                                   \
  Function {                                                                                      \
#function, Call < function> ::kParameters, &Call < function> ::make, DAT_SUCCESS, __VA_ARGS__ \
  }
#define FUNCTION_GIVING(result, function, ...)                                               \
  Function {                                                                                 \
#function, Call < function> ::kParameters, &Call < function> ::make, result, __VA_ARGS__ \
  }

// Each fills a table with the functions of its file, in an order in which every correct call is possible.
void add_registry(Table& table);
void add_common(Table& table);
void add_memory(Table& table);
void add_windows(Table& table);
void add_endpoints(Table& table);
void add_connecting(Table& table);
void add_posts(Table& table);
void add_srqs(Table& table);
void add_service_points(Table& table);
void add_rejecting(Table& table);
void add_events(Table& table);
void add_closing(Table& table);

}  // namespace arguments
