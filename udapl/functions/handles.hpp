// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Converts handles to objects.
#pragma once

#include "udapl/core/arena.hpp"
#include "udapl/core/object.hpp"
#include "udapl/functions/version.hpp"

namespace dapple::udapl::functions {

// The handle through which a call was dispatched: its first word led here, so it belongs to us and only its kind must
// be checked.
template <class T>
T* self(DAT_HANDLE handle) noexcept {
  auto* object = static_cast<Object*>(handle);
  return object && object->kind() == T::kKind ? static_cast<T*>(object) : nullptr;
}

// A handle in a further argument, which may be any value: null unless it is a live object of this kind and IA.
template <class T>
T* argument(DAT_HANDLE handle, const Ia& ia) noexcept {
  T* object = arena<T>().find(handle, T::kKind);
  return object && &object->ia() == &ia ? object : nullptr;
}

}  // namespace dapple::udapl::functions
