// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// peer RC-QPN UC-QPN REGION RKEY: a process of the victim's user that breaks the rules of the rings between processes
// of one host. It owns the name of the slot that the victim's peer has, so it also gets the victim's rings. For each
// line on standard input, a number that decides all choices, it attacks once and prints a line.
#include <fcntl.h>
#include <linux/falloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <random>
#include <span>
#include <vector>

#include "provider/protocol/unix_message.hpp"
#include "provider/soft/links/links.hpp"
#include "provider/soft/same_host/reference.hpp"
#include "provider/soft/same_host/ring.hpp"

using namespace dapple::soft;

namespace {

constexpr uint32_t kOwnSlot = 0x77;
constexpr uint32_t kFirstPsn = 0xFFFFF0;
constexpr auto kRound = std::chrono::milliseconds(100);
constexpr int kPatienceMs = 30000;
constexpr size_t kMaxRings = 16;  // of the victim's that stay open, unanswered
constexpr Addresses kPair = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1},
                             {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1}};

struct Victim {
  uint32_t rc, uc;
  uint64_t region;
  uint32_t rkey;
};

// Honest: right packets. Spoiled: packets and references with wrong fields. Wild: also entries that no writer makes,
// and bytes that change after they were published.
enum class Manner { kHonest, kSpoiled, kWild };

// Writes entries as RingWriter does, and others.
class RawRing {
 public:
  explicit RawRing(const RingMemory& memory) : memory_(memory) {}

  bool has_room() const { return written_ + kMaxBytes - memory_.control().read.load() <= kRingBytes; }
  size_t room_before_end() const { return kRingBytes - written_ % kRingBytes; }

  // `front`: the bytes between the entry and the packet. `bends` changes the entry, which is right before.
  template <typename Bends>
  void append(EntryKind kind, uint8_t front_bits, std::span<const std::byte> front, std::span<const std::byte> packet,
              Bends bends) {
    const size_t bytes = sizeof(RingEntry) + front.size() + packet.size();
    const size_t space = (bytes + RingMemory::kLine - 1) / RingMemory::kLine * RingMemory::kLine;
    if (room_before_end() < space) {
      const size_t rest = room_before_end();
      show({sizeof(RingEntry), EntryKind::kWrap, 0, units(rest)}, rest);
    }
    std::byte* at = place() + sizeof(RingEntry);
    memcpy(at, front.data(), front.size());
    memcpy(at + front.size(), packet.data(), packet.size());
    RingEntry entry = {static_cast<uint32_t>(packet.size()), kind, front_bits, units(space)};
    bends(entry);
    show(entry, space);
  }

 private:
  static constexpr size_t kMaxBytes = 20000;
  static uint16_t units(size_t bytes) { return static_cast<uint16_t>(bytes / sizeof(RingEntry)); }
  std::byte* place() const { return memory_.data() + written_ % kRingBytes; }
  // The reader looks behind the entry for the next one.
  void show(const RingEntry& entry, size_t space) {
    std::byte* at = place();
    written_ += space;
    memset(place(), 0, sizeof entry);
    std::atomic_ref(*reinterpret_cast<uint64_t*>(at)).store(std::bit_cast<uint64_t>(entry));
  }

  const RingMemory& memory_;
  uint64_t written_ = 0;
};

class Peer {
 public:
  explicit Peer(const Victim& victim) : victim_(victim) {}

