// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Events of objects of XRC domains for the program, and the end of a queue pair that nobody holds.
#pragma once

#include <atomic>
#include <cassert>

#include "provider/soft/progress/engines.hpp"
#include "provider/soft/scheduling/wakeup.hpp"
#include "provider/soft/xrc/xrc_table.hpp"

namespace dapple::soft {

// Any thread.
class XrcEvents final : public XrcListener {
 public:
  // Set them before the first domain.
  void use(Engines& engines, const Wakeup& wakeup) {
    assert(engines_ == nullptr && wakeup_ == nullptr);
    engines_ = &engines;
    wakeup_ = &wakeup;
  }
  // `end` frees a queue pair. Set it before the first queue pair of a domain.
  void end_by(void (*end)(Qp& qp)) { end_.store(end); }

  void noted(Srq& srq) override;
  void raised(Qp& handle, uint32_t type) override;
  void unused(Qp& qp) override {
    assert(end_.load() != nullptr);
    end_.load()(qp);
  }
  // The background thread ends it.
  void has_unused() override { wakeup_->wake(); }

 private:
  Engines* engines_ = nullptr;
  const Wakeup* wakeup_ = nullptr;
  std::atomic<void (*)(Qp&)> end_{nullptr};
};

}  // namespace dapple::soft
