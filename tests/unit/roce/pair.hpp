// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two endpoints with a queue pair each, and a link on which a test can examine, drop or invent packets.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "roce/at_once.hpp"
#include "roce/core/queue_pair.hpp"
#include "roce/core/transitions.hpp"
#include "roce/packet/psn.hpp"
#include "tests/roce-support/frame.hpp"

namespace dapple::roce::test {

inline constexpr uint64_t kBase = 0x10000;       // the address of the first byte of an endpoint's memory
inline constexpr uint32_t kKey = 0x77;           // local and remote key of all of it
inline constexpr uint32_t kBadKey = 0xBAD;       // of no window
inline constexpr uint32_t kFirstPsn = 0xFFFFF0;  // wraps around soon
inline constexpr uint32_t kMtu = 256;
inline constexpr Time kAckTime = Time{4096} << 10;

class Endpoint final : public Memory, public CompletionSink, public ReceiveSource, public EventSink, public PacketSink {
 public:
  Endpoint(QpType type, uint32_t qpn, bool may_lose_packets = true, QpConfig config = {})
      : PacketSink(may_lose_packets) {
    config.qpn = qpn;
    config.type = type;
    config.send_depth = 16;
    config.max_send_segments = 4;
    config.max_inline = 64;
    config.datagram_mtu = kMtu;
    qp = QueuePair::create(config, *this, *this, receive_completions, *this, *this);
  }

  // To RTS.
  bool connect(uint32_t peer_qpn, uint8_t timeout = 10) {
    QpAttributes attributes;
    attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic | kFlushGlobal;
    attributes.qkey = 0x1234;
    attributes.path_mtu = kMtu;
    attributes.destination_qpn = peer_qpn;
    attributes.receive_psn = attributes.send_psn = kFirstPsn;
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 2;
    attributes.timeout = timeout;
    attributes.retry_count = 3;
    attributes.rnr_retry = 2;
    attributes.min_rnr_timer = 12;
    return move(attributes, QpState::kInit) && move(attributes, QpState::kRtr) && move(attributes, QpState::kRts);
  }

  bool move(QpAttributes attributes, QpState state) {
    if (type() == QpType::kXrcSend || type() == QpType::kXrcReceive) {
      const uint32_t required = transition_masks(type(), qp->state(), state).required;
      attributes.state = state;
      return qp->modify(attributes, kState | kAccessFlags | required);
    }
    const int column = type() == QpType::kRc ? 0 : type() == QpType::kUc ? 1 : 2;
    const uint32_t masks[3][3] = {
        {kPkeyIndex | kPort | kAccessFlags, kPkeyIndex | kPort | kAccessFlags, kPkeyIndex | kPort | kQkey},
        {kAddress | kPathMtu | kDestinationQpn | kReceivePsn | kMaxDestRdAtomic | kMinRnrTimer,
         kAddress | kPathMtu | kDestinationQpn | kReceivePsn, 0},
        {kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxRdAtomic, kSendPsn, kSendPsn}};
    attributes.state = state;
    return qp->modify(attributes, kState | masks[static_cast<int>(state) - 1][column]);
  }
  QpType type() const { return type_; }
  void set_type(QpType type) { type_ = type; }

  // A request over `length` bytes at `offset` of the endpoint's own memory.
  SendRequest request(SendOpcode opcode, uint32_t length, uint64_t offset = 0) {
    segment_ = {kBase + offset, length, kKey};
    SendRequest made;
    made.id = ++last_id;
    made.opcode = opcode;
    made.flags = kSignaled;
    made.remote_address = kBase;
    made.rkey = kKey;
    if (length > 0) made.segments = {&segment_, 1};
    return made;
  }
  void post_receive(uint32_t length, uint64_t offset = 0) {
    WholeReceiveRequest made;
    made.id = ++last_id;
    made.segment_count = 1;
    made.segments[0] = {kBase + offset, length, kKey};
    receives.push_back(made);
    qp->receives_posted();
  }

  bool send_at_once(Now now, const PlainSend& request) {
    return qp->reliable_connection()->send_at_once(now, request, *this, *this);
  }
  bool receive_at_once(Now now, const PlainPacket& packet) {
    return qp->reliable_connection()->receive_at_once(now, packet, *this, *this, receive_completions);
  }

