// A file that is replaced by an older copy of itself.
#include "integration/sqlite_harness.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>

namespace holdfast::test {
namespace {

namespace fs = std::filesystem;

std::uint64_t fence_of(const embedded_file& file, const std::string& name) {
  const embedded_client client(file.path());
  return client.acquire(client.claim(name)).fence.value();
}

TEST(sqlite_backup, fences_go_on_after_an_older_copy_was_restored) {
  // Broken (G2.5): a fence is issued a second time, and the resource lets an old holder in.
  const embedded_file file;
  const temporary_folder backup;
  std::uint64_t greatest = fence_of(file, "stock");
  fs::copy(file.folder(), backup.path(), fs::copy_options::recursive);
  for (int i = 0; i < 100; ++i) greatest = fence_of(file, "stock");
  const std::uint64_t unknown_to_the_copy = fence_of(file, "price");
  for (const auto& each : fs::directory_iterator(file.folder())) fs::remove_all(each.path());
  fs::copy(backup.path(), file.folder(), fs::copy_options::recursive);
  EXPECT_GT(fence_of(file, "stock"), greatest);
  EXPECT_GT(fence_of(file, "price"), unknown_to_the_copy);
}

TEST(sqlite_backup, fences_go_on_after_the_file_was_deleted) {
  const embedded_file file;
  const std::uint64_t before = fence_of(file, "stock");
  for (const auto& each : fs::directory_iterator(file.folder())) fs::remove_all(each.path());
  EXPECT_GT(fence_of(file, "stock"), before);
}

}  // namespace
}  // namespace holdfast::test
