// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/udp_batch.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include <cassert>

#include "provider/common/host_guards.hpp"
#include "provider/network/gid.hpp"
#include "provider/network/uncancelled.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/wire/packet/crc.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::soft {
namespace {

constexpr int kUdpSegment = 103;  // UDP_SEGMENT of <linux/udp.h>
constexpr int kFullMilliseconds = 1;

// Adds one ancillary message behind `used` bytes.
template <class Value>
void add_control(char* control, size_t& used, int level, int type, const Value& value) {
  assert(used % alignof(cmsghdr) == 0);
  auto* header = reinterpret_cast<cmsghdr*>(control + used);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof value);
  memcpy(CMSG_DATA(header), &value, sizeof value);
  used += CMSG_SPACE(sizeof value);
}

bool same_flow(const Path& a, const Path& b) {
  return memcmp(a.source, b.source, sizeof a.source) == 0 &&
         memcmp(a.destination, b.destination, sizeof a.destination) == 0 && a.netdev_index == b.netdev_index &&
         a.traffic_class == b.traffic_class && a.hop_limit == b.hop_limit;
}

}  // namespace

void UdpBatch::assert_consistent() const {
  assert(run_count_ <= kMaxRuns && used_ <= kRoom && (run_count_ > 0) == (used_ > 0));
  [[maybe_unused]] const Run* last = run_count_ > 0 ? &runs_[run_count_ - 1] : nullptr;
  assert(last == nullptr || (0 < last->count && last->count <= kMaxSegments && last->first + last->size == used_));
  // All packets but the last have one size.
  assert(last == nullptr || ((last->count - 1) * last->segment_size < last->size &&
                             last->size <= last->count * last->segment_size && last->size <= kMaxRunBytes));
}

void UdpBatch::set_path(const Path& path) {
  if (!same_flow(path_, path)) path_changed_ = true;
  path_ = path;
}

std::byte* UdpBatch::reserve(size_t size) {
  const size_t whole = size + roce::kIcrcSize;
  if (whole > kMaxRunBytes) return nullptr;
  if ((used_ + whole > kRoom || run_count_ == kMaxRuns) && !flush()) return nullptr;
  assert_consistent();
  assert(used_ + whole <= kRoom);
  reserved_ = size;
  return room_ + used_;
}

void UdpBatch::set_slot(uint16_t upper, uint32_t slot) {
  upper_ = upper;
  if (slot != slot_) path_changed_ = true;
  slot_ = slot;
}

