#include "stores/sqlite/location.hpp"

#include "stores/sqlite/database.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace holdfast::sqlite {

namespace {

namespace fs = std::filesystem;

struct known_file_system {
  long magic;
  std::string_view name;
};

constexpr std::array known_shared{
    known_file_system{0x6969, "nfs"},        known_file_system{0x517b, "smb"},
    known_file_system{0xff534d42, "cifs"},   known_file_system{0xfe534d42, "smb2"},
    known_file_system{0x564c, "ncp"},        known_file_system{0x5346414f, "afs"},
    known_file_system{0x6b414653, "afs"},    known_file_system{0x73757245, "coda"},
    known_file_system{0x01021997, "9p"},     known_file_system{0x65735546, "fuse or virtiofs"},
    known_file_system{0x00c36400, "ceph"},   known_file_system{0x7461636f, "ocfs2"},
    known_file_system{0x01161970, "gfs2"},   known_file_system{0x0bd00bd0, "lustre"},
    known_file_system{0x786f4256, "vboxsf"}, known_file_system{0x47504653, "gpfs"},
};

tl::unexpected<error> refusal(errc code, const std::string& path, const std::string& why) {
  return failure(code, "sqlite, open " + path + ", " + why);
}

result<std::string> canonical_path(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return failure(errc::invalid, "sqlite, open, a file's path is needed: sqlite:/path/file.db");
  }
  if (path == ":memory:") {
    return failure(
        errc::invalid,
        "sqlite, open, :memory: is SQLite's word for no file, which no other process could "
        "share: name a file, or use memory: for locks within one process");
  }
  std::error_code problem;
  const fs::path wanted(path);
  if (!wanted.has_filename()) return refusal(errc::name_conflict, path, "it is a folder's path");
  if (fs::symlink_status(wanted, problem).type() != fs::file_type::not_found && !problem) {
    const fs::path found = fs::canonical(wanted, problem);
    if (problem) return refusal_by_system(path, problem.value());
    return found.string();
  }
  const fs::path folder =
      fs::canonical(wanted.has_parent_path() ? wanted.parent_path() : ".", problem);
  if (problem.value() == ENOENT) {
    return refusal(errc::denied, path, "its folder does not exist; make it first");
  }
  if (problem) return refusal_by_system(path, problem.value());
  return (folder / wanted.filename()).string();
}

result<void> check_file_system(const std::string& at, const std::string& database) {
  struct statfs status {};
  if (::statfs(at.c_str(), &status) != 0) return refusal_by_system(database, errno);
  if (const auto name = shared_file_system(static_cast<long>(status.f_type))) {
    return refusal(errc::unsupported, database,
                   "the file system (" + std::string(*name) +
                       ") may be shared with other machines, whose locks it does not show "
                       "reliably; use a local one, or an engine with a server");
  }
  return {};
}

// A line of /proc/self/mountinfo: "36 35 98:0 /root /mount/point rw,noatime ...", blanks as \040.
std::string mount_point_in(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  for (int i = 0; i < 5; ++i) words >> word;
  std::string path;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\\' && i + 3 < word.size()) {
      path += static_cast<char>(std::stoi(word.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      path += word[i];
    }
  }
  return path;
}

// Asks the kernel or, before 5.8, its list of mounts.
bool is_mount_point(const std::string& path) {
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO, &status) == 0 &&
      (status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0) {
    return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  }
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (mount_point_in(line) == path) return true;
  }
  return false;
}

// The log, the writer lock and the signs of life are beside a path. Under another path, the one
// that was mounted here, others would use their own, and both could hold the same lock.
result<void> check_mount(const std::string& database) {
  if (!is_mount_point(database)) return {};
  return refusal(errc::unsupported, database,
                 "the file is mounted by itself, so that what stands beside it is not shared with "
                 "those who use it under another path; mount its folder instead (with containers: "
                 "-v /host/locks:/locks and sqlite:/locks/locks.db)");
}

