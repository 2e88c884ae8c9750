// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Converts handles to objects.
#pragma once

#include "udapl/core/arena.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/object.hpp"
#include "udapl/functions/version.hpp"

namespace dapple::udapl::functions {

// The object of the handle through which a call was dispatched: the handle's first word led here, so it belongs to us
// and only its kind must be checked.
template <class T>
T* object_of(DAT_HANDLE handle) noexcept {
  auto* object = static_cast<Object*>(handle);
  return object && object->kind() == T::kKind ? static_cast<T*>(object) : nullptr;
}

// The object of a handle in a further argument, which may be any value: null unless it is a live object of this kind
// and IA.
template <class T>
T* find_object(DAT_HANDLE handle, const Ia& ia) noexcept {
  T* object = arena<T>().find(handle);
  return object && &object->ia() == &ia ? object : nullptr;
}

// The same for a handle that may be null, which finds null. False if it is neither null nor such an object.
template <class T>
bool find_optional(DAT_HANDLE handle, const Ia& ia, T*& out) noexcept {
  out = find_object<T>(handle, ia);
  return out || handle == DAT_HANDLE_NULL;
}

// The same two for an EVD that feeds these streams.
inline Evd* find_evd(DAT_EVD_HANDLE handle, const Ia& ia, uint32_t streams) noexcept {
  auto* evd = find_object<Evd>(handle, ia);
  return evd && evd->has(streams) ? evd : nullptr;
}
inline bool find_optional_evd(DAT_EVD_HANDLE handle, const Ia& ia, uint32_t streams, Evd*& out) noexcept {
  out = find_evd(handle, ia, streams);
  return out || handle == DAT_HANDLE_NULL;
}

}  // namespace dapple::udapl::functions
