// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/threads/memory_model.hpp"

#include <sys/mman.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dapple::sim {
namespace {

constexpr uint64_t kGranule = 8;
constexpr uint64_t kPage = 4096;

uint64_t read_memory(uint64_t address, uint32_t size) {
  uint64_t value = 0;
  memcpy(&value, reinterpret_cast<const void*>(address), size);
  return value;
}

void write_memory(uint64_t address, uint32_t size, uint64_t value) {
  memcpy(reinterpret_cast<void*>(address), &value, size);
}

}  // namespace

struct MemoryModel::Page {
  Granule granules[kPage / kGranule];
};

// The pages of the program that were touched, found by their numbers. New ones are zero.
class MemoryModel::Pages {
 public:
  Pages() {
    void* room = mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) abort();
    next_ = static_cast<Page*>(room);
    begin_ = room;
  }
  ~Pages() { munmap(begin_, kRoom); }

  Page& find(uint64_t number) {
    if (number == last_number_) return *last_;
    uint64_t place = mixed(number) % kEntries;
    while (entries_[place].page != nullptr && entries_[place].number != number) place = (place + 1) % kEntries;
    Entry& entry = entries_[place];
    if (entry.page == nullptr) {
      assert(used_ < kEntries / 2);
      used_++;
      entry = {number, next_++};
    }
    last_number_ = number;
    last_ = entry.page;
    return *last_;
  }
  Page* find_touched(uint64_t number) {
    if (number == last_number_) return last_;
    for (uint64_t place = mixed(number) % kEntries; entries_[place].page != nullptr; place = (place + 1) % kEntries)
      if (entries_[place].number == number) return entries_[place].page;
    return nullptr;
  }

 private:
  struct Entry {
    uint64_t number = 0;
    Page* page = nullptr;
  };
  static constexpr uint64_t kEntries = 1 << 14;
  static constexpr size_t kRoom = kEntries / 2 * sizeof(Page);
  Entry entries_[kEntries];
  uint64_t used_ = 0;
  uint64_t last_number_ = 0;
  Page* last_ = nullptr;
  Page* next_;
  void* begin_;
};

uint64_t Location::read_floor(const Clock& seen) const {
  uint64_t floor = 0;
  for (const auto& of_thread : reads_) {
    for (const Read& read : of_thread)
      if (read.by && seen.covers(read.by)) floor = std::max(floor, read.index);
  }
  return floor;
}

void Location::note_read(Epoch reader, uint64_t index) {
  Read(&reads)[kMaxReads] = reads_[reader.thread];
  // A thread's later reads return no older stores, so one read of an epoch is enough.
  if (reads[0].by == reader || reads[0].index == index) {
    reads[0].index = index;
    if (!reads[0].by) reads[0].by = reader;
    return;
  }
  for (uint32_t i = kMaxReads - 1; i > 0; i--) reads[i] = reads[i - 1];
  reads[0] = {reader, index};
}

void Location::insert(uint64_t index, const Store& store) {
  end_++;
  for (uint64_t i = end_ - 1; i > index; i--) stores_[i % kMaxStores] = stores_[(i - 1) % kMaxStores];
  stores_[index % kMaxStores] = store;
  for (auto& of_thread : reads_)
    for (Read& read : of_thread)
      if (read.by && read.index >= index) read.index++;
  if (time_of_that_read != 0 && read_in_total_order >= index) read_in_total_order++;
}

bool Location::is_ordered(const Clock& before) const {
  for (uint64_t i = first(); i < end_; i++)
    if (const Store& store = stores_[i % kMaxStores]; store.by && !before.covers(store.by)) return false;
  for (const auto& of_thread : reads_)
    for (const Read& read : of_thread)
      if (read.by && !before.covers(read.by)) return false;
  return true;
}

MemoryModel::MemoryModel(uint64_t seed, uint32_t weakness, std::function<void(const std::string&)> fail)
    : random_(seed), weakness_(weakness), fail_(std::move(fail)), pages_(std::make_unique<Pages>()) {
  for (uint32_t i = 0; i < kMaxThreads; i++) threads_[i].known.before.of[i] = threads_[i].known.seen.of[i] = 1;
}

MemoryModel::~MemoryModel() = default;

// Whoever learns of the epochs so far does not learn of the following one.
void MemoryModel::advance(uint32_t thread) {
  Knowledge& known = threads_[thread].known;
  known.seen.of[thread] = ++known.before.of[thread];
}

void MemoryModel::start(uint32_t thread, uint32_t parent) {
  threads_[thread].known.join(threads_[parent].known);
  advance(parent);
}

void MemoryModel::join(uint32_t thread, uint32_t ended) {
  threads_[thread].known.join(threads_[ended].known);
}

MemoryModel::Granule& MemoryModel::granule(uint64_t address) {
  return pages_->find(address / kPage).granules[address % kPage / kGranule];
}

void MemoryModel::race(uint32_t thread, const char* access, uint64_t address, Epoch other, Site site, Site other_site) {
  char text[256];
  snprintf(text, sizeof text, "data race: %s by thread %u at %#lx (in %p), and by thread %u (in %p)", access, thread,
           address, site, other.thread, other_site);
  fail_(text);
}

