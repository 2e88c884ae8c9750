// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// Runs two connection managers, with small limits, under a script of commands, time, and lost, repeated, damaged and
// invented datagrams. Limits hold, events come only for living ids and none after the last event, a datagram causes at
// most two others, and nothing is left when all ids are destroyed. The codec writes each message that it has read from
// any bytes, and reads it again.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>

#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/require.hpp"
#include "tests/roce-support/cm_node.hpp"
#include "tests/roce-support/cm_samples.hpp"

namespace {

using dapple::fuzz::require;
using namespace dapple::roce::cm;
using namespace dapple::roce::cm::test;

constexpr Limits kLimits{.records = 8,
                         .pending = 4,
                         .pending_each = 3,
                         .unconfirmed = 3,
                         .unconfirmed_each = 2,
                         .remembered = 2,
                         .listeners = 3};

// Its numbers have all four bytes in the order of a message.
struct Script : dapple::fuzz::Choices {
  using Choices::Choices;

  uint32_t number() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | byte();
    return value;
  }
  void bytes(std::span<std::byte> to) {
    for (std::byte& each : to) each = std::byte{byte()};
  }
};

struct Side {
  explicit Side(uint8_t number) : node(number, kLimits) {}

  Node node;
  std::map<Id, bool> ids;  // true after its last event
  std::vector<Datagram> sent;
  Id listeners[2] = {kNoId, kNoId};  // for connections, and for datagrams

  void look(size_t most_events, size_t most_datagrams) {
    require(node.events.size() <= most_events && node.out.size() <= most_datagrams);
    while (!node.events.empty()) {
      const SeenEvent event = node.seen();
      if (event.type == EventType::kConnectRequest || event.type == EventType::kSidrRequest)
        require(ids.emplace(event.id, false).second);
      const auto found = ids.find(event.id);
      require(found != ids.end() && !found->second);
      found->second = event.last;
    }
    while (!node.out.empty()) {
      sent.push_back(node.sent());
      require(sent.back().attribute() != Attribute{});
    }
    if (sent.size() > 64) sent.erase(sent.begin(), sent.end() - 64);
    const Manager& cm = *node.cm;
    require(cm.records() <= kLimits.records && cm.pending() <= kLimits.pending);
    require(cm.unconfirmed() <= kLimits.unconfirmed && cm.half_open() == cm.pending() + cm.unconfirmed());
    require(cm.remembered() <= kLimits.remembered);
  }

  Id pick(uint8_t choice) const {
    if (ids.empty() || choice == 255) return choice;
    return std::next(ids.begin(), choice % static_cast<int>(ids.size()))->first;
  }
};

class Game {
 public:
  explicit Game(Script script) : script_(script) {}

  void play() {
    while (!script_.is_over()) {
      Side& side = sides_[script_.byte() & 1];
      switch (script_.byte() % 6) {
        case 0:
        case 1:
          carry(side);
          break;
        case 2:
          invent(side);
          break;
        case 3:
          wait();
          break;
        default:
          command(side);
          break;
      }
    }
    for (Side& side : sides_) {
      while (!side.ids.empty()) destroy(side, side.ids.begin()->first);
      for (int i = 0; side.node.cm->deadline() != dapple::roce::kNever; ++i) {
        require(i < 10000);
        advance(side, side.node.cm->deadline());
      }
      require(side.node.cm->records() == 0 && side.node.cm->remembered() == 0 && side.node.cm->half_open() == 0);
    }
  }

 private:
  // Delivers one of the last datagrams, perhaps damaged, to its receiver or back to its sender.
  void carry(Side& side) {
    if (side.sent.empty()) return;
    const uint8_t how = script_.byte();
    Datagram datagram = side.sent[side.sent.size() - 1 - script_.byte() % side.sent.size()];
    for (unsigned i = 0; i < (how & 3U); ++i) {
      const uint8_t at = script_.byte();
      datagram.mad[at] ^= std::byte{script_.byte()};
    }
    if ((how & 4) != 0) datagram.path.local[15] = 66;
    Side& to = (how & 8) != 0 ? side : &side == &sides_[0] ? sides_[1] : sides_[0];
    to.node.take(now_, datagram);
    to.look(1, 2);
  }

  // Delivers a message with the script's contents, about existing ids.
  void invent(Side& side) {
    Mad mad = make_mad(script_.number(), Rtu{});
    mad[17] = std::byte(0x0F + script_.byte() % 13);
    const uint8_t how = script_.byte();
    script_.bytes(std::span(mad).subspan(kMadHeaderSize, script_.byte() % 233));
    if (!side.sent.empty() && (how & 1) != 0) {
      // The two comm ids of an earlier datagram, in either order.
      const Datagram& known = side.sent[script_.byte() % side.sent.size()];
      std::memcpy(&mad[kMadHeaderSize], &known.mad[kMadHeaderSize + ((how & 2) != 0 ? 4 : 0)], 4);
      std::memcpy(&mad[kMadHeaderSize + 4], &known.mad[kMadHeaderSize + ((how & 2) != 0 ? 0 : 4)], 4);
    }
    const size_t size = (how & 16) != 0 ? script_.byte() : kMadSize;
    Path path = side.node.path_to(static_cast<uint8_t>((how & 4) != 0 ? 66 : &side == &sides_[0] ? 2 : 1));
    side.node.cm->receive(now_, path, std::span(mad).first(size));
    side.look(1, 2);
  }

