// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The verbs objects of a process, with those that each one uses, so that a report can name who keeps an object busy.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::explain {

// Internally locked; the lock is a leaf.
class Holders {
 public:
  // Lives as long as the process.
  static Holders& get();

  // `name`: of object_names.hpp; `verb`: a literal, such as "made by ibv_create_qp". Null pointers are left out.
  void add(const void* object, std::string name, const char* verb, const std::vector<const void*>& used);
  // A known object uses another one from now on.
  void use(const void* object, const void* used);
  // Call it after the object is destroyed, and by its address alone.
  void remove(const void* object);

  struct Holder {
    std::string name;
    check::ReportedStack made;
  };
  // At most kMax of those that use the object. `all`: their number.
  static constexpr size_t kMax = 4;
  std::vector<Holder> of(const void* object, size_t& all);

  Mutex& mutex() { return mutex_; }

 private:
  struct Known {
    Holder holder;
    std::vector<const void*> used;
  };

  Mutex mutex_{LockRank::kHolders};
  std::map<const void*, Known> objects_;
};

}  // namespace dapple::soft::explain