// The atomic object, with the value in memory as its only store if no atomic access came before.
Location& MemoryModel::location(uint32_t thread, const void* object, uint32_t size, bool writes, Site site) {
  const auto address = reinterpret_cast<uint64_t>(object);
  assert(address % size == 0);
  Granule& here = granule(address);
  const Clock& before = threads_[thread].known.before;
  for (uint64_t i = address % kGranule; i < address % kGranule + size; i++) {
    if (here.written[i] && !before.covers(here.written[i])) {
      race(thread, "atomic access", address, here.written[i], site, here.writer);
      here.written[i] = {};
    }
    if (writes && here.read[i] && !before.covers(here.read[i])) {
      race(thread, "atomic store", address, here.read[i], site, here.reader);
      here.read[i] = {};
    }
  }
  Location** at = &here.location;
  while (*at != nullptr && ((*at)->address != address || (*at)->size != size)) at = &(*at)->next;
  if (*at == nullptr) {
    *at = new Location(address, size);
    Location::Store initial;
    initial.value = read_memory(address, size);
    (*at)->add(initial);
  }
  return **at;
}

// The oldest store that the thread may read. `total`: the load is sequentially consistent. Its place in the total order
// is behind the operations that the thread knows, and may be in front of others that were executed before.
uint64_t MemoryModel::floor_of(uint32_t thread, Location& at, bool total) {
  const Knowledge& known = threads_[thread].known;
  uint64_t floor = std::max(at.first(), at.read_floor(known.seen));
  const uint32_t order = total ? known.total : known.fence;
  if (at.time_of_that_read != 0 && at.time_of_that_read <= order) floor = std::max(floor, at.read_in_total_order);
  for (uint64_t i = at.last(); i > floor; i--) {
    const Location::Store& store = at.at(i);
    const bool is_in_order = store.in_total_order != 0 && store.in_total_order <= order;
    const bool is_old = store.time + kLongestStaleness < now;
    if (is_in_order || is_old || known.seen.covers(store.by) || (total && fenced_.covers(store.by))) return i;
  }
  return floor;
}

void MemoryModel::take(uint32_t thread, Location& at, uint64_t index, Order order) {
  Thread& who = threads_[thread];
  at.note_read(epoch(thread), index);
  const Knowledge& carried = at.at(index).carried;
  if (acquires(order)) {
    who.known.join(carried);
  } else {
    who.loaded.join(carried);
  }
  if (order != std::memory_order_seq_cst) return;
  // A processor takes a store of its own out of its buffer, so the load shows it to nobody. C++20 is stricter here.
  const Location::Store& store = at.at(index);
  if (store.in_total_order == 0 && store.by.thread == thread) return;
  if (index == at.last()) {
    at.read_in_total_order = index;
    at.time_of_that_read = who.known.total = ++total_order_;
  } else {
    // In front of the store that it has missed.
    who.known.total = std::max(who.known.total, store.in_total_order);
  }
}

// The modification order of a relaxed store may differ from the order of execution: an earlier store of another thread
// has waited in its processor, and comes later.
uint64_t MemoryModel::place_of_store(uint32_t thread, Location& at, Order order) {
  const uint64_t end = at.last() + 1;
  if (order == std::memory_order_seq_cst || !random_.in_thousand(weakness_ / 2)) return end;
  const uint64_t place = random_.between(floor_of(thread, at, false) + 1, end);
  return place < end && at.at(place).is_modification ? end : place;
}

// `before`: what the store carries of the one that it replaces, as a read-modify-write.
void MemoryModel::put(uint32_t thread, Location& at, uint64_t value, Order order, const Knowledge* before, Site site) {
  Thread& who = threads_[thread];
  Location::Store store;
  store.value = value;
  store.by = epoch(thread);
  store.time = now;
  store.site = site;
  store.carried = releases(order) ? who.known : who.released;
  if (before != nullptr) store.carried.join(*before);
  store.is_modification = before != nullptr;
  if (order == std::memory_order_seq_cst) store.in_total_order = who.known.total = ++total_order_;
  const uint64_t place = before != nullptr ? at.last() + 1 : place_of_store(thread, at, order);
  if (place > at.last()) {
    at.add(store);
    write_memory(at.address, at.size, value);
  } else {
    at.insert(place, store);
  }
  if (releases(order)) advance(thread);
}

MemoryModel::Loaded MemoryModel::load(uint32_t thread, const void* object, uint32_t size, Order order, Site site) {
  Location& at = location(thread, object, size, false, site);
  uint64_t index = at.last();
  if (index > 0 && random_.in_thousand(weakness_)) {
    const uint64_t floor = floor_of(thread, at, order == std::memory_order_seq_cst);
    index = random_.between(floor, index);
  }
  const uint64_t value = at.at(index).value;
  take(thread, at, index, order);
  return {value, at.last() - index};
}

