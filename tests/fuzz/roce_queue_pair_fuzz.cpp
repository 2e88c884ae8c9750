// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// Two connected queue pairs. The input chooses the events: requests, receives, lost, repeated, changed and invented
// packets, time, transitions. The engine's assertions are on, and the fuzzer checks its promises to a host.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "roce/at_once.hpp"
#include "roce/core/queue_pair.hpp"
#include "roce/core/transitions.hpp"
#include "roce/packet/psn.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using dapple::fuzz::Choices;
using dapple::fuzz::require;
using namespace dapple::roce;

constexpr uint64_t kBase = 0x10000;
constexpr size_t kSize = 16384;
constexpr uint32_t kKey = 0x77;
constexpr uint32_t kSrq = 0x11;
constexpr uint32_t kDepth = 8;
constexpr uint32_t kMtu = 256;
constexpr size_t kMaxPackets = 512;  // limit of one transmit(): the window and the responses are bounded

class End final : public Memory, public ReceiveSource, public EventSink, public PacketSink {
 public:
  explicit End(QpType type) : type_(type) {
    QpConfig config;
    config.qpn = 0x11;
    config.type = type;
    config.send_depth = kDepth;
    config.max_send_segments = 2;
    config.max_inline = 64;
    config.datagram_mtu = kMtu;
    qp = QueuePair::create(config, *this, sends_, received_, *this, *this);
    require(qp != nullptr);
  }

  QpAttributes attributes(QpState state) const {
    QpAttributes made;
    made.state = state;
    made.access = kRemoteWrite | kRemoteRead | kRemoteAtomic | kFlushGlobal | kFlushPersistent;
    made.path_mtu = kMtu;
    made.qkey = 5;
    made.destination_qpn = 0x11;
    made.receive_psn = made.send_psn = 0xFFFFF8;
    made.max_rd_atomic = made.max_dest_rd_atomic = 3;
    made.timeout = 10;
    made.retry_count = 3;
    made.rnr_retry = 2;
    made.min_rnr_timer = 5;
    return made;
  }
  uint32_t mask(QpState state) const {
    if (type_ == QpType::kXrcSend || type_ == QpType::kXrcReceive)
      return kState | transition_masks(type_, qp->state(), state).required;
    const bool is_rc = type_ == QpType::kRc;
    const bool is_ud = type_ == QpType::kUd;
    uint32_t bits = kState;
    if (state == QpState::kInit) bits |= kPkeyIndex | kPort | (is_ud ? kQkey : kAccessFlags);
    if (state == QpState::kRtr && !is_ud) bits |= kAddress | kPathMtu | kDestinationQpn | kReceivePsn;
    if (state == QpState::kRtr && is_rc) bits |= kMaxDestRdAtomic | kMinRnrTimer;
    if (state == QpState::kRts && qp->state() == QpState::kRtr)
      bits |= kSendPsn | (is_rc ? kTimeout | kRetryCount | kRnrRetry | kMaxRdAtomic : 0U);
    return bits;
  }
  bool move(QpState to) {
    const QpState before = qp->state();
    const bool is_done = qp->modify(attributes(to), mask(to));
    require(qp->state() == (is_done ? to : before));
    if (is_done && to == QpState::kReset) {
      open_.clear();
      receives_.clear();
      taken_ = 0;
    }
    return is_done;
  }

