// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/writer.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::face;

namespace {

char folder[] = "/tmp/dapple-writer-test-XXXXXX";
int fd = -1;
std::unique_ptr<Writer> writer;

int start(void**) {
  strcpy(folder + sizeof folder - 7, "XXXXXX");
  if (mkdtemp(folder) == nullptr) return 1;
  fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  writer.reset(new Writer(fd));
  return 0;
}

int end(void**) {
  writer.reset();
  remove_contents(fd);
  close(fd);
  rmdir(folder);
  return 0;
}

// A link's target, a file's contents, "folder", or the errno's text.
std::string seen(const char* path) {
  char text[4096];
  struct stat status;
  if (fstatat(fd, path, &status, AT_SYMLINK_NOFOLLOW) != 0) return strerror(errno);
  if (S_ISDIR(status.st_mode)) return "folder";
  ssize_t size;
  if (S_ISLNK(status.st_mode)) {
    size = readlinkat(fd, path, text, sizeof text);
  } else {
    const int file = openat(fd, path, O_RDONLY | O_CLOEXEC);
    size = read(file, text, sizeof text);
    close(file);
  }
  return size < 0 ? strerror(errno) : std::string(text, static_cast<size_t>(size));
}

ino_t inode(const char* path) {
  struct stat status;
  return fstatat(fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

int entries() {
  int count = 0;
  DIR* stream = opendir(folder);
  while (readdir(stream) != nullptr) count++;
  closedir(stream);
  return count - 2;
}

Tree first_tree() {
  Tree tree;
  tree.add_file("sys/a/x", "one\n");
  tree.add_file("sys/a/y", "two\n");
  tree.add_file("sys/b/deep/z", "three\n");
  tree.add_link("sys/class/a", "../a");
  tree.add_empty("sys/a/empty");
  tree.add_device("dev/device");
  return tree;
}

void apply__empty_folder__has_all(void**) {
  Tree tree = first_tree();
  assert_int_equal(writer->apply(tree), 0);
  assert_string_equal(seen("sys/a/x").c_str(), "one\n");
  assert_string_equal(seen("sys/b/deep/z").c_str(), "three\n");
  assert_string_equal(seen("sys/class/a/y").c_str(), "two\n");
  assert_string_equal(seen("sys/class/a").c_str(), "../a");
  assert_string_equal(seen("sys/a/empty").c_str(), "");
  assert_int_equal(entries(), 2);
  struct stat status;
  assert_int_equal(fstatat(fd, "dev/device", &status, 0), 0);
  assert_true(S_ISCHR(status.st_mode));
  assert_int_equal(fstatat(fd, "sys/a/x", &status, 0), 0);
  assert_int_equal(status.st_mode & 0777, 0444);
}

void apply__again__writes_differences_only(void**) {
  Tree tree = first_tree();
  assert_int_equal(writer->apply(tree), 0);
  const ino_t x = inode("sys/a/x"), y = inode("sys/a/y"), b = inode("sys/b");
  assert_int_equal(writer->apply(tree), 0);
  assert_int_equal(inode("sys/a/x"), x);
  Tree next = first_tree();
  next.add_file("sys/a/y", "changed\n");
  next.add_file("sys/c/new", "four\n");
  assert_int_equal(writer->apply(next), 0);
  assert_int_equal(inode("sys/a/x"), x);
  assert_int_equal(inode("sys/b"), b);
  assert_int_not_equal(inode("sys/a/y"), y);
  assert_string_equal(seen("sys/a/y").c_str(), "changed\n");
  assert_string_equal(seen("sys/c/new").c_str(), "four\n");
  assert_int_equal(entries(), 2);
}

void apply__less__removes_the_rest(void**) {
  Tree tree = first_tree();
  assert_int_equal(writer->apply(tree), 0);
  Tree next;
  next.add_file("sys/a/x", "one\n");
  assert_int_equal(writer->apply(next), 0);
  assert_string_equal(seen("sys/b").c_str(), strerror(ENOENT));
  assert_string_equal(seen("sys/a/y").c_str(), strerror(ENOENT));
  assert_string_equal(seen("sys/a/x").c_str(), "one\n");
  assert_int_equal(entries(), 1);
}

void apply__kinds_change__replaces_them(void**) {
  Tree tree = first_tree();
  assert_int_equal(writer->apply(tree), 0);
  Tree next;
  next.add_file("sys/b", "a file now\n");
  next.add_file("sys/a/x/inside", "a folder now\n");
  next.add_file("sys/class/a", "a file now\n");
  next.add_link("sys/a/empty", "elsewhere");
  assert_int_equal(writer->apply(next), 0);
  assert_string_equal(seen("sys/b").c_str(), "a file now\n");
  assert_string_equal(seen("sys/a/x/inside").c_str(), "a folder now\n");
  assert_string_equal(seen("sys/class/a").c_str(), "a file now\n");
  assert_string_equal(seen("sys/a/empty").c_str(), "elsewhere");
}

void update__some_files__leaves_the_others(void**) {
  Tree tree = first_tree();
  assert_int_equal(writer->apply(tree), 0);
  const ino_t x = inode("sys/a/x");
  Tree some;
  some.add_file("sys/a/y", "9\n");
  assert_int_equal(writer->update(some), 0);
  assert_string_equal(seen("sys/a/y").c_str(), "9\n");
  assert_int_equal(inode("sys/a/x"), x);
  Tree strange;
  strange.add_file("sys/a/absent", "9\n");
  assert_int_equal(writer->update(strange), ENOENT);
  assert_string_equal(seen("sys/a/absent").c_str(), strerror(ENOENT));
}

void update__open_file__keeps_its_path(void**) {
  Tree tree = first_tree();
  assert_int_equal(writer->apply(tree), 0);
  const int file = openat(fd, "sys/b/deep/z", O_RDONLY);
  assert_true(file >= 0);
  Tree some;
  some.add_file("sys/b/deep/z", "4\n");
  assert_int_equal(writer->update(some), 0);
  char link[64], path[256] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  assert_true(readlink(link, path, sizeof path - 1) > 0);
  assert_non_null(strstr(path, "/.dapple-next/sys|b|deep|z"));
  close(file);
}

// A limit on the size of files stands for a full disk: it stops the writing of the second change.
void apply__disk_is_full__changes_nothing(void**) {
  Tree tree = first_tree();
  assert_int_equal(writer->apply(tree), 0);
  Tree next;
  next.add_file("sys/a/x", "small\n");
  next.add_file("sys/a/y", std::string(5000, 'y'));
  next.add_file("sys/new/z", "small\n");
  signal(SIGXFSZ, SIG_IGN);
  rlimit before, small;
  getrlimit(RLIMIT_FSIZE, &before);
  small = before;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  const int error = writer->apply(next);
  setrlimit(RLIMIT_FSIZE, &before);
  assert_int_equal(error, EFBIG);
  assert_string_equal(seen("sys/a/x").c_str(), "one\n");
  assert_string_equal(seen("sys/b/deep/z").c_str(), "three\n");
  assert_string_equal(seen("sys/new").c_str(), strerror(ENOENT));
  assert_int_equal(entries(), 2);
  assert_false(writer->is_broken());
  assert_int_equal(writer->apply(next), 0);
  assert_string_equal(seen("sys/new/z").c_str(), "small\n");
}

void apply__folder_is_taken_away__fails(void**) {
  Tree tree = first_tree(), next;
  assert_int_equal(writer->apply(tree), 0);
  remove_contents(fd);
  assert_int_equal(rmdir(folder), 0);
  next.add_file("sys/q", "text\n");
  assert_int_equal(writer->apply(next), ENOENT);
  assert_int_equal(mkdir(folder, 0755), 0);
}

// Somebody has changed a part of the folder, so that a change in the middle fails.
void apply__a_part_is_taken_away__undoes_the_rest(void**) {
  Tree tree = first_tree();
  assert_int_equal(writer->apply(tree), 0);
  assert_int_equal(remove_whole(fd, "sys/a"), 0);
  Tree next = first_tree();
  next.add_file("sys/a/y", "changed\n");
  next.add_file("sys/b/deep/z", "changed\n");
  assert_int_equal(writer->apply(next), ENOENT);
  assert_string_equal(seen("sys/b/deep/z").c_str(), "three\n");
  assert_int_equal(entries(), 2);
  assert_int_equal(writer->clear(), 0);
  assert_int_equal(writer->apply(next), 0);
  assert_string_equal(seen("sys/a/y").c_str(), "changed\n");
}

void clear__foreign_links__are_not_followed(void**) {
  char outside[] = "/tmp/dapple-writer-test-XXXXXX";
  assert_non_null(mkdtemp(outside));
  assert_int_equal(symlinkat(outside, fd, "link"), 0);
  Tree tree = first_tree();
  assert_int_equal(writer->apply(tree), 0);
  assert_int_equal(writer->clear(), 0);
  assert_int_equal(entries(), 0);
  assert_int_equal(rmdir(outside), 0);
}

}  // namespace

int main() {
  umask(022);
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(apply__empty_folder__has_all, start, end),
      cmocka_unit_test_setup_teardown(apply__again__writes_differences_only, start, end),
      cmocka_unit_test_setup_teardown(apply__less__removes_the_rest, start, end),
      cmocka_unit_test_setup_teardown(apply__kinds_change__replaces_them, start, end),
      cmocka_unit_test_setup_teardown(update__some_files__leaves_the_others, start, end),
      cmocka_unit_test_setup_teardown(update__open_file__keeps_its_path, start, end),
      cmocka_unit_test_setup_teardown(apply__disk_is_full__changes_nothing, start, end),
      cmocka_unit_test_setup_teardown(apply__folder_is_taken_away__fails, start, end),
      cmocka_unit_test_setup_teardown(apply__a_part_is_taken_away__undoes_the_rest, start, end),
      cmocka_unit_test_setup_teardown(clear__foreign_links__are_not_followed, start, end),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
