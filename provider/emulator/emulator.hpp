// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A device that is not coherent, made of one that is: it registers shadows in place of the program's memory, under the
// program's addresses.
#ifndef DAPPLE_PROVIDER_EMULATOR_EMULATOR_HPP
#define DAPPLE_PROVIDER_EMULATOR_EMULATOR_HPP

#include <infiniband/dappledv.h>

#include <atomic>

#include "provider/emulator/shadow.hpp"
#include "provider/overlay/policy.hpp"

namespace dapple::provider {

// The one of this process. What syncs must know of is in memory that the process's end still finds; the end of the
// process reports.
class Emulator final : public RegionPolicy {
 public:
  // Makes it on the first call. Null where there is no address space for it.
  static Emulator* start();
  // Null where none was started. Cheap.
  static Emulator* running() { return running_.load(std::memory_order_acquire); }

  // What the device looks like with the emulator over it.
  static void fill_attr(dappledv_device_attr& attr);

  void sync_for_device(const iovec* ranges, size_t num_ranges);
  void sync_for_cpu(const iovec* ranges, size_t num_ranges);

  // On standard error: what the regions that are left have unsynced, and the totals.
  void report_all();

  int before_registration(RegionRequest& request, void** state) override;
  void registration_failed(void* state) override;
  int before_reregistration(int flags, int access, void* state) override;
  void deregistered(void* state) override;

 private:
  void report(const ShadowRegion& region);
  bool may_say_more();

  static std::atomic<Emulator*> running_;

  Shadow shadow_;
  std::atomic<unsigned> lines_said_ = 0;
  int owner_ = 0;
  bool verbose_ = false;
};

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_EMULATOR_EMULATOR_HPP