  void post(Choices& choices) {
    SendRequest request;
    constexpr uint8_t kOpcodes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 15};
    request.opcode = static_cast<SendOpcode>(kOpcodes[choices.byte() % sizeof kOpcodes]);
    request.flags = choices.byte() & 15;
    request.id = ++last_id_;
    const uint8_t bad = choices.byte();
    request.remote_address = kBase + choices.below(kSize) - (bad & 1 ? 64 : 0);
    request.rkey = bad & 2 ? 1 : kKey;
    request.immediate_or_rkey = request.rkey;
    request.flush_length = choices.below(512);
    request.flush_type = choices.byte();
    request.remote_qpn = 0x11;
    static_assert(kSrq == 0x11);  // XRC has its number in the same place
    request.remote_qkey = bad & 8 ? 6 : 5;
    Segment segments[3];
    const uint32_t count = choices.byte() % 4;
    for (uint32_t i = 0; i < count; ++i)
      segments[i] = {kBase + choices.below(kSize), choices.below(2048), bad & 4 ? 1 : kKey};
    if (request.opcode == SendOpcode::kCompareSwap || request.opcode == SendOpcode::kFetchAdd) segments[0].length = 8;
    std::array<std::byte, 2048> here{};
    if (request.flags & kInline)
      for (Segment& segment : segments) segment.address = reinterpret_cast<uintptr_t>(here.data());
    request.segments = {segments, count};
    open_.push_back({request.id, (request.flags & kSignaled) != 0});
    const size_t before = open_.size();
    const bool is_plain = request.opcode == SendOpcode::kSend && (request.flags & kFence) == 0 && (bad & 0x80) != 0;
    room_ = SIZE_MAX;
    sent_now_ = 0;
    const PlainSend plain = {.id = request.id, .flags = request.flags, .segments = request.segments};
    ReliableConnection* connection = qp->reliable_connection();
    if (is_plain && connection != nullptr && connection->send_at_once(now, plain, *this, *this)) return;
    require(open_.size() == before && open_.back().id == request.id);
    const PostError error = qp->post_send(request);
    if (error == PostError::kNone) return;
    require(open_.size() == before && open_.back().id == request.id);
    open_.pop_back();
  }

  void post_receive(Choices& choices) {
    WholeReceiveRequest request;
    request.id = ++last_receive_;
    request.segment_count = choices.byte() % 3;
    const uint32_t key = choices.byte() == 0xFF ? 1 : kKey;
    for (uint32_t i = 0; i < request.segment_count; ++i)
      request.segments[i] = {kBase + choices.below(kSize), choices.below(2048), key};
    receives_.push_back(request);
    qp->receives_posted();
  }

  void send(size_t room) {
    room_ = room;
    sent_now_ = 0;
    const bool has_more = qp->transmit(now, *this);
    require(!has_more || room_ == 0);
    check();
  }

  void check() {
    const bool is_stopped = qp->state() == QpState::kError || qp->state() == QpState::kSqe;
    // A request that asked for no completion may stay open here, because its success is not reported.
    if (is_stopped)
      require(std::none_of(open_.begin(), open_.end(), [](const Posted& each) { return each.is_signaled; }));
    if (qp->state() == QpState::kError) require(receives_.empty() && taken_ == 0);
    if (qp->state() == QpState::kReset || qp->state() == QpState::kError) require(qp->deadline() == kNever);
    require(taken_ <= 1);
  }

  // A packet with any contents, in a block of its own.
  void receive(const std::vector<std::byte>& bytes) {
    const std::unique_ptr<std::byte[]> exact(new std::byte[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), exact.get());
    const std::span<const std::byte> all(exact.get(), bytes.size());
    PlainPacket plain;
    // The last byte of the PSN chooses.
    const bool at_once = bytes.size() >= kBthSize && std::to_integer<unsigned>(bytes[kBthSize - 1]) % 4 != 0;
    ReliableConnection* connection = qp->reliable_connection();
    if (at_once && connection != nullptr && parse_plain(all, all, plain) &&
        connection->receive_at_once(now, plain, *this, *this, received_))
      return check();
    Packet packet;
    if (parse(all, packet) == ParseError::kNone) qp->receive(now, packet);
    check();
  }

  void expire() {
    const Time deadline = qp->deadline();
    if (deadline == kNever) return;
    now = std::max(now, deadline);
    qp->expire(now);
    send(SIZE_MAX);
    require(qp->deadline() > now);
  }

  std::unique_ptr<QueuePair> qp;
  std::deque<std::vector<std::byte>> packets;  // packets on their way to the other end
  Time now = 0;
  bool is_revoked = false;

  // The ports.
  Fault check_remote(Accessor, const RemoteRange& range, uint32_t) override {
    return range.length == 0 ? Fault::kNone : check_range(range.rkey, range.address, range.length);
  }
  Fault write(Accessor who, const RemoteRange& range, const std::byte* from) override {
    require(range.length <= kMtu);
    const Fault fault = check_remote(who, range, kRemoteWrite);
    if (fault == Fault::kNone && range.length > 0) std::memcpy(at(range.address), from, range.length);
    return fault;
  }
  Fault read(Accessor who, const RemoteRange& range, std::byte* to) override {
    require(range.length <= kMtu);
    const Fault fault = check_remote(who, range, kRemoteRead);
    if (fault == Fault::kNone && range.length > 0) std::memcpy(to, at(range.address), range.length);
    return fault;
  }
  Fault atomic(uint32_t rkey, uint64_t address, uint64_t& original) {
    if (address % 8 != 0) return Fault::kUnaligned;
    const Fault fault = check_range(rkey, address, 8);
    if (fault == Fault::kNone) std::memcpy(&original, at(address), 8);
    return fault;
  }
  Fault compare_swap(Accessor, uint32_t rkey, uint64_t address, uint64_t, uint64_t, uint64_t& original) override {
    return atomic(rkey, address, original);
  }
  Fault fetch_add(Accessor, uint32_t rkey, uint64_t address, uint64_t, uint64_t& original) override {
    return atomic(rkey, address, original);
  }
  Fault atomic_write(Accessor, uint32_t rkey, uint64_t address, uint64_t) override {
    uint64_t original = 0;
    return atomic(rkey, address, original);
  }
  Fault flush(Accessor who, const RemoteRange& range, uint32_t) override {
    return check_remote(who, range, kFlushGlobal);
  }
  Fault check_local(Accessor, std::span<const Segment> segments, bool) override {
    for (const Segment& segment : segments)
      if (segment.length > 0 && check_range(segment.lkey, segment.address, segment.length) != Fault::kNone)
        return Fault::kAccess;
    return Fault::kNone;
  }
  Fault copy(Accessor who, std::span<const Segment> segments, uint64_t offset, size_t size) {
    uint64_t all = 0;
    for (const Segment& segment : segments) all += segment.length;
    // The engine promises that they hold this many.
    require(offset <= all && size <= all - offset);
    return check_local(who, segments, true);
  }
  Fault gather(Accessor who, std::span<const Segment> segments, uint64_t offset, std::byte* to, size_t size) override {
    std::memset(to, 0x5A, size);
    return copy(who, segments, offset, size);
  }
  Fault scatter(Accessor who, std::span<const Segment> segments, uint64_t offset, const std::byte* from,
                size_t size) override {
    volatile std::byte last = size > 0 ? from[size - 1] : std::byte{};
    (void)last;
    return copy(who, segments, offset, size);
  }
  Fault bind_window(Accessor, const WindowBind&) override { return is_revoked ? Fault::kAccess : Fault::kNone; }
  Fault invalidate_local(Accessor, uint32_t rkey) override { return rkey == kKey ? Fault::kNone : Fault::kAccess; }
  Fault invalidate_remote(Accessor, uint32_t rkey) override { return rkey == kKey ? Fault::kNone : Fault::kAccess; }

  bool select(uint32_t srq, uint32_t& domain) override {
    domain = 0;
    return srq == kSrq;
  }
  bool take(ReceiveRequest& request) override {
    if (receives_.empty()) return false;
    request = receives_.front();
    receives_.pop_front();
    ++taken_;
    return true;
  }
  void event(QpEvent event, uint32_t qpn) override { require(qpn == 0x11 && event != QpEvent::kLastRequestReached); }

  std::byte* reserve(size_t size) override {
    require(size >= kBthSize && size <= kMaxHeaderSize + kMtu);
    if (room_ == 0) return nullptr;
    packet_.assign(size, std::byte{0xEE});
    return packet_.data();
  }
  void commit(const AddressVector* to) override {
    --room_;
    require((to != nullptr) == (type_ == QpType::kUd));
    Packet packet;
    require(parse(packet_, packet) == ParseError::kNone);
    require(++sent_now_ <= kMaxPackets);
    if (packets.size() < 1024) packets.push_back(packet_);
  }

  static bool take_along(const Acknowledgement&) { return false; }

 private:
  struct Posted {
    uint64_t id = 0;
    bool is_signaled = false;
  };

  Fault check_range(uint32_t key, uint64_t address, uint64_t length) const {
    const bool is_inside = address >= kBase && length <= kSize && address - kBase <= kSize - length;
    return key == kKey && is_inside && !is_revoked ? Fault::kNone : Fault::kAccess;
  }
  std::byte* at(uint64_t address) { return bytes_.data() + (address - kBase); }

  void sent(const Completion& completion) {
    // Completions come in order, each once; requests without a completion are skipped.
    while (!open_.empty() && open_.front().id != completion.request_id) {
      require(!open_.front().is_signaled);
      open_.pop_front();
    }
    require(!open_.empty());
    open_.pop_front();
  }
  void received(const Completion& completion) {
    require(taken_ == 1 && completion.request_id > last_received_);
    last_received_ = completion.request_id;
    --taken_;
  }
  struct Sends final : CompletionSink {
    explicit Sends(End& at_end) : end(at_end) {}
    bool complete(const Completion& completion) override {
      end.sent(completion);
      return true;
    }
    End& end;
  };
  struct Received final : CompletionSink {
    explicit Received(End& at_end) : end(at_end) {}
    bool complete(const Completion& completion) override {
      end.received(completion);
      return true;
    }
    End& end;
  };

  QpType type_;
  Sends sends_{*this};
  Received received_{*this};
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kSize);
  std::vector<std::byte> packet_;
  std::deque<WholeReceiveRequest> receives_;
  std::deque<Posted> open_;
  uint64_t last_id_ = 0;
  uint64_t last_receive_ = 0;
  uint64_t last_received_ = 0;
  uint32_t taken_ = 0;
  size_t room_ = 0;
  size_t sent_now_ = 0;
};

