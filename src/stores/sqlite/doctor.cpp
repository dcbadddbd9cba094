#include "stores/sqlite/doctor.hpp"

#include "stores/sqlite/database.hpp"
#include "stores/sqlite/location.hpp"
#include "stores/sqlite/sqlite_store.hpp"

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

namespace holdfast::sqlite {

namespace {

using grade = spi::check::status;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
constexpr std::uint64_t little_space = 64 * mebibyte;
constexpr std::uint64_t no_space = mebibyte;
constexpr duration slow_writer_lock = std::chrono::milliseconds(100);

spi::check verdict(std::string name, grade state, std::string detail, std::string remedy = {}) {
  return {std::move(name), state, std::move(detail), std::move(remedy)};
}

std::string octal(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode & 07777U);
  return text.data();
}

std::string name_of(long magic) {
  switch (static_cast<std::uint32_t>(magic)) {
    case 0xef53:
      return "ext4";
    case 0x58465342:
      return "xfs";
    case 0x9123683e:
      return "btrfs";
    case 0x01021994:
      return "tmpfs";
    case 0x794c7630:
      return "overlayfs";
    default: {
      std::array<char, 16> text{};
      std::snprintf(text.data(), text.size(), "0x%lx", static_cast<unsigned long>(magic));
      return text.data();
    }
  }
}

}  // namespace

spi::check check_file(const result<void>& in_place, const std::string& path) {
  if (in_place) return verdict("file", grade::ok, path);
  return verdict("file", grade::fail, in_place.error().detail,
                 "restart the programs that use it; do not delete it while they run");
}

spi::check check_format(std::int64_t application, std::int64_t version) {
  const std::string detail = "format " + std::to_string(version);
  if (application == format::application && version == format::version) {
    return verdict("format", grade::ok, detail);
  }
  return verdict("format", grade::fail, detail + ", expected " + std::to_string(format::version),
                 "another program changed it: name another file");
}

spi::check check_file_system(long magic) {
  if (const auto shared = shared_file_system(magic)) {
    return verdict("file system", grade::fail, std::string(*shared) + " may be shared",
                   "use a local file system, or an engine with a server");
  }
  return verdict("file system", grade::ok, name_of(magic));
}

spi::check check_permissions(mode_t file, mode_t folder) {
  const std::string detail = "file " + octal(file) + ", folder " + octal(folder);
  if (((file | folder) & 0007U) != 0) {
    return verdict("permissions", grade::fail, detail + ": any user can break its locks",
                   "chmod o-rwx the file and the folder beside it");
  }
  if ((file & 0060U) != 0 && (folder & 0070U) != 0070U) {
    return verdict("permissions", grade::fail, detail + ": the group can use one, not the other",
                   "chmod both alike: 0660 and 0770, or 0600 and 0700");
  }
  if ((file & 0060U) != 0) {
    return verdict("permissions", grade::warn,
                   detail + ": every member of the group can break locks",
                   "0600 and 0700, unless it is shared on purpose");
  }
  return verdict("permissions", grade::ok, detail);
}

spi::check check_space(std::uint64_t free_bytes) {
  const std::string detail = std::to_string(free_bytes / mebibyte) + " MiB free";
  if (free_bytes < no_space) {
    return verdict("disk space", grade::fail, detail,
                   "free some space: locks can be released for a while, but not acquired");
  }
  if (free_bytes < little_space)
    return verdict("disk space", grade::warn, detail, "free some space");
  return verdict("disk space", grade::ok, detail);
}

spi::check check_journal(const std::string& mode, std::int64_t synchronous) {
  const std::string detail = "journal " + mode + ", synchronous " + std::to_string(synchronous);
  if (mode != "wal") {
    return verdict("journal", grade::fail, detail,
                   "another program changed it: PRAGMA journal_mode = WAL");
  }
  if (synchronous < 1) {
    return verdict("journal", grade::fail, detail, "a power cut could damage the file");
  }
  return verdict("journal", grade::ok, detail);
}

spi::check check_integrity(const std::string& answer) {
  if (answer == "ok") return verdict("integrity", grade::ok, "no damage found");
  return verdict("integrity", grade::fail, answer,
                 "stop all programs that use the file, then delete it and the folder beside it");
}

