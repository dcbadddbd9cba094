#include "stores/sqlite/checks.hpp"

#include "stores/sqlite/format.hpp"
#include "stores/sqlite/location.hpp"

#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

namespace holdfast::sqlite {

namespace {

using status = spi::check::status;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
constexpr std::uint64_t little_space = 64 * mebibyte;
constexpr std::uint64_t no_space = mebibyte;
constexpr duration slow_writer_lock = std::chrono::milliseconds(100);

spi::check verdict(std::string name, status state, std::string detail, std::string remedy = {}) {
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
  if (in_place) return verdict("file", status::ok, path);
  return verdict("file", status::fail, in_place.error().detail,
                 "restart the programs that use it; do not delete it while they run");
}

spi::check check_format(std::int64_t application, std::int64_t version) {
  const std::string detail = "format " + std::to_string(version);
  if (application == format::application && version == format::version) {
    return verdict("format", status::ok, detail);
  }
  return verdict("format", status::fail, detail + ", expected " + std::to_string(format::version),
                 "another program changed it: name another file");
}

spi::check check_file_system(long magic) {
  if (const auto shared = shared_file_system(magic)) {
    return verdict("file system", status::fail, std::string(*shared) + " may be shared",
                   "use a local file system, or an engine with a server");
  }
  return verdict("file system", status::ok, name_of(magic));
}

spi::check check_permissions(mode_t file, mode_t folder) {
  const std::string detail = "file " + octal(file) + ", folder " + octal(folder);
  if (((file | folder) & 0007U) != 0) {
    return verdict("permissions", status::fail, detail + ": any user can break its locks",
                   "chmod o-rwx the file and the folder beside it");
  }
  if ((file & 0060U) != 0 && (folder & 0070U) != 0070U) {
    return verdict("permissions", status::fail, detail + ": the group can use one, not the other",
                   "chmod both alike: 0660 and 0770, or 0600 and 0700");
  }
  if ((file & 0060U) != 0) {
    return verdict("permissions", status::warn,
                   detail + ": every member of the group can break locks",
                   "0600 and 0700, unless it is shared on purpose");
  }
  return verdict("permissions", status::ok, detail);
}

spi::check check_space(std::uint64_t free_bytes) {
  const std::string detail = std::to_string(free_bytes / mebibyte) + " MiB free";
  if (free_bytes < no_space) {
    return verdict("disk space", status::fail, detail,
                   "free some space: locks can be released for a while, but not acquired");
  }
  if (free_bytes < little_space)
    return verdict("disk space", status::warn, detail, "free some space");
  return verdict("disk space", status::ok, detail);
}

spi::check check_journal(const std::string& mode, std::int64_t synchronous) {
  const std::string detail = "journal " + mode + ", synchronous " + std::to_string(synchronous);
  if (mode != "wal") {
    return verdict("journal", status::fail, detail,
                   "another program changed it: PRAGMA journal_mode = WAL");
  }
  if (synchronous < 1) {
    return verdict("journal", status::fail, detail, "a power cut could damage the file");
  }
  return verdict("journal", status::ok, detail);
}

spi::check check_integrity(const std::string& answer) {
  if (answer == "ok") return verdict("integrity", status::ok, "no damage found");
  return verdict("integrity", status::fail, answer,
                 "stop all programs that use the file, then delete it and the folder beside it");
}

spi::check check_writer_lock(const result<duration>& took) {
  if (!took) {
    return verdict("writer lock", status::fail, took.error().detail,
                   "look for a stopped process, or another program that has the file locked");
  }
  const std::string detail =
      "a transaction took " + std::to_string(*took / std::chrono::microseconds(1)) + " us";
  if (*took > slow_writer_lock) {
    return verdict("writer lock", status::warn, detail,
                   "the disk, or another program that uses the file, is slow");
  }
  return verdict("writer lock", status::ok, detail);
}

spi::check check_life(bool alive, bool deleted) {
  if (alive && !deleted) return verdict("sign of life", status::ok, "seen");
  return verdict("sign of life", status::fail,
                 deleted ? "its file was deleted" : "its lock is not seen",
                 "restart the programs that use the file; leave the folder beside it alone");
}

spi::check check_wake_ups(bool reachable) {
  if (reachable) return verdict("wake-ups", status::ok, "the socket answers");
  return verdict("wake-ups", status::fail, "nobody can reach this client's socket",
                 "the folder beside the file must allow sockets");
}

spi::check check_clients(std::size_t alive, std::size_t cleared) {
  const std::string detail = std::to_string(alive) + " others use the file";
  if (cleared == 0) return verdict("clients", status::ok, detail);
  return verdict("clients", status::warn,
                 detail + ", " + std::to_string(cleared) + " dead ones cleared away",
                 "they were killed; their locks are free now");
}

spi::check check_sharing(uid_t owner, uid_t self) {
  const std::string shared =
      "to share locks among users: --url sqlite:/var/lib/holdfast/shared.db,"
      " made beforehand with mode 0660 and a common group";
  if (owner == self) {
    return verdict("sharing", status::ok,
                   "the file belongs to this user; each user has a default file of their own",
                   shared);
  }
  return verdict("sharing", status::warn, "the file belongs to user " + std::to_string(owner),
                 shared);
}

}  // namespace holdfast::sqlite
