// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/resource_table.hpp"

#include <sys/stat.h>

#include <memory>
#include <thread>
#include <vector>

#include "provider/soft/objects/object_limits.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

struct Rig {
  std::unique_ptr<SlotResources> shared = std::make_unique<SlotResources>();
  std::atomic<uint32_t> forks{0};
  ResourceRowMemory memory;
  std::unique_ptr<ResourceTable> table = std::make_unique<ResourceTable>(*shared, memory, forks);
};

ResourceRow row_of(ResourceKind kind, uint32_t number, uint32_t context = 0) {
  ResourceRow row;
  row.kind = kind;
  row.device = 5;
  row.number = number;
  row.context = context;
  return row;
}

uint32_t count(const SlotResources& shared) {
  uint32_t rows = 0;
  ResourceRow row;
  for (uint32_t i = 0; i < end_of_rows(shared); i++) rows += shared.rows[i].read(row) ? 1 : 0;
  return rows;
}

void add__is_seen_until_its_end(void**) {
  const Rig rig;
  {
    ShownObject qp = rig.table->add(row_of(ResourceKind::kQp, 17));
    assert_int_equal(qp.row_number(), 1);
    const ShownObject cq = rig.table->add(row_of(ResourceKind::kCq, 3));
    assert_int_equal(cq.row_number(), 2);
    assert_int_equal(end_of_rows(*rig.shared), 2);
    ResourceRow row;
    assert_true(rig.shared->rows[0].read(row));
    assert_int_equal(row.number, 17);
    qp.show(row_of(ResourceKind::kQp, 18));
    assert_true(rig.shared->rows[0].read(row));
    assert_int_equal(row.number, 18);
    ShownObject moved = std::move(qp);
    moved.show_failure(5);
    assert_true(rig.shared->rows[0].read(row));
    assert_int_equal(row.state, 5);
    moved.show_failure(kErrorState);
    moved.show_failure(5);
    assert_true(rig.shared->rows[0].read(row));
    assert_int_equal(row.state, kErrorState);
  }
  assert_int_equal(count(*rig.shared), 0);
  assert_int_equal(rig.table->add(row_of(ResourceKind::kPd, 1)).row_number(), 1);
}

void add__more_objects_than_rows_have_none(void**) {
  const Rig rig;
  std::vector<ShownObject> objects;
  for (uint32_t i = 0; i < kMaxResourceRows; i++) {
    objects.push_back(rig.table->add(row_of(ResourceKind::kRegion, i)));
    assert_int_equal(objects.back().row_number(), i + 1);
  }
  ShownObject none = rig.table->add(row_of(ResourceKind::kRegion, 0));
  assert_int_equal(none.row_number(), 0);
  none.show(row_of(ResourceKind::kRegion, 1));
  none.show_failure(1);
  none = {};
  objects[700] = {};
  assert_int_equal(rig.table->add(row_of(ResourceKind::kRegion, 0)).row_number(), 701);
  assert_int_equal(count(*rig.shared), kMaxResourceRows - 1);
}

// The program closes a device and destroys its objects afterwards, or never.
void remove_all__later_ends_do_nothing(void**) {
  const Rig rig;
  const ShownObject context = rig.table->add(row_of(ResourceKind::kContext, 0));
  const ShownObject other = rig.table->add(row_of(ResourceKind::kPd, 0, 9));
  ShownObject left = rig.table->add(row_of(ResourceKind::kPd, 0, context.row_number()));
  rig.table->remove_all(context.row_number());
  rig.table->remove_all(0);
  assert_int_equal(count(*rig.shared), 2);
  const ShownObject next = rig.table->add(row_of(ResourceKind::kCq, 8));
  assert_int_equal(next.row_number(), left.row_number());
  left.show(row_of(ResourceKind::kPd, 0));
  left = {};
  ResourceRow row;
  assert_true(rig.shared->rows[next.row_number() - 1].read(row));
  assert_int_equal(row.number, 8);
}

void fork__the_childs_objects_are_the_parents(void**) {
  Rig rig;
  ShownObject qp = rig.table->add(row_of(ResourceKind::kQp, 17));
  rig.forks.store(1);
  qp.show(row_of(ResourceKind::kQp, 18));
  qp.show_failure(kErrorState);
  qp = {};
  ResourceRow row;
  assert_true(rig.shared->rows[0].read(row));
  assert_int_equal(row.number, 17);
  assert_int_equal(row.state, 0);
}

// A killed owner has left rows, one of them half written, and nonsense.
void open__removes_what_is_left(void**) {
  Rig rig;
  memset(static_cast<void*>(rig.shared.get()), 0xA5, sizeof *rig.shared);
  ResourceRowMemory memory;
  const ResourceTable again(*rig.shared, memory, rig.forks);
  assert_int_equal(end_of_rows(*rig.shared), 0);
  assert_int_equal(rig.shared->counts[0].device.load(), 0);
  rig.shared->end.store(UINT32_MAX);
  assert_int_equal(end_of_rows(*rig.shared), kMaxResourceRows);
  assert_int_equal(count(*rig.shared), 0);
}