void step(Choices& choices, End& end, End& other) {
  std::deque<std::vector<std::byte>>& coming = other.packets;
  const uint8_t what = choices.byte() % 16;
  switch (what) {
    case 0:
    case 1:
      return end.post(choices);
    case 2:
      return end.post_receive(choices);
    case 3:
    case 4:
    case 5:  // Delivers all packets.
      for (size_t i = std::min<size_t>(coming.size(), 64); i > 0; --i) {
        end.receive(coming.front());
        coming.pop_front();
      }
      return end.send(SIZE_MAX);
    case 6:
      if (!coming.empty()) coming.pop_front();
      return;
    case 7:
      if (!coming.empty()) end.receive(coming.front());
      return;
    case 8:
      if (!coming.empty()) std::rotate(coming.begin(), coming.begin() + choices.byte() % coming.size(), coming.end());
      return;
    case 9:
    case 10: {  // Changes a byte of the headers, or the size.
      if (coming.empty() || coming.front().empty()) return;
      std::vector<std::byte>& packet = coming.front();
      const uint8_t place = choices.byte();
      if (place & 0x80)
        packet.resize(packet.size() - std::min<size_t>(packet.size(), (place & 15) * 4));
      else
        packet[place % std::min<size_t>(packet.size(), kMaxHeaderSize)] = std::byte{choices.byte()};
      return;
    }
    case 11: {  // Invents a packet.
      Headers headers;
      headers.opcode = choices.byte();
      if (!opcode_info(headers.opcode).known) return;
      const uint32_t psn = 0xFFFFF8 + choices.byte();
      headers.psn = psn & kPsnMask;
      headers.aeth = {choices.byte(), choices.byte()};
      headers.reth = {kBase + choices.below(kSize), kKey, choices.below(4096)};
      headers.atomic.address = kBase + choices.below(kSize);
      headers.atomic.rkey = kKey;
      headers.deth.qkey = 5;
      headers.xrc_srq = kSrq;
      std::vector<std::byte> packet(kMaxHeaderSize);
      packet.resize(write_headers(headers, packet));
      packet.resize(packet.size() + (opcode_info(headers.opcode).has(kHasPayload) ? choices.byte() * 4U : 0U));
      return end.receive(packet);
    }
    case 12:
      return end.expire();
    case 13:
      end.now += choices.below(60000) * 1000;
      return end.send(choices.byte());
    case 14: {
      const uint8_t how = choices.byte();
      if (how < 200) {
        (void)end.move(static_cast<QpState>(how % 7));
        return end.check();
      }
      // Any attributes.
      QpAttributes changes = end.attributes(static_cast<QpState>(choices.byte() % 7));
      changes.max_rd_atomic = choices.byte();
      changes.rnr_retry = choices.byte() % 8;
      changes.timeout = choices.byte() % 32;
      changes.access = choices.byte();
      if (changes.state != QpState::kReset)
        (void)end.qp->modify(changes, choices.word() & ~static_cast<uint32_t>(kPathMtu));
      return end.check();
    }
    default:
      end.is_revoked = choices.byte() % 8 == 0;
      return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  constexpr QpType kTypes[] = {QpType::kRc, QpType::kRc, QpType::kRc, QpType::kUc, QpType::kUd};
  constexpr uint8_t kXrcFrom = 240;  // earlier inputs, whose first byte is small, keep their meaning
  const uint8_t kind = choices.byte();
  const QpType type = kind >= kXrcFrom ? QpType::kXrcSend : kTypes[kind % 5];
  const auto a = std::make_unique<End>(type);
  const auto b = std::make_unique<End>(kind >= kXrcFrom ? QpType::kXrcReceive : type);
  for (End* end : {a.get(), b.get()})
    for (const QpState state : {QpState::kInit, QpState::kRtr, QpState::kRts}) require(end->move(state));
  for (int steps = 0; steps < 2000 && !choices.is_over(); ++steps) {
    if (choices.byte() % 2 == 0)
      step(choices, *a, *b);
    else
      step(choices, *b, *a);
  }
  return 0;
}