// Fills in all of the run that depends on the path and the slot alone.
bool UdpBatch::address(Run& run) {
  const bool ipv6 = !is_ipv4(path_.destination);
  if (ipv6 == is_ipv4(path_.source)) return false;
  const PacketClass wanted = {path_.hop_limit != 0 ? path_.hop_limit : uint8_t{64}, path_.traffic_class};
  SendSocket socket;
  if (const int error = side_.sockets.get(ipv6, slot_, wanted, socket); error != 0) {
    side_.counters->send_error.set(static_cast<uint64_t>(error));
    return false;
  }
  run.ipv6 = ipv6;
  run.fd = socket.fd;
  run.hop_limit = wanted.hop_limit;
  run.traffic_class = wanted.traffic_class;
  run.addresses = {};
  run.addresses.ipv6 = ipv6;
  run.addresses.source_port = socket.port;
  memcpy(run.addresses.source, path_.source + (ipv6 ? 0 : 12), ipv6 ? 16 : 4);
  memcpy(run.addresses.destination, path_.destination + (ipv6 ? 0 : 12), ipv6 ? 16 : 4);

  // Multicast groups and link-local addresses have no route without an interface.
  const bool scoped = is_multicast(path_.destination) || is_link_local(path_.destination);
  const uint32_t netdev_index = scoped ? path_.netdev_index : 0;
  size_t used = 0;
  run.destination = {};
  if (ipv6) {
    run.destination.sin6_family = AF_INET6;
    run.destination.sin6_port = htons(kRocePort);
    memcpy(&run.destination.sin6_addr, path_.destination, 16);
    run.destination.sin6_scope_id = is_link_local(path_.destination) ? path_.netdev_index : 0;
    run.destination_size = sizeof(sockaddr_in6);
    in6_pktinfo info = {};
    memcpy(&info.ipi6_addr, path_.source, 16);
    info.ipi6_ifindex = netdev_index;
    if (is_link_local(path_.source)) info.ipi6_ifindex = path_.netdev_index;
    add_control(run.control, used, IPPROTO_IPV6, IPV6_PKTINFO, info);
  } else {
    auto& in = reinterpret_cast<sockaddr_in&>(run.destination);
    in.sin_family = AF_INET;
    in.sin_port = htons(kRocePort);
    memcpy(&in.sin_addr, path_.destination + 12, 4);
    run.destination_size = sizeof(sockaddr_in);
    in_pktinfo info = {};
    memcpy(&info.ipi_spec_dst, path_.source + 12, 4);
    info.ipi_ifindex = static_cast<int>(netdev_index);
    add_control(run.control, used, IPPROTO_IP, IP_PKTINFO, info);
  }
  if (wanted != socket.usual) {
    const int level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
    add_control(run.control, used, level, ipv6 ? IPV6_HOPLIMIT : IP_TTL, static_cast<int>(run.hop_limit));
    add_control(run.control, used, level, ipv6 ? IPV6_TCLASS : IP_TOS, static_cast<int>(run.traffic_class));
  }
  run.control_size = used;
  static_assert(kControlSize >= CMSG_SPACE(sizeof(in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(2));
  add_control(run.control, used, IPPROTO_UDP, kUdpSegment, uint16_t{0});
  run.control_with_segments = used;
  return true;
}

bool UdpBatch::start_run() {
  assert(run_count_ < kMaxRuns);
  Run& run = runs_[run_count_];
  if (path_changed_) {
    if (!address(run)) return false;
    forget_prefixes();
    path_changed_ = false;
  } else if (addressed_ != run_count_) {
    run = runs_[addressed_];
  }
  addressed_ = run_count_;
  run.first = used_;
  run.segment_size = run.size = run.count = 0;
  run.closed = false;
  run_count_++;
  return true;
}

uint32_t UdpBatch::prefix_of(const Run& run, uint32_t identification, size_t transport_size) {
  Prefixes* prefixes = &prefixes_[1 - older_prefixes_];
  if (prefixes->size != transport_size) {
    prefixes = &prefixes_[older_prefixes_];
    older_prefixes_ = 1 - older_prefixes_;
    if (prefixes->size != transport_size) {
      prefixes->size = transport_size;
      prefixes->known = 0;
    }
  }
  assert(identification < kMaxSegments && (!run.ipv6 || identification == 0));
  const uint64_t bit = uint64_t{1} << identification;
  if ((prefixes->known & bit) == 0) {
    roce::IcrcAddresses addresses = run.addresses;
    addresses.identification = static_cast<uint16_t>(identification);
    prefixes->of[identification] = roce::icrc_prefix(addresses, transport_size, crc32);
    prefixes->known |= bit;
  }
  return prefixes->of[identification];
}

void UdpBatch::forget_prefixes() {
  for (Prefixes& prefixes : prefixes_) prefixes.size = 0;
}

void UdpBatch::write_icrc(const Run& run, uint32_t place, std::byte* packet, size_t transport_size) {
  // Segments count their identifications up from 0. IPv6 has none.
  const uint32_t prefix = prefix_of(run, run.ipv6 ? 0 : place, transport_size);
  const uint32_t icrc = roce::icrc_of(prefix, {packet, transport_size}, crc32);
  memcpy(packet + transport_size, &icrc, sizeof icrc);
}

void UdpBatch::commit(const roce::AddressVector*) {
  // A packet has the BTH, from which this reads the slot.
  assert(reserved_ >= roce::kBthSize);
  std::byte* packet = room_ + used_;
  const size_t whole = reserved_ + roce::kIcrcSize;
  // Most packets go where the last one went. These bytes have all bits of the slot.
  uint16_t upper;
  memcpy(&upper, packet + 5, sizeof upper);
  if (upper != upper_) [[unlikely]]
    set_slot(upper, slot_of_packet(packet));
  Run* run = run_count_ > 0 ? &runs_[run_count_ - 1] : nullptr;
  const bool continues = run != nullptr && !path_changed_ && !run->closed && whole <= run->segment_size &&
                         run->size + whole <= kMaxRunBytes && run->count < kMaxSegments && side_.segments[run->ipv6];
  if (!continues) {
    if (!start_run()) {
      side_.counters->send_errors.add();
      return;
    }
    run = &runs_[run_count_ - 1];
    run->segment_size = whole;
  }
  run->closed = whole < run->segment_size;
  write_icrc(*run, run->count, packet, reserved_);
  run->size += whole;
  run->count++;
  used_ += whole;
  assert_consistent();
}

void UdpBatch::note(const Run& run) {
  roce::IcrcAddresses addresses = run.addresses;
  for (uint32_t i = 0; i < run.count; i++) {
    const size_t offset = i * run.segment_size;
    const size_t size = run.size - offset < run.segment_size ? run.size - offset : run.segment_size;
    addresses.identification = static_cast<uint16_t>(run.ipv6 ? 0 : i);
    side_.tap->write(PacketTap::Direction::kSent, addresses, run.traffic_class, run.hop_limit,
                     {room_ + run.first + offset, size});
  }
}

// The kernel does not segment at all, or not this run. Then each packet is sent by itself, with identification 0.
bool UdpBatch::send_singly(Run& run, bool& full) {
  const CancelGuard whole;
  forget_prefixes();
  bool any = false;
  for (uint32_t i = 0; i < run.count; i++) {
    const size_t offset = i * run.segment_size;
    const size_t size = run.size - offset < run.segment_size ? run.size - offset : run.segment_size;
    std::byte* packet = room_ + run.first + offset;
    if (i > 0 && !run.ipv6) write_icrc(run, 0, packet, size - roce::kIcrcSize);
    iovec part = {packet, size};
    msghdr message = {};
    message.msg_name = &run.destination;
    message.msg_namelen = run.destination_size;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = run.control;
    message.msg_controllen = run.control_size;
    if (sendmsg(run.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
      any = true;
      side_.counters->sent_packets.add();
      side_.counters->sent_bytes.add(size);
    } else if (errno == EAGAIN || errno == ENOBUFS) {
      full = true;
      side_.counters->send_full.add();
    } else {
      side_.counters->send_errors.add();
      side_.counters->send_error.set(static_cast<uint64_t>(errno));
    }
  }
  forget_prefixes();
  return any;
}

bool UdpBatch::send_all() {
  bool full = false, waited = false;
  for (uint32_t sent = 0; sent < run_count_;) {
    mmsghdr messages[kMaxRuns];
    iovec parts[kMaxRuns];
    // One call sends from one socket.
    uint32_t count = 0;
    for (; sent + count < run_count_ && runs_[sent + count].fd == runs_[sent].fd; count++) {
      Run& run = runs_[sent + count];
      const auto segment = static_cast<uint16_t>(run.segment_size);
      const size_t value_at = run.control_size + CMSG_LEN(0);
      memcpy(run.control + value_at, &segment, sizeof segment);
      parts[count] = {room_ + run.first, run.size};
      messages[count] = {};
      msghdr& header = messages[count].msg_hdr;
      header.msg_name = &run.destination;
      header.msg_namelen = run.destination_size;
      header.msg_iov = &parts[count];
      header.msg_iovlen = 1;
      header.msg_control = run.control;
      header.msg_controllen = run.count > 1 ? run.control_with_segments : run.control_size;
    }
    assert(count > 0);
    const int result = send_datagrams(runs_[sent].fd, messages, count);
    assert(result <= static_cast<int>(count));
    if (result > 0) {
      for (int i = 0; i < result; i++, sent++) {
        side_.counters->sent_batches.add();
        side_.counters->sent_packets.add(runs_[sent].count);
        side_.counters->sent_bytes.add(runs_[sent].size);
      }
      continue;
    }
    Run& run = runs_[sent];
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == ENOBUFS) {
      pollfd waiting = {run.fd, POLLOUT, 0};
      const bool wait = !waited && errno == EAGAIN;
      waited = true;
      if (wait) {
        const CancelGuard whole;
        if (poll(&waiting, 1, kFullMilliseconds) > 0) continue;
      }
      full = true;
      side_.counters->send_full.add(run.count);
    } else if (run.count > 1 && (errno == EINVAL || errno == EIO)) {
      if (send_singly(run, full)) {
        side_.segments[run.ipv6] = false;
        side_.counters->segmentation_off.add();
      }
    } else {
      // A packet that cannot be sent is a lost one: the engine gives up in time.
      side_.counters->send_errors.add(run.count);
      side_.counters->send_error.set(static_cast<uint64_t>(errno));
    }
    sent++;
  }
  return !full;
}

bool UdpBatch::flush() {
  if (run_count_ == 0) return true;
  const ErrnoGuard keep;
  if (side_.tap != nullptr) {
    for (uint32_t i = 0; i < run_count_; i++) note(runs_[i]);
  }
  const bool good = send_all();
  run_count_ = 0;
  used_ = 0;
  return good;
}

}  // namespace dapple::soft
