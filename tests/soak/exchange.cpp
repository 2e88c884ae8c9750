// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/soak/exchange.hpp"

#include <string.h>

#include <vector>

#include "tests/soak/end.hpp"
#include "tests/soak/pattern.hpp"

namespace dapple::soak {
namespace {

constexpr uint64_t kMagic = 0x6B616F73656C7070;
constexpr uint64_t kProbeMs = 3000;      // silence after which a side looks whether the other lives
constexpr uint64_t kPatienceMs = 90000;  // silence that is a hang
constexpr uint32_t kMaxBatches = 12;
constexpr uint32_t kSmallestPartBits = 12, kPartBits = 8;

// The slots of messages to be sent, after those of receives.
constexpr uint32_t kControlSlot = kReceives, kDoneSlot = kReceives + 1, kProbeSlot = kReceives + 2;
constexpr uint32_t kDataSlot = kReceives + 3;
constexpr uint32_t kSlots = kDataSlot + kMaxTransfers;

// Parts of a side's memory, as Batch::bytes numbers them.
constexpr uint32_t kBlank = 0, kWriteSource = 1, kReadSource = 2, kReadBlank = 3, kWord = 4, kSendBytes = 5;

size_t place_of(uint32_t slot) {
  return size_t{slot} * kMessageSize;
}

void expect_image(const unsigned char* found, const std::vector<unsigned char>& expected, const char* what,
                  uint64_t number) {
  for (size_t i = 0; i < expected.size(); i++) {
    if (found[i] == expected[i]) continue;
    wrong("batch %llu: byte %zu of %zu %s is %#04x instead of %#04x", static_cast<unsigned long long>(number), i,
          expected.size(), what, found[i], expected[i]);
  }
}

}  // namespace

bool Exchange::run() {
  if (!link_.begin()) return false;
  messages_ = Mapping(place_of(kSlots));
  link_.add(Area::kMessages, messages_.get(), messages_.size());
  for (uint32_t slot = 0; slot < kReceives; slot++) post_receive(slot);
  link_.establish();
  connected_ = true;
  greet();
  Random random(seed_);
  const uint32_t batches = 1 + random.below(kMaxBatches);
  for (uint64_t number = 1; number <= batches; number++) {
    if (number == 1 || random.one_in(4)) {
      layout_.part = size_t{1} << (kSmallestPartBits + random.below(kPartBits));
      make_data();
    }
    prepare(number);
    say(Word::kReady, kControlSlot, number);
    wait_until([&] { return ready_ >= number; }, "the peer's next batch");
    for (uint32_t i = 0; i < batch_.sides[side_].count; i++) transfer(i);
    // A Read that is repeated reads again, so its source must stay until it is complete.
    wait_until([&] { return all_done(); }, "the transfers' completions");
    say(Word::kDone, kDoneSlot, number);
    wait_until([&] { return done_ >= number && all_done(); }, "the end of the peer's batch");
    check(number);
  }
  // The client's last Send is complete, so it may disconnect as soon as it has the server's.
  if (server()) say(Word::kBye, kControlSlot);
  if (!server()) wait_until([&] { return bye_; }, "the server's goodbye");
  link_.leave();
  return true;
}

void Exchange::greet() {
  if (!server()) say(Word::kHello, kControlSlot, 0, 0, seed_);
  wait_until([&] { return greeted_; }, "the peer's greeting");
  if (server()) say(Word::kHello, kControlSlot, 0, 0, seed_);
  wait_until([&] { return all_done(); }, "the greeting's completion");
}

// Replaces the registered memory.
void Exchange::make_data() {
  link_.drop(Area::kData);
  data_ = Mapping();
  // Regions begin anywhere in a page. Atomic operations need multiples of eight.
  const size_t offset = size_t{8} * (mix(seed_ + layout_.part + side_) % 512);
  data_ = Mapping(offset + layout_.size());
  area_ = data_.get() + offset;
  link_.add(Area::kData, area_, layout_.size());
}

void Exchange::prepare(uint64_t number) {
  batch_ = plan_batch(seed_, number, layout_.part, has_atomics_);
  arrived_ = 0;
  fill(area_ + layout_.written(), layout_.part, batch_.bytes(side_, kBlank));
  fill(area_ + layout_.write_source(), layout_.part, batch_.bytes(side_, kWriteSource));
  fill(area_ + layout_.read_source(), layout_.part, batch_.bytes(side_, kReadSource));
  fill(area_ + layout_.read_into(), layout_.part, batch_.bytes(side_, kReadBlank));
  fill(area_ + layout_.word(), layout_.size() - layout_.word(), batch_.bytes(side_, kWord));
}

void Exchange::transfer(uint32_t index) {
  const Transfer& it = batch_.sides[side_].transfers[index];
  news_.transfers++;
  switch (it.operation) {
    case Operation::kSend:
      return say(Word::kData, kDataSlot + index, index, it.size, batch_.bytes(side_, kSendBytes + index));
    case Operation::kWrite:
      return link_.write(posted_++, layout_.write_source() + it.from, layout_.written() + it.to, it.size);
    case Operation::kRead:
      return link_.read(posted_++, layout_.read_into() + it.to, layout_.read_source() + it.from, it.size);
    case Operation::kAtomic:
      return link_.atomic(posted_++, layout_.result(index), layout_.word(), it.value);
  }
}

void Exchange::check(uint64_t number) {
  check_written(number);
  check_read(number);
  if (has_atomics_) check_atomics(number);
  uint32_t sends = 0;
  const Side& theirs = batch_.sides[peer_side()];
  for (uint32_t i = 0; i < theirs.count; i++) sends += theirs.transfers[i].operation == Operation::kSend ? 1U : 0U;
  if (sends != arrived_) wrong("%u messages instead of %u", arrived_, sends);
}

// The bytes between the Writes must be as before.
void Exchange::check_written(uint64_t number) {
  std::vector<unsigned char> expected(layout_.part);
  fill(expected.data(), expected.size(), batch_.bytes(side_, kBlank));
  const Side& theirs = batch_.sides[peer_side()];
  for (uint32_t i = 0; i < theirs.count; i++) {
    const Transfer& it = theirs.transfers[i];
    if (it.operation != Operation::kWrite) continue;
    fill(expected.data() + it.to, it.size, batch_.bytes(peer_side(), kWriteSource), it.from);
  }
  expect_image(area_ + layout_.written(), expected, "that the peer writes to", number);
  news_.checked += expected.size();
}

void Exchange::check_read(uint64_t number) {
  std::vector<unsigned char> expected(layout_.part);
  fill(expected.data(), expected.size(), batch_.bytes(side_, kReadBlank));
  const Side& mine = batch_.sides[side_];
  for (uint32_t i = 0; i < mine.count; i++) {
    const Transfer& it = mine.transfers[i];
    if (it.operation != Operation::kRead) continue;
    fill(expected.data() + it.to, it.size, batch_.bytes(peer_side(), kReadSource), it.from);
  }
  expect_image(area_ + layout_.read_into(), expected, "that were read", number);
  news_.checked += expected.size();
}

void Exchange::check_atomics(uint64_t number) {
  const auto word_of = [&](uint32_t side, const unsigned char* memory) {
    uint64_t word;
    if (memory == nullptr) {
      fill(reinterpret_cast<unsigned char*>(&word), sizeof word, batch_.bytes(side, kWord));
    } else {
      memcpy(&word, memory, sizeof word);
    }
    return word;
  };
  for (const uint32_t side : {0U, 1U}) {
    // The word that this side changes is the other's.
    uint64_t word = word_of(1 - side, nullptr);
    for (uint32_t i = 0; i < batch_.sides[side].count; i++) {
      const Transfer& it = batch_.sides[side].transfers[i];
      if (it.operation != Operation::kAtomic) continue;
      const bool mine = side == side_ && atomics_add_;
      if (mine && word_of(side, area_ + layout_.result(i)) != word)
        wrong("batch %llu: atomic operation %u returned another value", static_cast<unsigned long long>(number), i);
      word = atomics_add_ ? word + it.value : it.value;
    }
    if (side != side_ && word_of(side_, area_ + layout_.word()) != word)
      wrong("batch %llu: the word of the atomic operations is wrong", static_cast<unsigned long long>(number));
  }
  news_.checked += sizeof(uint64_t);
}

void Exchange::post_receive(uint32_t slot) {
  link_.receive(slot, place_of(slot), kMessageSize);
}

void Exchange::say(Word word, uint32_t slot, uint64_t number, uint32_t size, uint64_t seed) {
  unsigned char* place = messages_.get() + place_of(slot);
  Header header;
  header.magic = kMagic;
  header.word = word;
  header.size = size;
  header.number = number;
  header.seed = seed;
  if (word == Word::kReady) header.key = link_.key();
  memcpy(place, &header, sizeof header);
  fill(place + sizeof header, size, seed);
  link_.send(posted_++, place_of(slot), static_cast<uint32_t>(sizeof header + size));
}

template <class Condition>
void Exchange::wait_until(Condition condition, const char* what) {
  uint64_t last = shared_.clock_ms, probed = last;
  while (!condition()) {
    Completion completion;
    if (link_.next(completion)) {
      handle(completion);
      last = shared_.clock_ms;
      continue;
    }
    if (shared_.stop) end_with(End::kStopped, "the test ends");
    link_.sleep();
    const uint64_t time = shared_.clock_ms;
    if (time > last + kPatienceMs) wrong("nothing for %llu s while this side waits for %s", 90ULL, what);
    if (time < last + kProbeMs || time < probed + kProbeMs || !all_done()) continue;
    // Without traffic a side does not notice that the other has died.
    probed = time;
    say(Word::kNothing, kProbeSlot);
  }
}

void Exchange::handle(const Completion& completion) {
  news_.steps++;
  switch (completion.status) {
    case Status::kGood:
      break;
    case Status::kFlushed:
      end_with(End::kFlushed, "%s is flushed", completion.receive ? "a receive" : "a request");
    case Status::kRetries:
      if (!completion.receive) end_with(End::kRetries, "the peer no longer answers");
      [[fallthrough]];
    case Status::kOther:
      wrong("%s completed with status %d", completion.receive ? "a receive" : "a request", completion.code);
  }
  if (completion.receive) return take(static_cast<uint32_t>(completion.id), completion.length);
  // IBTA 11.6.2: a queue pair completes in order.
  if (completion.id != completed_) wrong("a request completes out of order");
  completed_++;
}

void Exchange::take(uint32_t slot, uint32_t length) {
  const unsigned char* place = messages_.get() + place_of(slot);
  Header header;
  memcpy(&header, place, sizeof header);
  if (length < sizeof header || header.magic != kMagic || header.size + sizeof header != length)
    wrong("a message of %u bytes is not one of the peer's", length);
  switch (header.word) {
    case Word::kHello:
      greeted_ = true;
      if (server()) seed_ = header.seed;
      break;
    case Word::kReady:
      if (header.number != ready_ + 1) wrong("the peer begins batch %u", static_cast<unsigned>(header.number));
      ready_ = header.number;
      link_.learn(header.key);
      break;
    case Word::kData:
      take_data(header, place + sizeof header, header.size);
      break;
    case Word::kDone:
      if (header.number != done_ + 1) wrong("the peer ends batch %u", static_cast<unsigned>(header.number));
      done_ = header.number;
      break;
    case Word::kBye:
      bye_ = true;
      break;
    case Word::kNothing:
      break;
  }
  post_receive(slot);
}

void Exchange::take_data(const Header& header, const unsigned char* bytes, uint32_t length) {
  const Side& theirs = batch_.sides[peer_side()];
  const auto index = static_cast<uint32_t>(header.number);
  if (index >= theirs.count || theirs.transfers[index].operation != Operation::kSend ||
      theirs.transfers[index].size != length || header.seed != batch_.bytes(peer_side(), kSendBytes + index))
    wrong("message %u of the batch is another one", index);
  // Messages come in their order.
  uint32_t before = 0;
  for (uint32_t i = 0; i < index; i++) before += theirs.transfers[i].operation == Operation::kSend ? 1U : 0U;
  if (before != arrived_) wrong("message %u came after %u others", index, arrived_);
  const size_t at = first_wrong(bytes, length, header.seed);
  if (at != length) wrong("byte %zu of a message of %u bytes is wrong", at, length);
  arrived_++;
  news_.checked += length;
}

}  // namespace dapple::soak