// Only if there is no file yet: closing a second descriptor of a database that this process has
// open would drop SQLite's locks on it.
result<void> make_file(const std::string& database) {
  const int made =
      ::open(database.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (made >= 0) {
    ::close(made);
    return {};
  }
  if (errno == EEXIST) return {};
  return refusal_by_system(database, errno);
}

result<struct stat> check_file(const std::string& database) {
  struct stat status {};
  if (::stat(database.c_str(), &status) != 0) return refusal_by_system(database, errno);
  if (S_ISDIR(status.st_mode)) return refusal(errc::name_conflict, database, "it is a folder");
  if (!S_ISREG(status.st_mode)) {
    return refusal(errc::name_conflict, database, "it is not a regular file");
  }
  if (status.st_nlink > 1) {
    return refusal(errc::unsupported, database,
                   "it has more than one hard link, and each would have a folder of its own");
  }
  if (::faccessat(AT_FDCWD, database.c_str(), R_OK | W_OK, AT_EACCESS) != 0) {
    return refusal_by_system(database, errno);
  }
  return status;
}

// Whoever owns the folder, or may write in it, can take every lock away. So it must be ours, root's
// or the file owner's, or one that a member of the file's group created for it.
result<void> check_owner(const location& at, const struct stat& folder) {
  const uid_t owner = folder.st_uid;
  const bool for_group = (at.file_mode & 0020U) != 0 && folder.st_gid == at.group;
  if (owner != ::geteuid() && owner != 0 && owner != at.owner && !for_group) {
    return refusal(errc::denied, at.folder,
                   "it belongs to user " + std::to_string(owner) +
                       ", who could take locks away; have that user or root remove it");
  }
  if ((folder.st_mode & 0007U & ~at.folder_mode) != 0) {
    return refusal(errc::denied, at.folder,
                   "every user may write in it or read it, and could take locks away; remove it, "
                   "or chmod o-rwx it");
  }
  return {};
}

result<void> make_folder(location& at) {
  if (::mkdir(at.folder.c_str(), at.folder_mode) == 0) {
    at.made_folder = true;
    // Both regardless of the umask. We may be unable to give it another user's group:
    // then the folder keeps ours.
    if (::chown(at.folder.c_str(), static_cast<uid_t>(-1), at.group) != 0) errno = 0;
    if (::chmod(at.folder.c_str(), at.folder_mode) != 0) return refusal_by_system(at.folder, errno);
  } else if (errno != EEXIST) {
    return refusal_by_system(at.folder, errno);
  }
  struct stat status {};
  if (::lstat(at.folder.c_str(), &status) != 0) return refusal_by_system(at.folder, errno);
  if (!S_ISDIR(status.st_mode)) return refusal(errc::name_conflict, at.folder, "it is no folder");
  if (auto ours = check_owner(at, status); !ours) return ours;
  if (::faccessat(AT_FDCWD, at.folder.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
    return refusal_by_system(at.folder, errno);
  }
  return {};
}

}  // namespace

tl::unexpected<error> refusal_by_system(const std::string& path, int number, errc otherwise) {
  const std::string why = std::strerror(number);
  switch (number) {
    case EACCES:
    case EPERM:
    case EROFS:
      return refusal(errc::denied, path,
                     why + "; the file and its folder must be writable, or name another file");
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      return refusal(errc::unavailable, path, why);
    default:
      return refusal(otherwise, path, why);
  }
}

std::optional<std::string_view> shared_file_system(long magic) {
  for (const auto& known : known_shared) {
    // Some kernels' f_type is signed and 32 bits wide.
    if (static_cast<std::uint32_t>(known.magic) == static_cast<std::uint32_t>(magic)) {
      return known.name;
    }
  }
  return std::nullopt;
}

result<location> locate(const std::string& path) {
  auto database = canonical_path(path);
  if (!database) return tl::unexpected(std::move(database.error()));
  location at;
  at.database = std::move(*database);
  at.folder = at.database + ".d";
  const std::string parent = fs::path(at.database).parent_path().string();
  auto fit = check_file_system(parent, at.database);
  if (fit) fit = make_file(at.database);
  // A file may be mounted from elsewhere than its folder.
  if (fit) fit = check_file_system(at.database, at.database);
  if (fit) fit = check_mount(at.database);
  if (!fit) return tl::unexpected(std::move(fit.error()));
  auto status = check_file(at.database);
  if (!status) return tl::unexpected(std::move(status.error()));
  at.file_mode = status->st_mode & 0666U;
  at.folder_mode = at.file_mode | (at.file_mode & 0444U) >> 2U;  // who may read may enter
  // Files that a member of the group creates in it belong to the group, whatever
  // that user's own group is.
  if ((at.file_mode & 0060U) != 0) at.folder_mode |= S_ISGID;
  at.group = status->st_gid;
  at.owner = status->st_uid;
  if (auto ours = format::look(at.database); !ours) return tl::unexpected(std::move(ours.error()));
  if (auto made = make_folder(at); !made) return tl::unexpected(std::move(made.error()));
  return at;
}

void forsake(const location& at) noexcept {
  if (!at.made_folder) return;
  ::unlink((at.folder + "/writer_lock").c_str());
  ::rmdir(at.folder.c_str());
}

result<folder> folder::open(const location& at) {
  descriptor handle = descriptor::made_by(
      [&] { return ::open(at.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW); });
  if (!handle) return refusal_by_system(at.folder, errno);
  return folder(std::move(handle), at);
}

socket_address folder::address(const std::string& name) const {
  socket_address made;
  std::string path = path_ + "/" + name;
  if (path.size() >= sizeof(made.name.sun_path)) {
    path = "/proc/self/fd/" + std::to_string(get()) + "/" + name;
  }
  made.name.sun_family = AF_UNIX;
  path.copy(made.name.sun_path, sizeof(made.name.sun_path) - 1);
  made.size = sizeof(made.name);
  return made;
}

void folder::remove(const std::string& name) const noexcept {
  if (get() >= 0) ::unlinkat(get(), name.c_str(), 0);
}

}  // namespace holdfast::sqlite