  // One of the next accesses by a peer does not succeed.
  bool is_late() { return late_accesses > 0 && --late_accesses % 2 == 0; }

  std::byte* at(uint64_t address) { return bytes.data() + (address - kBase); }
  bool holds(uint64_t address, uint64_t length) const {
    return address >= kBase && length <= bytes.size() && address - kBase <= bytes.size() - length;
  }

  Fault check_remote(Accessor, const RemoteRange& range, uint32_t) override {
    if (is_late()) return Fault::kLater;
    return range.rkey == kKey && !revoked && holds(range.address, range.length) ? Fault::kNone : Fault::kAccess;
  }
  Fault write(Accessor who, const RemoteRange& range, const std::byte* from) override {
    if (const Fault fault = check_remote(who, range, kRemoteWrite); fault != Fault::kNone) return fault;
    memcpy(at(range.address), from, range.length);
    return Fault::kNone;
  }
  Fault read(Accessor who, const RemoteRange& range, std::byte* to) override {
    reader = who;
    if (const Fault fault = check_remote(who, range, kRemoteRead); fault != Fault::kNone) return fault;
    memcpy(to, at(range.address), range.length);
    return Fault::kNone;
  }
  Fault swap(uint32_t rkey, uint64_t address, uint64_t& original, auto change) {
    if (address % 8 != 0) return Fault::kUnaligned;
    if (const Fault fault = check_remote({}, {rkey, address, 8}, kRemoteAtomic); fault != Fault::kNone) return fault;
    memcpy(&original, at(address), 8);
    const uint64_t next = change(original);
    memcpy(at(address), &next, 8);
    atomics++;
    return Fault::kNone;
  }
  Fault compare_swap(Accessor, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t fresh,
                     uint64_t& original) override {
    return swap(rkey, address, original, [&](uint64_t old) { return old == compare ? fresh : old; });
  }
  Fault fetch_add(Accessor, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) override {
    return swap(rkey, address, original, [&](uint64_t old) { return old + add; });
  }
  Fault atomic_write(Accessor, uint32_t rkey, uint64_t address, uint64_t value) override {
    uint64_t original = 0;
    return swap(rkey, address, original, [&](uint64_t) { return value; });
  }
  Fault flush(Accessor who, const RemoteRange& range, uint32_t) override {
    flushes++;
    return check_remote(who, range, kFlushGlobal);
  }
  Fault check_local(Accessor who, std::span<const Segment> segments, bool) override {
    accessor = who;
    for (const Segment& segment : segments) {
      if (segment.lkey != kKey || revoked || !holds(segment.address, segment.length)) return Fault::kAccess;
    }
    return Fault::kNone;
  }
  Fault gather(Accessor who, std::span<const Segment> segments, uint64_t offset, std::byte* to, size_t size) override {
    if (check_local(who, segments, false) != Fault::kNone) return Fault::kAccess;
    memcpy(to, at(segments[0].address + offset), size);
    return Fault::kNone;
  }
  Fault scatter(Accessor who, std::span<const Segment> segments, uint64_t offset, const std::byte* from,
                size_t size) override {
    if (is_late()) return Fault::kLater;
    if (check_local(who, segments, true) != Fault::kNone) return Fault::kAccess;
    memcpy(at(segments[0].address + offset), from, size);
    return Fault::kNone;
  }
  Fault scatter_loan(Accessor who, std::span<const Segment> segments, uint64_t offset, const Loan& loan) override {
    if (check_local(who, segments, true) != Fault::kNone) return Fault::kAccess;
    return loan.copy(0, at(segments[0].address + offset), loan.length()) ? Fault::kNone : Fault::kFailed;
  }
  Fault bind_window(Accessor, const WindowBind&) override { return Fault::kNone; }
  Fault invalidate_local(Accessor, uint32_t) override { return Fault::kNone; }
  Fault invalidate_remote(Accessor, uint32_t rkey) override {
    if (is_late()) return Fault::kLater;
    if (rkey == kBadKey) return Fault::kAccess;
    invalidated = rkey;
    return Fault::kNone;
  }

