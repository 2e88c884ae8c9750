// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Makes a coherent device non-coherent: it registers shadows instead of the program's memory, under the program's
// addresses.
#pragma once

#include <atomic>

#include "provider/common/check_calls.hpp"
#include "provider/common/policy.hpp"
#include "provider/emulator/shadow/shadow.hpp"
#include "provider/emulator/transfers.hpp"

namespace dapple::provider {

// The emulator of this process; it reports at the end of the process. A pthread_cancel() waits for the end of a call.
class Emulator final : public RegionPolicy, private TransferWatch {
 public:
  // Implements EmulatorLibrary's start().
  static Emulator* start(ShowFinding show, const char** why);
  // Null if no emulator was started. One atomic load.
  static Emulator* running() { return running_.load(std::memory_order_acquire); }

  Shadow& shadow() { return shadow_; }

  // Reports the errors in the remaining regions, and the totals; later calls do nothing. Any thread and any signal
  // handler may call it.
  enum class End { kExit, kSignal };
  void report_all(End end);

  int before_registration(RegionRequest& request, void** state) override;
  void registered(void* state) override;
  void registration_failed(void* state) override;
  int before_reregistration(int flags, int access, void* state) override;
  void access_changed(int access, void* state) override;
  void deregistered(void* state) override;
  TransferWatch* transfers() override { return this; }

 private:
  int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad, const TransferMeans& means) override;
  int poll(ibv_cq* cq, int count, ibv_wc* completions, int (*poll_cq)(ibv_cq*, int, ibv_wc*)) override;
  void emptied(const ibv_qp* qp) override;

  template <typename Call>
  int with_errno_of(Call call);
  static void report(const ShadowFindings& findings);
  static void report_transfer(const TransferFinding& finding);
  bool may_say_more();
  static void note_end();
  void watch(ShadowRegion* region);

  static std::atomic<Emulator*> running_;

  Shadow shadow_;
  Transfers transfers_{shadow_, report_transfer};
  std::atomic<unsigned> findings_ = 0;
  std::atomic<bool> reported_ = false;
  int owner_ = 0;
  bool verbose_ = false;
};

}  // namespace dapple::provider