spi::check check_writer_lock(const result<duration>& took) {
  if (!took) {
    return verdict("writer lock", grade::fail, took.error().detail,
                   "look for a stopped process, or another program that has the file locked");
  }
  const std::string detail =
      "a transaction took " + std::to_string(*took / std::chrono::microseconds(1)) + " us";
  if (*took > slow_writer_lock) {
    return verdict("writer lock", grade::warn, detail,
                   "the disk, or another program that uses the file, is slow");
  }
  return verdict("writer lock", grade::ok, detail);
}

spi::check check_life(bool alive, bool deleted) {
  if (alive && !deleted) return verdict("sign of life", grade::ok, "seen");
  return verdict("sign of life", grade::fail,
                 deleted ? "its file was deleted" : "its lock is not seen",
                 "restart the programs that use the file; leave the folder beside it alone");
}

spi::check check_wake_ups(bool reachable) {
  if (reachable) return verdict("wake-ups", grade::ok, "the socket answers");
  return verdict("wake-ups", grade::fail, "nobody can reach this client's socket",
                 "the folder beside the file must allow sockets");
}

spi::check check_clients(std::size_t alive, std::size_t cleared) {
  const std::string detail = std::to_string(alive) + " others use the file";
  if (cleared == 0) return verdict("clients", grade::ok, detail);
  return verdict("clients", grade::warn,
                 detail + ", " + std::to_string(cleared) + " dead ones cleared away",
                 "they were killed; their locks are free now");
}

spi::check check_sharing(uid_t owner, uid_t self) {
  const std::string shared =
      "to share locks among users: --url sqlite:/var/lib/holdfast/shared.db,"
      " made beforehand with mode 0660 and a common group";
  if (owner == self) {
    return verdict("sharing", grade::ok,
                   "the file belongs to this user; each user has a default file of their own",
                   shared);
  }
  return verdict("sharing", grade::warn, "the file belongs to user " + std::to_string(owner),
                 shared);
}

void sqlite_store::probe(const spi::op_context& context,
                         spi::completion<std::vector<spi::check>> done) {
  perform(nullptr, context, std::move(done),
          [this](time_point deadline) { return do_probe(deadline); });
}

// Gathers the facts that `doctor` judges, and purges dead clients.
result<std::vector<spi::check>> sqlite_store::do_probe(time_point deadline) {
  std::vector<spi::check> checks;
  const location& at = session_->where();
  checks.push_back(check_file(session_->in_place(), at.database));

  std::int64_t application = 0;
  std::int64_t version = 0;
  std::int64_t synchronous = 0;
  std::string journal;
  std::string damage;
  auto read = session_->aside(deadline, [&](database& connection, statements&) {
    application = connection.pragma_number("application_id");
    version = connection.pragma_number("user_version");
    synchronous = connection.pragma_number("synchronous");
    journal = connection.pragma_text("journal_mode");
    damage = connection.pragma_text("quick_check(1)");
  });
  if (!read) damage = read.error().detail;
  checks.push_back(check_format(application, version));
  checks.back().detail += std::string(", SQLite ") + sqlite3_libversion();
  checks.push_back(check_journal(journal, synchronous));
  checks.push_back(check_integrity(damage));

  struct statfs kind {};
  struct statvfs space {};
  struct stat file {};
  struct stat beside {};
  if (::statfs(at.database.c_str(), &kind) == 0) {
    checks.push_back(check_file_system(static_cast<long>(kind.f_type)));
  }
  if (::statvfs(at.database.c_str(), &space) == 0) {
    checks.push_back(check_space(std::uint64_t{space.f_bavail} * space.f_frsize));
  }
  if (::stat(at.database.c_str(), &file) == 0 && ::stat(at.folder.c_str(), &beside) == 0) {
    checks.push_back(check_permissions(file.st_mode & 07777U, beside.st_mode & 07777U));
    checks.push_back(check_sharing(file.st_uid, ::geteuid()));
  }

  effects out;
  purge cleared;
  const time_point begun = clock::now();
  auto done = session_->write(deadline, [&](ledger& book) {
    cleared = purge_dead(book, session_->prepared(), *folder_, self_.number, out);
  });
  const duration took = clock::now() - begun;
  checks.push_back(check_writer_lock(done ? result<duration>(took) : tl::unexpected(done.error())));
  if (done) {
    peer_notifier_->deliver(out, deadline);
    remove_files(*folder_, cleared.purged);
    checks.push_back(check_clients(cleared.alive, cleared_.exchange(0) + cleared.purged.size()));
  }
  checks.push_back(check_life(alive(*folder_, self_), life_->deleted()));
  checks.push_back(check_wake_ups(peer_notifier_->reachable()));
  return checks;
}

}  // namespace holdfast::sqlite