  bool would_place(const Transfer&) override { return places_into != nullptr; }

  bool complete(const Completion& completion) override {
    sent.push_back(completion);
    return true;
  }
  bool take(ReceiveRequest& request) override {
    if (receives.empty()) return false;
    request = receives.front();
    receives.pop_front();
    return true;
  }
  bool select(uint32_t srq, uint32_t& domain) override {
    selected.push_back(srq);
    const auto found = srqs.find(srq);
    if (found != srqs.end()) domain = found->second;
    return found != srqs.end();
  }
  void event(QpEvent event, uint32_t) override { raised.push_back(event); }
  void refused(uint32_t access) override { refused_rights.push_back(access); }
  void denied(const RemoteRange& range, uint32_t rights) override { denials.emplace_back(range, rights); }
  void send_fails(const SendRequest& request, CompletionStatus) override {
    failed_length = length_of(request.segments);
  }
  void sends_fail() override { lends = 0; }
  std::byte* reserve(size_t size) override {
    if (link.size() >= link_room) return nullptr;
    made_.assign(size, std::byte{0});
    return made_.data();
  }
  std::byte* refer(const Reference& reference, size_t headers) override {
    std::byte* room = refers ? reserve(headers) : nullptr;
    if (room != nullptr) referred_.emplace(*this, reference);
    return room;
  }
  bool take_along(const Acknowledgement& acknowledgement) {
    if (takes_along) taken_along_ = acknowledgement;
    return takes_along;
  }
  void commit(const AddressVector*) override {
    link.push_back(made_);
    Packet packet;
    parse(made_, packet);
    if (taken_along_) along[packet.headers.psn] = *taken_along_;
    taken_along_.reset();
    if (!referred_) return;
    loans.emplace(packet.headers.psn, *referred_);
    referred_.reset();
  }
  Placed place(const Transfer& transfer, uint64_t& done) override {
    offered++;
    if (places_into == nullptr) return Placed::kNo;
    const uint64_t size = std::min(transfer.range.length - done, place_at_once);
    std::byte* remote = places_into->at(transfer.range.address + done);
    if (transfer.is_read) {
      scatter(transfer.who, transfer.segments, done, remote, size);
    } else if (transfer.inline_bytes != nullptr) {
      memcpy(remote, transfer.inline_bytes + done, size);
    } else {
      gather(transfer.who, transfer.segments, done, remote, size);
    }
    done += size;
    return done == transfer.range.length ? Placed::kWhole : Placed::kPart;
  }

  // Bytes of an endpoint's first segment.
  struct Lent final : Loan {
    Lent(Endpoint& from, const Reference& reference)
        : Loan(reference.length, reference.packets),
          endpoint(&from),
          address(reference.segments[0].address + reference.offset) {}
    Lent(Endpoint& from, uint64_t first, uint64_t length, uint32_t packets)
        : Loan(length, packets), endpoint(&from), address(first) {}
    bool copy(uint64_t offset, std::byte* to, size_t size) const override {
      if (endpoint->lends == 0) return false;
      endpoint->lends--;
      memcpy(to, endpoint->at(address + offset), size);
      return true;
    }
    Endpoint* endpoint;
    uint64_t address;
  };

  struct Received final : CompletionSink {
    bool complete(const Completion& completion) override {
      if (all.size() == room) return false;
      all.push_back(completion);
      return true;
    }
    std::vector<Completion> all;
    size_t room = SIZE_MAX;
  };

