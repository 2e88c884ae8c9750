// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The header of the object behind every DAT handle. The registry dispatches through the first word of a handle without
// asking us, so that word belongs to the ABI. The rest tells the API's functions the kind of the handle.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace dapple::udapl {

enum class Kind : uint32_t {
#define KIND(NAME, DAT) NAME,
#include "udapl/api/names.def"
};
inline constexpr size_t kKinds = static_cast<size_t>(Kind::kUdConnection) + 1;

// The function tables of one version: one for live objects, and one for freed objects, whose slots all answer
// INVALID_HANDLE as long as the library is loaded.
struct Tables {
  const void* live;
  const void* dead;
};

class Ia;

class Object {
 public:
  Object(const void* table, Kind kind, Ia* ia) : table_(table), kind_(kind), ia_(ia) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Kind kind() const { return kind_; }
  Ia& ia() const { return *ia_; }

  // The number of objects that need this one. Guarded by the control mutex.
  void acquire() { ++users_; }
  void release() {
    assert(users_ > 0);
    --users_;
  }
  bool in_use() const { return users_ != 0; }

  // Any thread may set and get the context at any time.
  void set_consumer_context(uint64_t context) {
    consumer_context_.store(context, std::memory_order_relaxed);
    has_consumer_context_.store(true, std::memory_order_release);
  }
  bool has_consumer_context() const { return has_consumer_context_.load(std::memory_order_acquire); }
  uint64_t consumer_context() const { return consumer_context_.load(std::memory_order_relaxed); }

 private:
  friend class ObjectList;
  [[maybe_unused]] const void* table_;  // must stay the first word: the registry reads it
  Kind kind_;
  uint32_t users_ = 0;
  Ia* ia_;
  Object* next_ = nullptr;   // in the list of its parent
  Object** link_ = nullptr;  // the pointer that points to this object there; null in no list
  std::atomic<uint64_t> consumer_context_ = 0;
  std::atomic<bool> has_consumer_context_ = false;
};

// The objects of one kind that a parent has, newest first. Adding one cannot fail. The control mutex guards the list.
class ObjectList {
 public:
  Object* first() const { return first_; }
  void add(Object& object) {
    assert(!object.link_);
    object.next_ = first_;
    object.link_ = &first_;
    if (first_) first_->link_ = &object.next_;
    first_ = &object;
  }
  static void remove(Object& object) {
    assert(object.link_);
    if (object.next_) object.next_->link_ = object.link_;
    *std::exchange(object.link_, nullptr) = object.next_;
  }
  // Calls visit(T&) for each object; all are of this class. visit may remove its object.
  template <class T, class Visit>
  void for_each(Visit visit) const {
    for (Object* object = first_; object;) visit(static_cast<T&>(*std::exchange(object, object->next_)));
  }

 private:
  Object* first_ = nullptr;
};

// Holds one use for as long as it lives. Made and destroyed under the control mutex.
template <class T>
class UseOf {
 public:
  explicit UseOf(T& object) : object_(object) { object_.acquire(); }
  ~UseOf() { object_.release(); }
  UseOf(const UseOf&) = delete;
  UseOf& operator=(const UseOf&) = delete;
  T& operator*() const { return object_; }
  T* operator->() const { return &object_; }

 private:
  T& object_;
};

// The contents of an arena's slot after its object was freed.
struct DeadObject {
  const void* table;
  Kind kind;
};

}  // namespace dapple::udapl
