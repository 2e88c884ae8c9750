// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The messages between programs (members) and dappled: SOCK_SEQPACKET on the abstract name "\0dapple" of the network
// namespace, one request and one reply at a time on a connection. Fixed widths, the machine's byte order: both ends run
// on one kernel. A receiver checks magic, version, kind and size before it looks at anything else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "provider/protocol/cm_status.hpp"
#include "provider/protocol/counters.hpp"
#include "provider/protocol/device_attributes.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/system/process_limits.hpp"

namespace dapple::soft {

inline constexpr char kDaemonName[] = "dapple";  // after the NUL of an abstract name
// The name that a slot's owner keeps bound as long as it lives: this and the slot's number.
inline constexpr char kSlotName[] = "dapple/slot/";

inline constexpr uint32_t kMagic = 0x4C504144;  // "DAPL"
// Members and dappled of different versions refuse each other. The header is the same in all versions.
inline constexpr uint16_t kProtocolVersion = 26;

inline constexpr uint16_t kRocePort = 4791;
inline constexpr uint32_t kMaxDevices = 64;  // that one program sees
inline constexpr uint32_t kMaxGids = 64;
inline constexpr uint32_t kDefaultGid = 0;  // the index of the link-local GID that derives from the netdev's MAC
// Indexes of RDMA devices, far from those that the kernel counts up from 0.
inline constexpr uint32_t kFirstDeviceIndex = 0x7FFF0000;
// Those of the further devices of a netdev begin here, so that they take no number of the first ones.
inline constexpr uint32_t kFirstRailIndex = kFirstDeviceIndex + 0x100;

enum class MessageKind : uint16_t {
  kDevices = 1,  // request: HeaderOnly; reply: DevicesReply
  kDevice = 2,   // request: DeviceRequest; reply: DeviceReply
  kSlot = 3,     // request: HeaderOnly; reply: SlotReply and kSlotDescriptors descriptors
  // Request: AnnounceRequest and, with a slot, kAnnounceDescriptors, or none if another member has passed them; reply:
  // HeaderOnly.
  kAnnounce = 4,
  kStatus = 5,  // request: HeaderOnly; reply: StatusReply
  // cm_messages.hpp:
  kCmOpen = 6,     // request: HeaderOnly and a descriptor; reply: CmOpenReply and a descriptor
  kCmRestore = 7,  // request: HeaderOnly and two descriptors; reply: CmRestoreReply
  kCmCommand = 8,  // request: CmCommandRequest; reply: CmCommandReply
  // HeaderOnly, the only message that dappled sends unasked, to members with a slot: devices, addresses or links have
  // changed. The next comes after the member has asked for devices.
  kChanged = 9,
  // request: HeaderOnly and a descriptor, a regular file of open_capture_file(); reply: HeaderOnly. From now on dappled
  // appends all packets of QP 1, until the connection ends.
  kCapture = 10,
  kCmResume = 11,    // request: CmResumeRequest; reply: HeaderOnly (cm_messages.hpp)
  kCmEvent = 12,     // on a channel, no reply: CmEvent (cm_messages.hpp)
  kTransports = 13,  // request: TransportsRequest; reply: TransportsReply (transport_messages.hpp)
  // Not asked for, with kReplyBit: an ErrorReply with the reason why dappled closes a new connection.
  kConnection = 14,
  // Of a new dappled that replaces this one. Request: YieldRequest; reply: HeaderOnly, after which this one has given
  // up its name. It ends when the new one closes the connection.
  kYield = 15,
  // After kAnnounce, for each device: AnnounceGidsRequest; reply: HeaderOnly.
  kAnnounceGids = 16,
  // tree_messages.hpp:
  kTree = 18,         // request: HeaderOnly; reply: TreeReply and a descriptor
  kRefreshTree = 19,  // request: RefreshTreeRequest; reply: RefreshTreeReply
  // Request: HeaderOnly and a descriptor, an empty folder; reply: HeaderOnly. dappled fills the folder with the
  // contents of /sys/class/infiniband and keeps them up to date, until the connection ends. Without a descriptor it
  // keeps the tree of kTree up to date, for programs that cannot ask for that.
  kExportTree = 20,
  // Before all other questions: the identity that dappled tells this connection from now on. Request: IdentityRequest
  // and, if the profile is a file of the program's, its descriptor; reply: HeaderOnly.
  kIdentity = 17,
  // Before all other questions but kIdentity: the order in which dappled tells this connection the GIDs. Request:
  // HeaderOnly and the descriptor of DAPPLE_GIDS' file; reply: HeaderOnly.
  kGids = 21,
  // resource_messages.hpp:
  kResourceCounts = 22,  // request: ResourceCountsRequest; reply: ResourceCountsReply
  kResources = 23,       // request: ResourcesRequest; reply: ResourcesReply
  kCmIds = 24,           // request: CmIdsRequest; reply: CmIdsReply
  kHwCounters = 25,      // request: HwCountersRequest; reply: HwCountersReply
  // xrc_messages.hpp:
  kXrcOpen = 26,   // request: XrcOpenRequest and one or two descriptors; reply: XrcOpenReply and a descriptor
  kXrcClose = 27,  // request: XrcCloseRequest; reply: HeaderOnly
};
inline constexpr uint16_t kReplyBit = 0x8000;

struct MessageHeader {
  uint32_t magic = kMagic;
  uint16_t version = kProtocolVersion;
  uint16_t kind = 0;   // MessageKind; in a reply with kReplyBit
  uint32_t size = 0;   // of the whole message
  uint32_t error = 0;  // in a reply an errno; the message is an ErrorReply then
};

struct HeaderOnly {
  MessageHeader header;
};

inline constexpr size_t kLineSize = 240;

struct ErrorReply {
  MessageHeader header;
  char line[kLineSize] = {};  // for people, NUL-terminated, without the end of line
  ProcessLimits limits;       // dappled's, if they are the reason; otherwise zero
};

struct YieldRequest {
  MessageHeader header;
  ProcessLimits limits;  // the new dappled's
};

// The numbers of the kernel's ib_uverbs_gid_type.
enum class GidType : uint8_t { kRoceV1 = 1, kRoceV2 = 2 };

struct GidEntry {
  uint8_t gid[16] = {};  // IPv4 as ::ffff:a.b.c.d
  uint8_t valid = 0;
  GidType type = GidType::kRoceV2;
  // The entry's index in dappled's own table. The uses of an address are counted there, whatever its index here is.
  uint8_t base_index = 0;
  uint8_t reserved = 0;
  uint32_t netdev_index = 0;
};

// One RDMA device. Each netdev has one; programs may choose to see several on one netdev (rails.hpp).
struct DeviceInfo {
  char name[64] = {};       // "dapple0"
  uint32_t index = 0;       // kFirstDeviceIndex and more, as long as the netdev lives
  uint32_t generation = 0;  // counts the changes of this device
  uint64_t guid = 0;        // of the namespace and the device; in the host's byte order
  uint32_t netdev_index = 0;
  uint32_t netdev_mtu = 0;
  char netdev[16] = {};
  uint8_t mac[6] = {};
  uint8_t up = 0;
  uint8_t loopback = 0;
  uint32_t restored = 0;  // the generation of the members' announcement that this dappled has taken over
  // Programs of one host can use the default GID even if the netdev lacks that address.
  uint8_t has_default_address = 0;
  uint8_t rail = 0;   // 0: the netdev's first device
  uint8_t rails = 0;  // the number of devices on the netdev that the program has chosen; 0: it sees one of each netdev
  uint8_t reserved = 0;
  GidEntry gids[kMaxGids];  // kDefaultGid, then addresses, which keep their indexes as long as the netdev has them
  DeviceAttributes attributes;
};

struct DevicesReply {
  MessageHeader header;
  uint32_t generation = 0;  // counts the changes of all devices
  uint32_t count = 0;
  uint32_t indexes[kMaxDevices] = {};
};

struct DeviceRequest {
  MessageHeader header;
  uint32_t index = 0;
  uint32_t reserved = 0;
};

struct DeviceReply {
  MessageHeader header;
  DeviceInfo device;
};

inline constexpr size_t kIdentitySize = 1024;

struct IdentityRequest {
  MessageHeader header;
  char text[kIdentitySize] = {};  // DAPPLE_AS, NUL-terminated
};

// The descriptors of a SlotReply, in this order: the UDP socket on port 4791, both ends of the bundle, the bound name
// that shows that the slot is in use, and the file of counters (counters_file.hpp).
inline constexpr uint32_t kSlotDescriptors = 5;
inline constexpr uint32_t kBundleDescriptors = 2;
inline constexpr uint32_t kAnnounceDescriptors = 3;  // the bundle's and the file of counters

struct SlotReply {
  MessageHeader header;
  uint32_t slot = 0;       // slot_numbers.hpp has its QPNs
  uint8_t dual_stack = 0;  // the socket is AF_INET6 and takes IPv4 as well; else AF_INET
  uint8_t reserved[3] = {};
};

struct AnnouncedDevice {
  char netdev[16] = {};
  uint32_t index = 0;
  uint32_t netdev_index = 0;
  uint64_t guid = 0;
  uint32_t rail = 0;
  uint32_t reserved = 0;
};

// To a new dappled after the death of the last: the member's slot, and its devices.
struct AnnounceRequest {
  MessageHeader header;
  uint32_t slot = 0;  // 0: none
  uint32_t device_count = 0;
  AnnouncedDevice devices[kMaxDevices];
};

// To the same: the order of a device's GIDs. That of the highest generation counts.
struct AnnounceGidsRequest {
  MessageHeader header;
  uint64_t guid = 0;
  uint32_t index = 0;
  uint32_t generation = 0;  // of DeviceInfo
  GidEntry gids[kMaxGids];
};
static_assert(kMaxGids <= UINT8_MAX);

// For dapple-info.
struct StatusReply {
  MessageHeader header;
  uint32_t process = 0;  // dappled's process number
  uint32_t uid = 0;      // the user whose programs get slots
  uint32_t members = 0;  // connections
  uint32_t slots = 0;    // sockets on the port, dappled's own included; 0: the port is not taken yet
  uint32_t slots_in_use = 0;
  uint8_t dual_stack = 0;
  uint8_t reserved[3] = {};
  uint64_t refused_requests = 0;
  uint64_t malformed_messages = 0;
  uint64_t refused_connections = 0;
  uint64_t takeovers = 0;
  uint64_t counters[kCounterCount] = {};  // of all slots, of dead programs too
  CmStatus connection_management;
};

inline constexpr size_t kMaxMessageSize = std::max({sizeof(AnnounceRequest), sizeof(DeviceReply)});  // the largest
inline constexpr size_t kMaxMessageDescriptors = 12;  // in a message of the bundle

static_assert(sizeof(MessageHeader) == 16);
static_assert(sizeof(GidEntry) == 24);
static_assert(sizeof(DeviceInfo) == 120 + kMaxGids * sizeof(GidEntry) + sizeof(DeviceAttributes));
static_assert(sizeof(AnnouncedDevice) == 40);
static_assert(std::is_trivially_copyable_v<AnnounceRequest> && std::is_trivially_copyable_v<DeviceReply>);

}  // namespace dapple::soft