  void attack(uint64_t seed) {
    random_.seed(seed);
    manner_ = static_cast<Manner>(below(3));
    psn_ = kFirstPsn;
    take_rings();
    for (int wrong = 0; wrong < 6; wrong++) greet_wrongly();
    RingMemory memory;
    OwnedFd file;
    if (memory.create(file) != 0) fail("memory");
    const OwnedFd socket = connect_to_victim();
    RingHello hello;
    // The victim has no ring to most of these.
    hello.slot = spoils(4) ? any32() : kOwnSlot;
    greet(socket, std::as_bytes(std::span(&hello, 1)), {file.get()});
    RawRing ring(memory);
    const auto end = std::chrono::steady_clock::now() + kRound;
    while (std::chrono::steady_clock::now() < end && !has_ended(socket)) {
      for (uint64_t burst = below(40); burst > 0 && ring.has_room(); burst--) {
        write(ring);
        if (manner_ == Manner::kWild) overwrite(memory);
      }
      // The victim may sleep.
      const std::byte byte{0};
      send_message(socket.get(), {&byte, 1}, {}, MSG_DONTWAIT);
      disturb_rings();
    }
    // The pages of a ring may go, too.
    if (one_in(8)) fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, RingMemory::kFileBytes);
  }

  bool listen() {
    sockaddr_un address;
    const socklen_t size = address_of(kOwnSlot, address);
    return bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
           ::listen(listener_.get(), 64) == 0;
  }

 private:
  struct Ring {
    OwnedFd socket;
    std::byte* memory;
  };

  [[noreturn]] static void fail(const char* what) {
    perror(what);
    exit(1);
  }
  uint64_t below(uint64_t end) { return random_() % end; }
  bool one_in(uint64_t count) { return below(count) == 0; }
  bool spoils(uint64_t one_of) { return manner_ != Manner::kHonest && one_in(one_of); }
  uint32_t any32() { return static_cast<uint32_t>(random_()); }

  static socklen_t address_of(uint32_t slot, sockaddr_un& address) {
    char name[32];
    snprintf(name, sizeof name, "%s%u", kSlotName, slot);
    return abstract_address(name, address);
  }
  static bool has_ended(const OwnedFd& socket) {
    pollfd waiting = {socket.get(), POLLRDHUP, 0};
    return poll(&waiting, 1, 0) > 0;
  }

  // Something that is not what the other end expects.
  OwnedFd odd_file() {
    switch (below(6)) {
      case 0:
        return OwnedFd(open("/dev/zero", O_RDWR | O_CLOEXEC));
      case 1:
        return OwnedFd(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      case 2:
        return OwnedFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      case 3:
        return OwnedFd(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
      default:
        break;
    }
    // No pages, or no seals.
    OwnedFd made(memfd_create("odd", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (ftruncate(made.get(), static_cast<off_t>(one_in(2) ? RingMemory::kFileBytes : below(8192))) != 0)
      fail("ftruncate");
    if (one_in(2)) fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    return made;
  }

  OwnedFd connect_to_victim() const {
    sockaddr_un address;
    OwnedFd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const socklen_t size = address_of(victim_.rc >> 16, address);
    if (connect(made.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) fail("connect");
    return made;
  }

  static void greet(const OwnedFd& socket, std::span<const std::byte> hello, const std::vector<int>& files) {
    send_message(socket.get(), hello, files);
  }

  // With a message that the victim must refuse, and now and then with nothing.
  void greet_wrongly() {
    const OwnedFd socket = connect_to_victim(), odd = odd_file();
    RingMemory memory;
    OwnedFd file;
    if (memory.create(file) != 0) fail("memory");
    RingHello hello;
    const auto bytes = std::as_bytes(std::span(&hello, 1));
    switch (below(5)) {
      case 0:
        hello.magic ^= 1U << below(32);
        greet(socket, bytes, {file.get()});
        break;
      case 1:
        greet(socket, bytes, {file.get(), odd.get()});
        break;
      case 2:
        greet(socket, bytes.first(1 + below(bytes.size() - 1)), {file.get()});
        break;
      case 3:
        greet(socket, bytes, {odd.get()});
        break;
      default:
        if (one_in(2)) greet(socket, bytes, {});
        return;
    }
    pollfd waiting = {socket.get(), POLLRDHUP, 0};
    if (poll(&waiting, 1, kPatienceMs) == 0) fail("a wrong ring was not refused");
  }

  static void put(uint8_t* to, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++) to[i] = static_cast<uint8_t>(value >> 8 * (size - 1 - i));
  }

  // Writes a packet to `to`, which has room for 8 KiB, and returns its size.
  size_t packet(uint8_t* to) {
    // Sends, Writes, atomics, Reads, and what only a peer with requests of this end may send.
    constexpr uint8_t kHonest[] = {0x04, 0x04, 0x05, 0x0A, 0x0A, 0x24, 0x25, 0x2A};
    constexpr uint8_t kOthers[] = {0x00, 0x01, 0x02, 0x06, 0x07, 0x08, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11,
                                   0x12, 0x13, 0x14, 0x16, 0x17, 0x1C, 0x1D, 0x20, 0x21, 0x22, 0x26, 0x64};
    uint8_t opcode = kHonest[below(sizeof kHonest)];
    if (one_in(60)) opcode = 0x14;
    if (spoils(3)) opcode = one_in(4) ? static_cast<uint8_t>(any32()) : kOthers[below(sizeof kOthers)];
    const uint32_t operation = opcode & 31;
    const bool is_uc = opcode >> 5 == 1;
    memset(to, 0, 64);
    to[0] = opcode;
    to[1] = 0x40;
    put(to + 2, 0xFFFF, 2);
    put(to + 5, spoils(30) ? any32() : is_uc ? victim_.uc : victim_.rc, 3);
    to[8] = one_in(2) ? 0x80 : 0;
    put(to + 9, spoils(10) ? any32() : psn_, 3);
    if (!is_uc) psn_ = (psn_ + 1) & 0xFFFFFF;
    size_t size = 12;
    uint8_t* length = nullptr;
    if (operation == 0x1C) size += 4;
    if (operation == 6 || operation == 10 || operation == 11 || operation == 12 || operation >= 0x1C) {
      put(to + size, victim_.region + (spoils(8) ? random_() : below(512) * 8), 8);
      put(to + size + 8, spoils(12) ? any32() : victim_.rkey, 4);
      length = to + size + 12;
      size += 16;
    }
    if (operation == 0x13 || operation == 0x14) {
      put(to + size, victim_.region + below(512) * 8, 8);
      put(to + size + 8, spoils(12) ? any32() : victim_.rkey, 4);
      size += 28;
    }
    if (operation >= 0x0D && operation <= 0x12 && operation != 0x0E) put(to + size, any32(), 4), size += 4;
    if (operation == 0x12) size += 8;
    if (operation == 3 || operation == 5 || operation == 9 || operation == 11 || operation == 0x16 || operation == 0x17)
      size += 4;
    const bool has_payload =
        operation <= 11 || operation == 0x16 || operation == 0x17 || (operation >= 0x0D && operation <= 0x10);
    const size_t payload = operation == 0x1D ? 8 : has_payload ? below(1025) : 0;
    if (length != nullptr) put(length, spoils(6) ? any32() : operation == 0x0C ? below(70000) : payload, 4);
    memset(to + size, 'x', payload + 4);
    to[size] = 'M';
    to[1] = static_cast<uint8_t>(to[1] | (-payload & 3) << 4);
    size += payload + (-payload & 3);
    if (spoils(10)) to[below(size)] ^= static_cast<uint8_t>(1 << below(8));
    return spoils(30) ? 1 + below(size) : size;
  }

  // A packet that stands for bytes of this process, which the victim does not reach.
  size_t reference(uint8_t* to) {
    uint8_t whole[8192];
    packet(whole);
    memset(to, 0, kReferringPacket);
    memcpy(to, whole, 12);
    to[0] = manner_ == Manner::kHonest ? 0x04 : static_cast<uint8_t>(below(6));
    RingReference made = {};
    made.owner = random_();
    made.source_count = spoils(10) ? any32() : static_cast<uint32_t>(1 + below(RingReference::kMaxSources));
    for (uint32_t i = 0; i < made.source_count && i < RingReference::kMaxSources; i++) {
      made.sources[i] = {random_(), spoils(6) ? any32() : static_cast<uint32_t>(below(1000)), any32()};
      made.length += made.sources[i].length;
    }
    if (spoils(10)) made.length = any32();
    made.packets = spoils(6) ? any32() : (made.length + 4095) / 4096;
    made.headers = spoils(6) ? any32() % 128 : 12;
    memcpy(to + kReferenceOffset, &made, sizeof made);
    return kReferringPacket;
  }

  void write(RawRing& ring) {
    uint8_t packet_bytes[8192];
    const bool refers = one_in(8);
    const size_t size = refers ? reference(packet_bytes) : packet(packet_bytes);
    struct {
      Addresses addresses = kPair;
      dapple::roce::Acknowledgement acknowledgement = {};
    } front;
    if (spoils(20)) front.addresses.source[below(16)] ^= 1;
    const bool acknowledges = spoils(6);
    if (acknowledges) front.acknowledgement = {any32(), static_cast<uint8_t>(any32())};
    const auto bits = static_cast<uint8_t>(EntryFront::kAddresses | (acknowledges ? EntryFront::kAcknowledgement : 0));
    const auto kind = refers ? EntryKind::kReference : EntryKind::kPacket;
    const size_t front_size = acknowledges ? sizeof front : sizeof front.addresses;
    // The reader must not read behind the ring's end.
    const uint64_t one_of = ring.room_before_end() < 6000 ? 4 : 400;
    ring.append(kind, bits, std::as_bytes(std::span(&front, 1)).first(front_size),
                std::as_bytes(std::span(packet_bytes)).first(size), [&](RingEntry& entry) {
                  if (manner_ == Manner::kWild && one_in(one_of)) bend(entry);
                });
  }

  void bend(RingEntry& entry) {
    switch (below(6)) {
      case 0:
        entry.size = any32();
        break;
      case 1:
        entry.size = static_cast<uint32_t>(1 + below(5000));
        break;
      case 2:
        entry.space = static_cast<uint16_t>(any32());
        break;
      case 3:
        entry.size = static_cast<uint32_t>(1 + below(kLongestRingPacket));
        entry.space = static_cast<uint16_t>(below(1000));
        break;
      case 4:
        entry.front = static_cast<uint8_t>(any32());
        break;
      default:
        entry = std::bit_cast<RingEntry>(random_());
        break;
    }
    if (one_in(4)) entry.kind = static_cast<EntryKind>(below(5));
  }

  // What is in the ring already.
  void overwrite(const RingMemory& memory) {
    std::byte* at = memory.data() + below(kRingBytes / 8) * 8;
    if (one_in(4)) at[below(8)] = static_cast<std::byte>(any32());
    if (one_in(30)) memory.control().fetches.store(random_());
    // The victim waits for the end of a copy that is announced: the round's end shows it.
    if (one_in(30)) memory.control().announcements[below(kAnnouncements)].tickets.store(random_() & 0xFFF00000FFF);
    if (one_in(30)) memory.control().read.store(random_() >> below(64));
    // It has proved nothing, whatever it says.
    ProofWords& proof = memory.control().proof;
    if (one_in(20)) proof.answer[below(2)].store(random_());
    if (one_in(20)) proof.right.store(one_in(2) ? Right::kGranted : static_cast<Right>(any32()));
    if (one_in(20)) proof.asked.store(any32());
  }

  // The victim's connections to this process: some get odd answers, some an end, some no answer at all.
  void take_rings() {
    for (;;) {
      OwnedFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket) break;
      RingHello hello;
      Descriptors files;
      receive_message(socket.get(), std::as_writable_bytes(std::span(&hello, 1)), files, MSG_DONTWAIT);
      void* memory = MAP_FAILED;
      if (files.count == 1) {
        const int file = files.fds[0].get();
        memory = mmap(nullptr, RingMemory::kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (ftruncate(file, 100) == 0) fail("the ring could be cut");
        if (one_in(4)) fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192);
      }
      const uint64_t how = below(4);
      if (how < 2) {
        const OwnedFd odd[] = {odd_file(), odd_file(), odd_file()};
        const int numbers[] = {odd[0].get(), odd[1].get(), odd[2].get()};
        const std::byte byte{0};
        send_message(socket.get(), {&byte, 1}, std::span(numbers).first(below(4)), MSG_DONTWAIT);
      }
      if (how == 2) {
        const std::vector<std::byte> flood(100000, static_cast<std::byte>(one_in(2) ? 0 : any32()));
        send_message(socket.get(), flood, {}, MSG_DONTWAIT);
      }
      if (how != 3 || memory == MAP_FAILED) continue;
      rings_.push_back({std::move(socket), static_cast<std::byte*>(memory)});
      if (rings_.size() <= kMaxRings) continue;
      munmap(rings_.front().memory, RingMemory::kFileBytes);
      rings_.erase(rings_.begin());
    }
  }

  // This process is their reader.
  void disturb_rings() {
    for (const Ring& ring : rings_) {
      auto& control = *reinterpret_cast<RingMemory::Control*>(ring.memory);
      if (one_in(4)) control.read.store(one_in(2) ? random_() : control.read.load() + below(4096));
      if (one_in(4)) control.sleeping.store(any32());
      if (one_in(4)) control.waiting.store(any32());
      if (one_in(4)) control.fetches.store(random_());
      // A challenge with an address anywhere. The victim looks at it once, when a byte wakes it.
      if (one_in(4)) control.proof.address.store(one_in(2) ? random_() : reinterpret_cast<uintptr_t>(&ring));
      if (one_in(4)) control.proof.seal.store(random_());
      if (one_in(8)) control.proof.asked.store(1);
      const std::byte byte{0};
      if (one_in(4)) send_message(ring.socket.get(), {&byte, 1}, {}, MSG_DONTWAIT);
      if (one_in(4)) ring.memory[RingMemory::kControlBytes + below(kRingBytes)] = static_cast<std::byte>(any32());
    }
  }

  const Victim victim_;
  std::mt19937_64 random_;
  Manner manner_ = Manner::kHonest;
  uint32_t psn_ = kFirstPsn;
  OwnedFd listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  std::vector<Ring> rings_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto number = [&](int place) { return strtoull(argv[place], nullptr, 16); };
  Peer peer({static_cast<uint32_t>(number(1)), static_cast<uint32_t>(number(2)), number(3),
             static_cast<uint32_t>(number(4))});
  if (!peer.listen()) return perror("listen"), 1;
  puts("listening");
  char line[32];
  while (fgets(line, sizeof line, stdin) != nullptr) {
    peer.attack(strtoull(line, nullptr, 10));
    puts("attacked");
  }
  return 0;
}
