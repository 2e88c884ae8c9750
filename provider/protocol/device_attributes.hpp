// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What programs read of a device: its identity and its limits. dappled tells them to each program, by the profile that
// the program has chosen (DAPPLE_AS). A value without changes is the default identity: rxe's layout, and the largest
// limits that the software device serves. A profile lowers limits and never raises them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace dapple::soft {

inline constexpr size_t kAttributeSize = 64;  // of a text, with its NUL
inline constexpr size_t kCpuListSize = 128;

// A bit for each feature that some devices lack.
enum DeviceFeature : uint32_t {
  kFeatureSrq = 1 << 0,
  kFeatureResizeCq = 1 << 1,
  kFeatureMemoryWindows = 1 << 2,
  kFeatureFlush = 1 << 3,  // Flush and atomic writes
  kFeatureMulticast = 1 << 4,
  kFeatureTimeStamps = 1 << 5,  // of completions, and the device's clock
  kFeatureOnDemand = 1 << 6,    // on-demand paging
  kFeatureDeviceMemory = 1 << 7,
  kFeatureDmaHandles = 1 << 8,
  kFeatureCompletionCounters = 1 << 9,
  kFeatureTagMatching = 1 << 10,
  kAllFeatures = (1 << 11) - 1,
};

// libibverbs' numbers (ibv_atomic_cap).
enum DeviceAtomics : uint32_t { kAtomicsNone = 0, kAtomicsHca = 1, kAtomicsGlobal = 2 };

// The result of a message that is longer than the port's limit.
enum TooLong : uint32_t {
  kTooLongCompletes = 0,  // the request completes with IBV_WC_LOC_LEN_ERR
  kTooLongRefused = 1,    // the call returns EINVAL
};

// Fixed width, without padding: two of these are equal if their bytes are.
struct DeviceAttributes {
  // Texts end with a NUL. An empty one has no file in sysfs, except fw_ver and node_desc, whose file is empty then.
  char profile[kAttributeSize] = {};  // "connectx7"; empty: the default identity
  char fw_ver[kAttributeSize] = {};
  char board_id[kAttributeSize] = {};
  char hca_type[kAttributeSize] = {};
  char node_desc[kAttributeSize] = "dapple";
  char driver[kAttributeSize] = {};  // of the PCI function: "mlx5_core"
  char cpu_list[kCpuListSize] = {};  // the CPUs near the PCI function: "0-15,32-47"

  uint64_t max_mr_size = UINT64_MAX;
  uint64_t page_size_cap = 0xFFFFF000;
  uint64_t device_cap_flags = UINT64_MAX;  // the plug-in reports those of them that the software device serves

  // No vendor's: bit 1 of its first byte tells that nobody has assigned it.
  uint32_t vendor_id = 0x0ADA99;
  uint32_t vendor_part_id = 0;
  uint32_t hw_ver = 0;
  uint32_t features = kAllFeatures;
  uint32_t atomics = kAtomicsGlobal;  // the software device's atomics are the CPU's own
  uint32_t too_long = kTooLongRefused;

  uint32_t max_qp = (1 << 16) - 1;
  uint32_t max_qp_wr = 16384;
  uint32_t max_send_sge = 32;
  uint32_t max_recv_sge = 32;
  uint32_t max_sge_rd = 32;
  uint32_t max_cq = 1 << 16;
  uint32_t max_cqe = 1 << 20;
  uint32_t max_mr = 1 << 17;
  uint32_t max_pd = 1 << 16;
  uint32_t max_mw = 1 << 17;
  uint32_t max_ah = 1 << 20;
  uint32_t max_srq = 1 << 16;
  uint32_t max_srq_wr = 16384;
  uint32_t max_srq_sge = 32;
  uint32_t max_qp_rd_atom = 128;       // of a queue pair as responder
  uint32_t max_qp_init_rd_atom = 128;  // as initiator
  uint32_t max_res_rd_atom = 128 * ((1 << 16) - 1);
  uint32_t max_inline = 1024;  // bytes
  uint32_t max_msg_sz = 1u << 31;
  uint32_t max_mcast_grp = 256;
  uint32_t max_mcast_qp_attach = 256;
  uint32_t max_total_mcast_qp_attach = 256;
  uint32_t max_pkeys = 1;
  uint32_t local_ca_ack_delay = 15;
  uint32_t num_comp_vectors = 0;  // 0: one for each CPU

  // The port. IBTA's numbers, as in ibv_port_attr and `rate`: 2.5 Gb/s are speed 1 and width 1.
  uint32_t active_speed = 1;
  uint32_t active_width = 1;

  // The PCI function; none: the device lies below /sys/devices/virtual, as rxe's.
  uint32_t has_pci = 0;
  uint32_t pci_domain = 0;
  uint32_t pci_bus = 0;
  uint32_t pci_slot = 0;
  uint32_t pci_function = 0;
  uint32_t pci_class = 0x020000;
  uint32_t pci_vendor = 0;
  uint32_t pci_device = 0;
  uint32_t pci_subsystem_vendor = 0;
  uint32_t pci_subsystem_device = 0;
  uint32_t pci_revision = 0;
  uint32_t pci_link_speed = 0;  // in GT/s times 10: 320 is "32.0 GT/s PCIe"
  uint32_t pci_link_width = 0;
  int32_t numa_node = -1;

  // 1: each address has two entries among the GIDs, RoCE v1 and then v2, as on NVIDIA's NICs.
  uint32_t gid_twins = 0;
};

static_assert(std::is_trivially_copyable_v<DeviceAttributes>);
static_assert(std::has_unique_object_representations_v<DeviceAttributes>);
static_assert(sizeof(DeviceAttributes) % 8 == 0);

}  // namespace dapple::soft