  void advance(Side& side, dapple::roce::Time now) {
    side.node.cm->advance(now);
    require(side.node.cm->deadline() > now);
    side.look(kLimits.records, kLimits.records);
  }

  void wait() {
    const dapple::roce::Time next = std::min(sides_[0].node.cm->deadline(), sides_[1].node.cm->deadline());
    const uint8_t how = script_.byte();
    if ((how & 1) == 0)
      now_ += dapple::roce::Time{how} * 10'000'000;
    else if (next != dapple::roce::kNever)
      now_ = std::max(now_, next);
    for (Side& side : sides_) advance(side, now_);
  }

  void destroy(Side& side, Id id) {
    const bool known = side.ids.erase(id) != 0;
    require((side.node.cm->destroy(now_, id) == Status::kOk) == known);
    side.look(0, 1);
  }

  void command(Side& side) {
    Manager& cm = *side.node.cm;
    const uint8_t which = script_.byte() % 13;
    const Path path = side.node.path_to(static_cast<uint8_t>(&side == &sides_[0] ? 2 : 1));
    const Id id = which < 9 ? side.pick(script_.byte()) : kNoId;
    Id added = kNoId;
    switch (which) {
      case 0: {
        Rep rep = sample_rep();
        rep.qpn = script_.byte();
        (void)cm.accept(now_, id, rep);
        break;
      }
      case 1:
        (void)cm.establish(now_, id, {});
        break;
      case 2:
        (void)cm.reject(now_, id, RejectReason{script_.byte()}, {}, {});
        break;
      case 3:
        (void)cm.prolong(now_, id, script_.byte());
        break;
      case 4:
        (void)cm.note_established(now_, id);
        break;
      case 5:
        (void)cm.disconnect(now_, id, {});
        break;
      case 6:
        (void)cm.answer(now_, id, sample_sidr_rep());
        break;
      case 7:
      case 8:
        return destroy(side, id);
      case 9: {
        ListenParameters parameters;
        parameters.datagram = (script_.byte() & 1) != 0;
        parameters.service_id = service_id_of(parameters.datagram ? PortSpace::kUdp : PortSpace::kTcp, 7);
        parameters.backlog = 3;
        Id& listener = side.listeners[parameters.datagram ? 1 : 0];
        const bool listens = listener != kNoId;
        require((cm.listen(parameters, added) == Status::kInUse) == listens);
        if (listens) require(cm.destroy(now_, listener) == Status::kOk);
        listener = listens ? kNoId : added;
        break;
      }
      case 10: {
        Req req = sample_req();
        req.service = Service::kReliable;
        req.service_id = service_id_of(PortSpace::kTcp, script_.byte() % 16 == 0 ? 8 : 7);
        req.qpn = script_.byte();
        req.max_cm_retries = script_.byte() & 3;
        if (cm.connect(now_, 0, path, req, added) == Status::kOk) require(side.ids.emplace(added, false).second);
        break;
      }
      case 12: {
        const Id ignored = side.pick(script_.byte());
        if (cm.ignore(ignored) == Status::kOk) require(side.ids.erase(ignored) != 0);
        break;
      }
      default: {
        SidrReq request = sample_sidr_req();
        request.service_id = service_id_of(PortSpace::kUdp, 7);
        if (cm.resolve(now_, 0, path, request, 20, script_.byte() & 3, added) == Status::kOk)
          require(side.ids.emplace(added, false).second);
        break;
      }
    }
    side.look(1, 1);
  }

  Script script_;
  dapple::roce::Time now_ = 1;
  Side sides_[2] = {Side(1), Side(2)};
};

template <typename Message>
void check_codec(const MadView& view) {
  Message message;
  read(view, message);
  const Mad mad = make_mad(view.transaction, message);
  MadView again;
  require(open_mad(mad, again) == MadError::kNone);
  Message copy;
  read(again, copy);
  require(copy == message && again.transaction == view.transaction);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size >= kMadSize) {
    Mad mad{};
    std::memcpy(mad.data(), data, kMadSize);
    MadView view;
    (void)open_mad(mad, view);
    view = {mad.data() + kMadHeaderSize, Attribute::kReq, size};
    check_codec<Req>(view);
    check_codec<Mra>(view);
    check_codec<Rej>(view);
    check_codec<Rep>(view);
    check_codec<Rtu>(view);
    check_codec<Dreq>(view);
    check_codec<Drep>(view);
    check_codec<SidrReq>(view);
    check_codec<SidrRep>(view);
  }
  Game(Script(data, size)).play();
  return 0;
}