void counts__of_each_device(void**) {
  const Rig rig;
  {
    DeviceObjects one({}, rig.table->counts_of(5));
    const DeviceObjects two({}, rig.table->counts_of(6));
    ContextObjects context;
    context.join(one);
    CountedObject pd = context.take(ObjectKind::kPd);
    const CountedObject qp = context.take(ObjectKind::kQp);
    const auto of = [&](ResourceKind kind) { return rig.shared->counts[0].counts[static_cast<size_t>(kind)].load(); };
    assert_int_equal(rig.shared->counts[0].device.load(), 5);
    assert_int_equal(rig.shared->counts[1].device.load(), 6);
    assert_int_equal(of(ResourceKind::kPd), 1);
    assert_int_equal(of(ResourceKind::kQp), 1);
    assert_int_equal(of(ResourceKind::kContext), 1);
    pd = {};
    assert_int_equal(of(ResourceKind::kPd), 0);
    context.leave();
    assert_int_equal(of(ResourceKind::kQp), 0);
    assert_int_equal(of(ResourceKind::kContext), 0);
  }
  assert_int_equal(rig.shared->counts[0].device.load(), 0);
  for (uint32_t i = 0; i < kMaxCountedDevices; i++) assert_non_null(rig.table->counts_of(i + 1));
  assert_null(rig.table->counts_of(1000));
}

// Threads make and destroy objects while somebody reads.
void add__from_several_threads(void**) {
  const Rig rig;
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; t++) {
    threads.emplace_back([&, t] {
      for (uint32_t round = 0; round < 20'000; round++) {
        ResourceRow row = row_of(ResourceKind::kQp, t + 1);
        row.length = t + 1;
        ShownObject object = rig.table->add(row);
        row.number = row.length = 100 + t;
        object.show(row);
      }
    });
  }
  std::thread reader([&] {
    ResourceRow row;
    while (!stop.load()) {
      for (uint32_t i = 0; i < end_of_rows(*rig.shared); i++) {
        if (rig.shared->rows[i].read(row) && row.number != row.length) wrong++;
      }
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop.store(true);
  reader.join();
  assert_int_equal(wrong.load(), 0);
  assert_int_equal(count(*rig.shared), 0);
  assert_true(end_of_rows(*rig.shared) <= 3);
}

// The first rows have memory from the start.
void add__without_memory_for_more_rows__has_no_place(void**) {
  const auto shared = std::make_unique<SlotResources>();
  const std::atomic<uint32_t> forks{0};
  ResourceRowMemory memory(-1, 1);
  ResourceTable table(*shared, memory, forks);
  std::vector<ShownObject> objects;
  for (ShownObject one = table.add(row_of(ResourceKind::kPd, 1)); one.row_number() != 0;
       one = table.add(row_of(ResourceKind::kPd, 1))) {
    objects.push_back(std::move(one));
  }
  assert_int_equal(objects.size(), (kSlotFirstSize - kSlotResourceRows) / sizeof(SharedResourceRow));
  const uint32_t last = objects.back().row_number();
  objects.pop_back();
  assert_int_equal(table.add(row_of(ResourceKind::kPd, 1)).row_number(), last);
}

void row_memory__is_taken_when_a_row_needs_it(void**) {
  const OwnedFd file = make_counters_file();
  assert_true(static_cast<bool>(file));
  ResourceRowMemory memory(file.get(), 3);
  struct stat status;
  assert_true(memory.has(0));
  assert_int_equal(fstat(file.get(), &status), 0);
  assert_int_equal(status.st_blocks, 0);
  assert_true(memory.has(kMaxResourceRows - 1));
  assert_int_equal(fstat(file.get(), &status), 0);
  assert_true(status.st_blocks * 512 >= static_cast<blkcnt_t>(sizeof(SlotResources::rows)));
  assert_true(memory.has(kMaxResourceRows / 2));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(add__is_seen_until_its_end),
      cmocka_unit_test(add__more_objects_than_rows_have_none),
      cmocka_unit_test(remove_all__later_ends_do_nothing),
      cmocka_unit_test(fork__the_childs_objects_are_the_parents),
      cmocka_unit_test(open__removes_what_is_left),
      cmocka_unit_test(counts__of_each_device),
      cmocka_unit_test(add__from_several_threads),
      cmocka_unit_test(add__without_memory_for_more_rows__has_no_place),
      cmocka_unit_test(row_memory__is_taken_when_a_row_needs_it),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
