// Files and places that the embedded store refuses, each with a reason and nothing changed.
#include "integration/sqlite_harness.hpp"
#include "stores/sqlite/database.hpp"
#include "support/forked_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Also those whose names begin with a dot.
std::ptrdiff_t files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

void execute(const std::string& path, const char* sql) {
  sqlite3* other = nullptr;
  sqlite3_open(path.c_str(), &other);
  EXPECT_EQ(sqlite3_exec(other, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  sqlite3_close(other);
}

TEST(sqlite_refusal, of_a_folder_or_a_path_that_leads_nowhere) {
  // Broken: a typing error makes files, or a message that does not help.
  const embedded_file file;
  EXPECT_EQ(opening(file.folder().string()), errc::name_conflict);
  EXPECT_EQ(opening(file.folder().string() + "/"), errc::name_conflict);
  EXPECT_EQ(opening((file.folder() / "missing" / "locks.db").string()), errc::denied);
  EXPECT_EQ(opening(""), errc::invalid);
  EXPECT_EQ(opening("/dev/null"), errc::name_conflict);
  EXPECT_FALSE(fs::exists(file.folder() / "missing"));
}

TEST(sqlite_refusal, of_a_text_file_leaves_it_as_it_is) {
  // Broken: somebody's notes become a database.
  const embedded_file file;
  const std::string notes(3000, 'n');
  for (const std::string& text : {std::string("a line\n"), notes}) {
    std::ofstream(file.path(), std::ios::binary | std::ios::trunc) << text;
    const error refused = opening(file.path());
    EXPECT_EQ(refused, errc::name_conflict) << refused.message();
    EXPECT_EQ(content(file.path()), text);
    EXPECT_EQ(files_in(file.folder()), 1) << "nothing beside it";
  }
}

TEST(sqlite_refusal, is_not_for_a_file_that_another_process_is_making) {
  // Broken: of two processes that open a new file at once, one is told that it is not a database:
  // SQLite enlarges it, and then writes its first page.
  const embedded_file file;
  std::ofstream(file.path()).close();
  EXPECT_TRUE(sqlite::format::look(file.path()));
  fs::resize_file(file.path(), sqlite::database::growth);
  EXPECT_TRUE(sqlite::format::look(file.path()));
}

TEST(sqlite_refusal, of_a_file_of_zeros_leaves_it_as_it_is) {
  // Broken: what another program has set aside is written over.
  const embedded_file file;
  std::ofstream(file.path()).close();
  fs::resize_file(file.path(), sqlite::database::growth);
  EXPECT_EQ(opening(file.path()), errc::name_conflict);
  EXPECT_EQ(content(file.path()), std::string(sqlite::database::growth, '\0'));
  EXPECT_EQ(files_in(file.folder()), 1);
}

TEST(sqlite_refusal, of_another_programs_database_leaves_it_as_it_is) {
  // Broken: our tables appear in somebody's data, or our files beside it.
  for (const char* journal : {"PRAGMA journal_mode = DELETE", "PRAGMA journal_mode = WAL"}) {
    const embedded_file file;
    execute(file.path(), journal);
    execute(file.path(), "CREATE TABLE orders (id); INSERT INTO orders VALUES (1)");
    const std::string before = content(file.path());
    EXPECT_EQ(opening(file.path()), errc::name_conflict);
    EXPECT_EQ(content(file.path()), before);
    EXPECT_EQ(files_in(file.folder()), 1) << "nothing beside it, " << journal;
  }
}

TEST(sqlite_refusal, of_a_database_whose_content_is_still_in_its_log_leaves_no_folder) {
  // Broken: as above, when the file itself does not show yet that it is another program's.
  const embedded_file file;
  sqlite3* other = nullptr;
  sqlite3_open(file.path().c_str(), &other);
  sqlite3_exec(other, "PRAGMA journal_mode = WAL; CREATE TABLE orders (id)", nullptr, nullptr,
               nullptr);
  EXPECT_EQ(opening(file.path()), errc::name_conflict);
  EXPECT_FALSE(fs::exists(file.beside()));
  EXPECT_EQ(sqlite3_exec(other, "INSERT INTO orders VALUES (1)", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(other);
}

TEST(sqlite_refusal, of_a_newer_format_says_so) {
  // Broken: an old program works on a format that it does not know.
  const embedded_file file;
  { const embedded_client client(file.path()); }
  execute(file.path(), "PRAGMA user_version = 99");
  fs::remove_all(file.beside());
  const error refused = opening(file.path());
  EXPECT_EQ(refused, errc::unsupported);
  EXPECT_NE(refused.detail.find("newer"), std::string::npos) << refused.detail;
  EXPECT_FALSE(fs::exists(file.beside()));
}

TEST(sqlite_refusal, of_an_older_format_lasts_as_long_as_it_is_used) {
  // Broken: two programs that understand rows differently share them; or an older file is lost.
  const embedded_file file;
  std::uint64_t before = 0;
  {
    const embedded_client older(file.path());
    const auto claim = older.claim();
    before = fence(older.attempt(claim));
    execute(file.path(), "PRAGMA user_version = 1");
    const error refused = opening(file.path());
    EXPECT_EQ(refused, errc::unsupported);
    EXPECT_NE(refused.detail.find("older"), std::string::npos) << refused.detail;
    EXPECT_EQ(older.renew(claim).state, hold_state::renewed);
  }
  const embedded_client client(file.path());
  EXPECT_GT(fence(client.attempt(client.claim())), before);
  sqlite3* other = nullptr;
  sqlite3_open(file.path().c_str(), &other);
  std::string version;
  sqlite3_exec(
      other, "PRAGMA user_version",
      [](void* to, int, char** values, char**) {
        *static_cast<std::string*>(to) = values[0];
        return 0;
      },
      &version, nullptr);
  sqlite3_close(other);
  EXPECT_EQ(version, std::to_string(sqlite::format::version));
}

TEST(sqlite_refusal, is_for_the_file_that_was_named_whatever_its_name) {
  // Broken: a name with a URI's special characters leads to another file.
  const embedded_file file;
  for (const char* name : {"100%20.db", "what?.db", "no#1.db", "what?immutable=0"}) {
    const std::string path = (file.folder() / name).string();
    { const embedded_client client(path); }
    EXPECT_TRUE(fs::exists(path + ".d")) << name;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << "a line\n";
    EXPECT_EQ(opening(path), errc::name_conflict) << name;
  }
}

TEST(sqlite_refusal, of_hard_links) {
  // Broken: one file, two folders of signs of life.
  const embedded_file file;
  { const embedded_client client(file.path()); }
  fs::create_hard_link(file.path(), file.folder() / "other.db");
  EXPECT_EQ(opening((file.folder() / "other.db").string()), errc::unsupported);
}

// As a user that may not write everywhere, unlike root.
int as_nobody(const std::function<void()>& part) {
  forked_process process([&] {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) {
      throw std::runtime_error("setresuid");
    }
    part();
  });
  return process.wait();
}

void expect(bool condition, const error& seen) {
  if (!condition) throw std::runtime_error(seen.message());
}

TEST(sqlite_refusal, of_a_read_only_file_or_folder) {
  // Broken: a half-made store, or an error that does not say what to do.
  const embedded_file file;
  { const embedded_client client(file.path()); }
  ::chmod(file.folder().c_str(), 0755);
  ::chmod(file.path().c_str(), 0444);
  EXPECT_EQ(as_nobody([&] {
              const error refused = opening(file.path());
              expect(refused == errc::denied, refused);
              expect(refused.detail.find("writable") != std::string::npos, refused);
            }),
            0);
  ::chmod(file.path().c_str(), 0666);
  EXPECT_EQ(as_nobody([&] {
              const error refused = opening(file.path());
              expect(refused == errc::denied, refused);
            }),
            0)
      << "the folder beside it is another user's";
  const fs::path closed = file.folder() / "closed";
  fs::create_directory(closed);
  ::chmod(closed.c_str(), 0555);
  EXPECT_EQ(as_nobody([&] {
              const error refused = opening((closed / "locks.db").string());
              expect(refused == errc::denied, refused);
            }),
            0);
  ::chmod(closed.c_str(), 0755);
}

TEST(sqlite_refusal, of_a_file_that_is_mounted_by_itself) {
  // Broken: the file under its two paths has two logs, writer locks and folders, and each path's clients hold
  // the same lock.
  const embedded_file file;
  const temporary_folder other;
  forked_process mounted([&] {
    const auto require = [](bool fine, const std::string& what) {
      if (!fine) throw std::runtime_error(what);
    };
    enter_own_mounts();
    const embedded_client holder(file.path());
    require(granted(holder.attempt(holder.claim())), "it was free");
    const fs::path second = other.path() / "with blank.db";
    std::ofstream(second).close();
    require(::mount(file.path().c_str(), second.c_str(), nullptr, MS_BIND, nullptr) == 0, "mount");
    const error refused = opening(second.string());
    require(refused == errc::unsupported, refused.message());
    require(refused.detail.find("mount its folder") != std::string::npos, refused.message());
    require(files_in(other.path()) == 1, "something was made beside it");
    // The right way: one folder under two paths is one store.
    const fs::path folder = other.path() / "folder";
    fs::create_directory(folder);
    require(::mount(file.folder().c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) == 0,
            "mount");
    const embedded_client beside((folder / "locks.db").string());
    auto attempt = beside.claim();
    attempt->queued = false;
    require(!granted(beside.attempt(attempt)), "two hold it");
  });
  EXPECT_EQ(mounted.wait(), 0);
}

TEST(sqlite_refusal, of_a_folder_that_others_could_break_locks_in) {
  // Broken: in a shared folder, such as /tmp, another user creates it beforehand and takes locks
  // away.
  const embedded_file file;
  fs::create_directory(file.beside());
  fs::permissions(file.beside(), fs::perms::all);
  const error open_to_all = opening(file.path());
  EXPECT_EQ(open_to_all, errc::denied);
  EXPECT_NE(open_to_all.detail.find("every user"), std::string::npos) << open_to_all.message();
  fs::permissions(file.beside(), fs::perms::owner_all);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.beside().c_str(), 2001, 2001), 0);
    const error of_another = opening(file.path());
    EXPECT_EQ(of_another, errc::denied);
    EXPECT_NE(of_another.detail.find("user 2001"), std::string::npos) << of_another.message();
    ASSERT_EQ(::chown(file.beside().c_str(), 0, 0), 0);
  }
  EXPECT_EQ(opening(file.path()).detail, "it was opened");
}

