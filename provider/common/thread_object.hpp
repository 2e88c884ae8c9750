// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <new>
#include <utility>

namespace dapple {

// An object of each thread, on the heap, because a plug-in has little room in the threads' static memory. It ends with
// its thread. exit() ends the main thread's objects before the program's static destructors, which may call verbs: from
// then on get() returns null. An object cannot leave this state behind in itself, because a compiler may drop what a
// destructor stores in its own object.
template <typename Object>
class ThreadObject {
 public:
  // Null also if there is no memory.
  static Object* get() {
    if (object_ == nullptr && !has_ended_) make();
    return object_;
  }
  // Null also if the thread has not called get().
  static Object* made() { return object_; }

 private:
  struct Owner {
    bool is_used = false;
    ~Owner() {
      has_ended_ = true;
      delete std::exchange(object_, nullptr);
    }
  };

  [[gnu::noinline]] static void make() {
    object_ = new (std::nothrow) Object;
    // The first use registers the destructor.
    owner_.is_used = true;
  }

  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit Object* object_ = nullptr;
  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit bool has_ended_ = false;
  [[gnu::tls_model("initial-exec")]] static inline thread_local Owner owner_;
};

}  // namespace dapple