void MemoryModel::store(uint32_t thread, void* object, uint32_t size, uint64_t value, Order order, Site site) {
  put(thread, location(thread, object, size, true, site), value, order, nullptr, site);
}

uint64_t MemoryModel::modify(uint32_t thread, void* object, uint32_t size, Change change, uint64_t operand,
                             uint64_t expected, Order order, Order failure, Site site) {
  Location& at = location(thread, object, size, true, site);
  const uint64_t index = at.last();
  const uint64_t old = at.at(index).value;
  uint64_t value = old;
  const bool stores = change(value, operand, expected);
  if (size < sizeof value) value &= (uint64_t{1} << 8 * size) - 1;
  const Knowledge carried = at.at(index).carried;
  take(thread, at, index, stores ? order : failure);
  if (stores) put(thread, at, value, order, &carried, site);
  return old;
}

void MemoryModel::fence_in_total_order(uint32_t thread) {
  Knowledge& known = threads_[thread].known;
  known.seen.join(fenced_);
  fenced_.join(known.seen);
  known.total = known.fence = ++total_order_;
}

void MemoryModel::fence(uint32_t thread, Order order) {
  Thread& who = threads_[thread];
  if (acquires(order)) who.known.join(who.loaded);
  if (order == std::memory_order_seq_cst) fence_in_total_order(thread);
  if (!releases(order)) return;
  who.released = who.known;
  advance(thread);
}

// The kernel interrupts each of them and waits for the answers, so they also know what came before.
void MemoryModel::fence_all(const std::vector<uint32_t>& threads) {
  Knowledge all;
  for (uint32_t thread : threads) {
    fence(thread, std::memory_order_seq_cst);
    all.join(threads_[thread].known);
  }
  for (uint32_t thread : threads) {
    threads_[thread].known.join(all);
    fence(thread, std::memory_order_seq_cst);
  }
}

void MemoryModel::release(uint32_t thread, Knowledge& to) {
  to.join(threads_[thread].known);
  advance(thread);
}

void MemoryModel::plain_read(uint32_t thread, const void* bytes, size_t size, Site site) {
  const Clock& before = threads_[thread].known.before;
  const Epoch self = epoch(thread);
  auto address = reinterpret_cast<uint64_t>(bytes);
  for (const uint64_t end = address + size; address < end;) {
    Granule& here = granule(address);
    const uint64_t from = address % kGranule;
    const uint64_t to = std::min(kGranule, from + (end - address));
    for (uint64_t i = from; i < to; i++) {
      if (here.written[i] && !before.covers(here.written[i])) {
        race(thread, "plain read", address, here.written[i], site, here.writer);
        here.written[i] = {};
      }
      if (!here.read[i] || before.covers(here.read[i]) || random_.below(2) == 0) here.read[i] = self;
    }
    here.reader = site;
    for (Location* at = here.location; at != nullptr; at = at->next) {
      if (at->address % kGranule >= to || at->address % kGranule + at->size <= from) continue;
      const Location::Store& last = at->at(at->last());
      if (last.by && !before.covers(last.by)) race(thread, "plain read", at->address, last.by, site, last.site);
    }
    address += to - from;
  }
}

void MemoryModel::plain_write(uint32_t thread, void* bytes, size_t size, Site site) {
  const Clock& before = threads_[thread].known.before;
  const Epoch self = epoch(thread);
  auto address = reinterpret_cast<uint64_t>(bytes);
  for (const uint64_t end = address + size; address < end;) {
    Granule& here = granule(address);
    const uint64_t from = address % kGranule;
    const uint64_t to = std::min(kGranule, from + (end - address));
    for (uint64_t i = from; i < to; i++) {
      if (here.written[i] && !before.covers(here.written[i]))
        race(thread, "plain write", address, here.written[i], site, here.writer);
      if (here.read[i] && !before.covers(here.read[i]))
        race(thread, "plain write", address, here.read[i], site, here.reader);
      here.written[i] = self;
      here.read[i] = {};
    }
    here.writer = site;
    for (Location** at = &here.location; *at != nullptr;) {
      if ((*at)->address % kGranule >= to || (*at)->address % kGranule + (*at)->size <= from) {
        at = &(*at)->next;
        continue;
      }
      Location* const gone = *at;
      if (!gone->is_ordered(before))
        race(thread, "plain write", gone->address, gone->at(gone->last()).by, site, gone->at(gone->last()).site);
      *at = gone->next;
      delete gone;
    }
    address += to - from;
  }
}

void MemoryModel::forget(const void* bytes, size_t size) {
  auto address = reinterpret_cast<uint64_t>(bytes) / kGranule * kGranule;
  const uint64_t end = reinterpret_cast<uint64_t>(bytes) + size;
  while (address < end) {
    Page* page = pages_->find_touched(address / kPage);
    if (page == nullptr) {
      address = (address / kPage + 1) * kPage;
      continue;
    }
    Granule& here = page->granules[address % kPage / kGranule];
    while (Location* gone = here.location) {
      here.location = gone->next;
      delete gone;
    }
    here = {};
    address += kGranule;
  }
}

}  // namespace dapple::sim