  std::vector<std::byte> bytes = std::vector<std::byte>(1 << 17);
  bool revoked = false;
  int late_accesses = 0;  // every second one of so many accesses by a peer gets Fault::kLater
  int atomics = 0;
  int flushes = 0;
  uint32_t invalidated = 0;
  Accessor accessor;  // of the last access by segments
  Accessor reader;    // of the last read by a peer
  uint64_t last_id = 0;
  std::deque<WholeReceiveRequest> receives;
  std::map<uint32_t, uint32_t> srqs;  // of XRC: numbers and protection domains; they share `receives`
  std::vector<uint32_t> selected;
  std::vector<Completion> sent;
  Received receive_completions;
  std::vector<QpEvent> raised;
  std::vector<uint32_t> refused_rights;
  std::vector<std::pair<RemoteRange, uint32_t>> denials;
  uint64_t failed_length = 0;  // of the last request that has failed
  std::deque<Bytes> link;      // packets on their way to the peer
  size_t link_room = 1000;
  Endpoint* places_into = nullptr;  // it reaches this endpoint's memory
  uint64_t place_at_once = UINT64_MAX;
  int offered = 0;
  bool refers = false;                        // its packets may have references
  uint32_t lends = UINT32_MAX;                // the number of references that can still be followed
  std::map<uint32_t, Lent> loans;             // of packets on their way, by their PSNs
  bool takes_along = false;                   // its packets may bring acknowledgements
  std::map<uint32_t, Acknowledgement> along;  // of packets on their way, by their PSNs
  std::unique_ptr<QueuePair> qp;

 private:
  QpType type_ = QpType::kRc;
  Segment segment_;
  Bytes made_;
  std::optional<Lent> referred_;
  std::optional<Acknowledgement> taken_along_;
};

struct Pair {
  explicit Pair(QpType type = QpType::kRc, bool may_lose_packets = true, uint8_t timeout = 10,
                const QpConfig& config_of_a = {})
      : Pair(type, type, may_lose_packets, timeout, config_of_a) {}
  Pair(QpType type, QpType type_of_b, bool may_lose_packets = true, uint8_t timeout = 10,
       const QpConfig& config_of_a = {})
      : a(type, 0x11, may_lose_packets, config_of_a), b(type_of_b, 0x22, may_lose_packets) {
    a.set_type(type);
    b.set_type(type_of_b);
    is_connected = a.connect(0x22, timeout) && b.connect(0x11, timeout);
    // Made once, because fuzzers make many pairs.
    static const std::vector<std::byte> of_a = pattern(7, a.bytes.size());
    static const std::vector<std::byte> of_b = pattern(11, b.bytes.size());
    a.bytes = of_a;
    b.bytes = of_b;
  }

  static std::vector<std::byte> pattern(size_t factor, size_t size) {
    std::vector<std::byte> made(size);
    for (size_t i = 0; i < size; i++) made[i] = static_cast<std::byte>(i * factor + i / 256);
    return made;
  }
  static Packet parsed(const Bytes& bytes) {
    Packet packet;
    if (parse(bytes, packet) != ParseError::kNone) abort();
    return packet;
  }
  // Delivers the next packet of `from`.
  void deliver(Endpoint& from, Endpoint& to) {
    const Bytes bytes = from.link.front();
    from.link.pop_front();
    Packet packet = parsed(bytes);
    // A packet with the same PSN may have the bytes themselves later.
    const auto loan = from.loans.find(packet.headers.psn);
    if (loan != from.loans.end() && packet.payload.empty() && !packet.info->has(kResponse)) packet.loan = &loan->second;
    const auto along = from.along.find(packet.headers.psn);
    if (along != from.along.end() && !packet.info->has(kResponse)) packet.acknowledgement = &along->second;
    to.qp->receive(now, packet);
    if (packet.loan != nullptr) from.loans.erase(loan);
  }
  // Delivers a packet that the test has made.
  void inject(Endpoint& to, Headers headers, std::span<const std::byte> payload = {}) {
    headers.pad = pad_of(payload.size());
    const Bytes bytes = transport_of(headers, payload);
    to.qp->receive(now, parsed(bytes));
  }
  void transmit() {
    a.qp->transmit(now, a);
    b.qp->transmit(now, b);
  }
  // Runs until no endpoint has anything to send.
  void run() {
    for (transmit(); !a.link.empty() || !b.link.empty(); transmit()) {
      if (!a.link.empty()) deliver(a, b);
      if (!b.link.empty()) deliver(b, a);
    }
  }
  // Advances to the next deadline.
  void sleep() {
    now = std::min(a.qp->deadline(), b.qp->deadline());
    a.qp->expire(now);
    b.qp->expire(now);
  }

  Endpoint a;
  Endpoint b;
  Time now = 1'000'000;
  bool is_connected = false;
};

}  // namespace dapple::roce::test