// An empty file system in user space: answers only the requests of opening a file.
void serve_empty_file_system(int device) {
  std::array<char, FUSE_MIN_READ_BUFFER + 4096> request{};
  for (;;) {
    if (::read(device, request.data(), request.size()) <
        static_cast<ssize_t>(sizeof(fuse_in_header))) {
      return;
    }
    fuse_in_header head{};
    std::memcpy(&head, request.data(), sizeof head);
    std::array<char, 256> answer{};
    fuse_out_header out{};
    out.unique = head.unique;
    std::size_t size = sizeof out;
    if (head.opcode == FUSE_INIT) {
      fuse_init_out init{};
      init.major = FUSE_KERNEL_VERSION;
      init.minor = FUSE_KERNEL_MINOR_VERSION;
      init.max_write = 4096;
      std::memcpy(answer.data() + size, &init, sizeof init);
      size += sizeof init;
    } else if (head.opcode == FUSE_STATFS) {
      size += sizeof(fuse_statfs_out);
    } else if (head.opcode == FUSE_GETATTR) {
      fuse_attr_out attributes{};
      attributes.attr.ino = 1;
      attributes.attr.mode = S_IFDIR | 0777;
      attributes.attr.nlink = 2;
      std::memcpy(answer.data() + size, &attributes, sizeof attributes);
      size += sizeof attributes;
    } else {
      out.error = -ENOENT;
    }
    out.len = static_cast<std::uint32_t>(size);
    std::memcpy(answer.data(), &out, sizeof out);
    if (::write(device, answer.data(), size) < 0) return;
  }
}

TEST(sqlite_refusal, of_file_systems_that_machines_may_share) {
  // Broken: two machines use one file, each trusting its locks.
  for (const long magic : {0x6969L, 0x517bL, 0xff534d42L, 0x01021997L, 0x65735546L, 0x00c36400L}) {
    EXPECT_TRUE(sqlite::shared_file_system(magic)) << magic;
  }
  EXPECT_FALSE(sqlite::shared_file_system(0xef53));      // ext4
  EXPECT_FALSE(sqlite::shared_file_system(0x01021994));  // tmpfs
  const embedded_file file;
  forked_process mounted([&] {
    enter_own_mounts();
    const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0) return;  // no such device here: the table above stands alone
    const std::string data =
        "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0";
    if (::mount("fuse", file.folder().c_str(), "fuse", 0, data.c_str()) != 0) return;
    std::thread([device] { serve_empty_file_system(device); }).detach();
    const error refused = opening((file.folder() / "locks.db").string());
    expect(refused == errc::unsupported, refused);
    expect(refused.detail.find("fuse") != std::string::npos, refused);
  });
  EXPECT_EQ(mounted.wait(), 0);
}

}  // namespace
}  // namespace holdfast::test
