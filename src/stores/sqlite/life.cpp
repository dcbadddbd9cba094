#include "stores/sqlite/life.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace holdfast::sqlite {

namespace {

// "1: OFDLCK ADVISORY  WRITE -1 fe:00:1234 0 EOF": somebody holds an OFD lock on the inode. Only
// asked where the file's name is gone although its client is still in the database, which is a
// stranger's doing.
bool locked_somewhere(std::uint64_t inode) {
  std::ifstream locks("/proc/locks");
  if (!locks) return true;
  const std::string wanted = ":" + std::to_string(inode) + " ";
  for (std::string line; std::getline(locks, line);) {
    const std::string_view text(line);
    if (text.find(" OFDLCK ") != std::string_view::npos &&
        text.find(wanted) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// 0 where nothing was.
template <class Number>
Number written(const folder& at, const std::string& token, off_t offset) noexcept {
  const descriptor file = descriptor::made_by(
      [&] { return ::openat(at.get(), token.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW); });
  Number number = 0;
  if (!file || ::pread(file.get(), &number, sizeof number, offset) != sizeof number) return 0;
  return number;
}

}  // namespace

result<life> life::begin(const folder& at, const std::string& token) {
  const auto refuse = [&] {
    const errc code =
        errno == EACCES || errno == EROFS || errno == EPERM ? errc::denied : errc::unavailable;
    return failure(code, "sqlite, open " + at.path() + "/" + token + ", " + std::strerror(errno));
  };
  descriptor file = descriptor::made_by([&] {
    return ::openat(at.get(), token.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                    at.file_mode());
  });
  if (!file) return refuse();
  struct flock lock {};
  lock.l_type = F_WRLCK;
  struct stat status {};
  if (::fcntl(file.get(), F_OFD_SETLK, &lock) != 0 || ::fchmod(file.get(), at.file_mode()) != 0 ||
      ::fstat(file.get(), &status) != 0) {
    const auto refusal = refuse();
    at.remove(token);
    return refusal;
  }
  return life(std::move(file), status.st_ino);
}

void life::speak(spi::server_time now) const noexcept {
  const std::int64_t word = number_of(now);
  // If it fails, others may pass us over until the next time.
  if (::pwrite(file_.get(), &word, sizeof word, 0) != sizeof word) errno = 0;
}

void life::give_away(std::uint64_t parcel) const noexcept {
  // If it fails, people are not told who that is.
  if (::pwrite(file_.get(), &parcel, sizeof parcel, sizeof(std::int64_t)) != sizeof parcel)
    errno = 0;
}

bool life::deleted() const noexcept {
  struct stat status {};
  return ::fstat(file_.get(), &status) == 0 && status.st_nlink == 0;
}

int life::share() const noexcept { return ::fcntl(file_.get(), F_DUPFD_CLOEXEC, 3); }

bool alive(const folder& at, const peer& client) noexcept {
  const descriptor file = descriptor::made_by(
      [&] { return ::openat(at.get(), client.token.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW); });
  if (!file) {
    if (errno != ENOENT) return true;
    try {
      return locked_somewhere(client.inode);
    } catch (...) {
      return true;
    }
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  if (::fcntl(file.get(), F_OFD_GETLK, &lock) != 0) return true;
  return lock.l_type != F_UNLCK;
}

spi::server_time last_word(const folder& at, const std::string& token) noexcept {
  return spi::server_time(duration(written<std::int64_t>(at, token, 0)));
}

std::uint64_t parcel_given(const folder& at, const std::string& token) noexcept {
  return written<std::uint64_t>(at, token, sizeof(std::int64_t));
}

namespace {

namespace fs = std::filesystem;

// Does the process have the file or socket open, as /proc names it? False too where it may not be asked.
bool has_open(const fs::path& process, std::string_view wanted) {
  std::error_code problem;
  fs::directory_iterator each(process / "fd", problem);
  for (; !problem && each != fs::directory_iterator(); each.increment(problem)) {
    std::error_code gone;
    if (fs::read_symlink(each->path(), gone).native() == wanted) return true;
  }
  return false;
}

bool is_process(const fs::path& entry) {
  const std::string name = entry.filename().string();
  return std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::optional<std::string> heir_of(const folder& at, const std::string& token) {
  const std::uint64_t parcel = parcel_given(at, token);
  if (parcel == 0) return std::nullopt;
  const std::string own = at.path() + "/" + token;
  const std::string inherited = "socket:[" + std::to_string(parcel) + "]";
  std::optional<std::string> heir;
  std::error_code problem;
  fs::directory_iterator each("/proc", problem);
  for (; !problem && each != fs::directory_iterator(); each.increment(problem)) {
    const fs::path& process = each->path();
    if (!is_process(process)) continue;
    if (has_open(process, own)) return std::nullopt;
    if (heir || !has_open(process, inherited)) continue;
    std::string command;
    std::getline(std::ifstream(process / "comm"), command);
    heir = "pid " + process.filename().string() + " (" + command + ")";
  }
  return heir;
}

}  // namespace holdfast::sqlite
