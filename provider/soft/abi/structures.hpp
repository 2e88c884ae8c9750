// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Our declarations of structures that libibverbs shares with its plug-ins but does not publish. Their layouts are the
// same in rdma-core 35 to 65. The structures that a plug-in allocates for verbs objects are at the end.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

namespace dapple::soft::abi {

struct ListNode {
  ListNode* next;
  ListNode* previous;
};

// One kind of device that a plug-in serves. A table ends with kMatchEnd.
enum MatchKind : uint8_t { kMatchEnd = 0, kMatchPci = 1, kMatchModalias = 2, kMatchDriverId = 3 };

struct MatchEntry {
  void* driver_data;
  union {
    const char* modalias;
    uint64_t driver_id;
  };
  uint16_t vendor;
  uint16_t device;
  uint8_t kind;
};

// A device as libibverbs found it; here by netlink, despite the name.
struct SysfsDevice {
  ListNode entry;
  void* provider_data;
  const MatchEntry* match;
  unsigned flags;
  char sysfs_name[IBV_SYSFS_NAME_MAX];
  dev_t sysfs_cdev;
  char ibdev_name[IBV_SYSFS_NAME_MAX];
  char ibdev_path[IBV_SYSFS_PATH_MAX];
  char modalias[512];
  uint64_t node_guid;
  uint32_t driver_id;
  ibv_node_type node_type;
  int ibdev_idx;
  uint32_t num_ports;
  uint32_t abi_ver;
  timespec time_created;
};

struct Device;

struct DeviceOperations {
  const char* name;
  uint32_t match_min_abi_version;
  uint32_t match_max_abi_version;
  const MatchEntry* match_table;
  const DeviceOperations** static_providers;
  bool (*match_device)(SysfsDevice* device);
  verbs_context* (*alloc_context)(ibv_device* device, int cmd_fd, void* private_data);
  verbs_context* (*import_context)(ibv_device* device, int cmd_fd);
  Device* (*alloc_device)(SysfsDevice* device);
  void (*uninit_device)(Device* device);
};

struct Device {
  ibv_device device;
  const DeviceOperations* ops;
  int refcount;
  ListNode entry;
  SysfsDevice* sysfs;
  uint64_t core_support;
};

static_assert(offsetof(MatchEntry, kind) == 20 && sizeof(MatchEntry) == 24);
static_assert(offsetof(SysfsDevice, sysfs_cdev) == 104);
static_assert(offsetof(SysfsDevice, node_guid) == 944);
static_assert(offsetof(SysfsDevice, ibdev_idx) == 960);
static_assert(offsetof(SysfsDevice, time_created) == 976 && sizeof(SysfsDevice) == 992);
static_assert(offsetof(DeviceOperations, alloc_context) == 40 && sizeof(DeviceOperations) == 72);
static_assert(offsetof(Device, ops) == 664 && offsetof(Device, sysfs) == 696 && sizeof(Device) == 712);

// libibverbs reads and writes these fields of objects that the plug-in has allocated.

enum MrType : int { kMrTypeMr = 0, kMrTypeNull = 1, kMrTypeImported = 2, kMrTypeDmabuf = 3 };

// ibv_rereg_mr() refuses a region that is not a kMrTypeMr.
struct Mr {
  ibv_mr mr;
  int type;
  int access;
};

// rdma-core 47 added a pointer at the end of ibv_qp_ex (wr_flush), and comp_mask moved. So only extended_qp.hpp
// accesses the members after the base. The base is larger where a mutex is, as on arm64.
inline constexpr size_t kQpExBaseSize = offsetof(ibv_qp_ex, wr_atomic_write) + sizeof(ibv_qp_ex::wr_atomic_write);
inline constexpr uint64_t kQpEx = 1 << 1;  // in comp_mask
struct Qp {
  union {
    ibv_qp qp;
    ibv_qp_ex qp_ex;
    unsigned char base[kQpExBaseSize + sizeof(void*)];
  };
  uint64_t rest[2];

  // 43 to 46: comp_mask, xrcd, nothing; 47 and later: wr_flush, comp_mask, xrcd.
  uint64_t* tail() { return reinterpret_cast<uint64_t*>(base + kQpExBaseSize); }
};
static_assert(sizeof(ibv_qp_ex) == kQpExBaseSize || sizeof(ibv_qp_ex) == kQpExBaseSize + sizeof(void*));
static_assert(sizeof(Qp) == kQpExBaseSize + 3 * sizeof(uint64_t));

struct Cq {
  union {
    ibv_cq cq;
    ibv_cq_ex cq_ex;
  };
};

struct Xrcd {
  ibv_xrcd xrcd;
  uint32_t comp_mask;
  uint32_t handle;
};

struct Srq {
  ibv_srq srq;
  ibv_srq_type srq_type;
  void* xrcd;
  ibv_cq* cq;
  uint32_t srq_num;
};

}  // namespace dapple::soft::abi
