#include "stores/sqlite/membership.hpp"

#include "stores/sqlite/database.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::sqlite {

namespace fs = std::filesystem;

result<host> this_host() {
  host here;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (!std::getline(file, here.boot) || here.boot.empty()) {
    return failure(errc::unsupported,
                   "sqlite, open, no boot id: /proc/sys/kernel/random/boot_id cannot be read");
  }
  struct stat status {};
  if (::stat("/proc/self/ns/time", &status) == 0) here.time_namespace = status.st_ino;
  return here;
}

namespace {

// Commits may be lost in a power cut. Fences are at least microseconds of the wall clock, so that
// those after a reboot are greater than all before it, also if the clock lost less than this. If it
// lost more, this many are skipped: more than can have been given.
constexpr std::uint64_t fences_per_minute = 60'000'000;
constexpr std::uint64_t fences_per_boot = std::uint64_t{1} << 32U;

struct listed_client {
  peer who;
  std::uint64_t time_namespace = 0;
};

std::vector<listed_client> all_clients(statements& of) {
  std::vector<listed_client> clients;
  query rows(of.clients);
  while (rows.next()) {
    listed_client each;
    each.who.number = rows.number(0);
    each.who.token = rows.blob(1);
    each.who.inode = static_cast<std::uint64_t>(rows.number(2));
    each.time_namespace = static_cast<std::uint64_t>(rows.number(3));
    clients.push_back(std::move(each));
  }
  return clients;
}

[[noreturn]] void refuse(const session& at, const std::string& why) {
  throw failed{{errc::unsupported, "sqlite, open " + at.where().database + ", " + why}};
}

std::string last_boot(statements& of) {
  query meta(of.meta);
  return meta.next() ? std::string(meta.blob(0)) : std::string();
}

std::uint64_t next_floor(statements& of) {
  query meta(of.meta);
  if (!meta.next()) return 0;  // a new database: no fence was ever given
  query last(of.greatest_last);
  last.next();
  const auto greatest = static_cast<std::uint64_t>(std::max(meta.number(1), last.number(0)));
  const std::uint64_t clock = wall_clock_microseconds();
  if (clock <= greatest) return greatest + fences_per_boot;
  return std::max(clock, greatest + fences_per_minute);
}

// After a reboot no former client lives. The floor of the fences must be on disk before any
// fence above it is given.
void start_boot(session& at, statements& of, ledger& book, const folder& beside, const host& here) {
  if (last_boot(of) == here.boot) return;  // another client was faster
  for (const listed_client& client : all_clients(of)) {
    if (alive(beside, client.who)) {
      refuse(at, "another machine uses it, or one that was started from a copy of this one");
    }
  }
  const std::uint64_t floor = next_floor(of);
  book.start_boot(floor);
  run(of.delete_all_observers);
  run(of.delete_all_clients);
  run(of.set_boot, bytes(here.boot), static_cast<std::int64_t>(floor));
}

// Times of another time namespace cannot be compared with ours.
void check_time_namespace(const session& at, statements& of, const folder& beside,
                          const host& here) {
  for (const listed_client& client : all_clients(of)) {
    if (client.time_namespace != here.time_namespace && alive(beside, client.who)) {
      refuse(at, "a process in another time namespace uses it, whose clock differs from ours");
    }
  }
}

// What was written before is read as it is; but its writer would not understand what we write.
void adopt_format(const session& at, statements& of, const folder& beside) {
  if (of.owner.pragma_number("user_version") == format::version) return;
  for (const listed_client& client : all_clients(of)) {
    if (alive(beside, client.who)) refuse(at, "an older holdfast uses it: end that first");
  }
  of.owner.execute("PRAGMA user_version = " + std::to_string(format::version));
}

// Files of clients that are not in the database: they were killed on their way in or out.
// Nobody else is on the way, since that happens under the writer lock, which we hold. Clients
// that were purged in this transaction keep theirs until it is committed: if it is not, they
// are still in the database, and without a name only an inode would be left of them, which
// another file may have by then.
void remove_orphans(statements& of, const folder& beside, const std::vector<peer>& purged) {
  std::set<std::string> known;
  for (const peer& each : purged) known.insert(each.token);
  for (const listed_client& client : all_clients(of)) known.insert(client.who.token);
  std::vector<std::string> orphans;
  std::error_code problem;
  fs::directory_iterator each(beside.path(), problem);
  for (; !problem && each != fs::directory_iterator(); each.increment(problem)) {
    const std::string name = each->path().filename().string();
    const std::string token = name.substr(0, name.find('.'));
    if (token.size() == 32 && !known.contains(token)) orphans.push_back(name);
  }
  for (const std::string& name : orphans) {
    if (!alive(beside, {0, name.substr(0, name.find('.')), 0})) beside.remove(name);
  }
}

}  // namespace

std::vector<peer> find_peers(statements& of, const std::vector<std::int64_t>& numbers) {
  std::vector<peer> found;
  for (const std::int64_t number : numbers) {
    query row(of.client, number);
    if (!row.next()) continue;
    found.push_back({number, std::string(row.blob(0)), static_cast<std::uint64_t>(row.number(1))});
  }
  return found;
}

purge purge_dead(ledger& book, statements& of, const folder& beside, std::int64_t self,
                 effects& out) {
  purge done;
  std::set<std::int64_t> dead;
  for (const listed_client& client : all_clients(of)) {
    if (client.who.number == self) continue;
    if (alive(beside, client.who)) {
      ++done.alive;
    } else {
      dead.insert(client.who.number);
      done.purged.push_back(client.who);
    }
  }
  if (!dead.empty()) book.purge({.now = now(), .out = out, .self = self, .dead = &dead});
  return done;
}

void remove_files(const folder& beside, const std::vector<peer>& purged) noexcept {
  for (const peer& each : purged) {
    beside.remove(each.socket());
    beside.remove(each.token);
  }
}

result<membership> join(session& at, const folder& beside, const host& here,
                        const std::string& token, time_point deadline) {
  statements& of = at.prepared();
  bool same_boot = false;
  auto done = at.read(deadline, [&](ledger&) { same_boot = last_boot(of) == here.boot; });
  if (done && !same_boot) {
    const auto set_sync = [&](const char* how) {
      return at.aside(deadline, [&](database& connection, statements&) {
        connection.execute(std::string("PRAGMA synchronous = ") + how);
      });
    };
    done = set_sync("FULL");
    if (done) {
      done = at.write(deadline, [&](ledger& book) { start_boot(at, of, book, beside, here); });
    }
    if (done) done = set_sync("NORMAL");
  }
  if (!done) return tl::unexpected(std::move(done.error()));

  std::optional<life> sign;
  peer self{0, token, 0};
  effects caused;
  purge cleared;
  done = at.write(deadline, [&](ledger& book) {
    book.look_beside(&beside);
    check_time_namespace(at, of, beside, here);
    adopt_format(at, of, beside);
    auto begun = life::begin(beside, token);
    if (!begun) throw failed{begun.error()};
    self.inode = begun->inode();
    sign.emplace(std::move(*begun));
    run(of.insert_client, bytes(token), static_cast<std::int64_t>(self.inode),
        static_cast<std::int64_t>(here.time_namespace));
    self.number = of.owner.last_row();
    cleared = purge_dead(book, of, beside, self.number, caused);
    remove_orphans(of, beside, cleared.purged);
  });
  if (!done) {
    if (sign) beside.remove(token);
    return tl::unexpected(std::move(done.error()));
  }
  remove_files(beside, cleared.purged);
  return membership{std::move(self), std::move(*sign), std::move(caused), cleared.purged.size()};
}

// --- signs of life ---------------------------------------------------------------------------------

namespace {

// "1: OFDLCK ADVISORY  WRITE -1 fe:00:1234 0 EOF": somebody holds an OFD lock on the inode.
// Only used if the file's name is gone although its client is still in the database, which
// somebody else must have caused.
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

// 0 if nothing was written.
template <class Number>
Number written(const folder& at, const std::string& token, off_t offset) noexcept {
  const descriptor file = descriptor::made_by(
      [&] { return ::openat(at.get(), token.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW); });
  Number number = 0;
  if (!file || ::pread(file.get(), &number, sizeof number, offset) != sizeof number) return 0;
  return number;
}

// Does the process have the file or socket open, as /proc names it? Also false if we may not look.
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

result<life> life::begin(const folder& at, const std::string& token) {
  const auto refuse = [&] {
    return refusal_by_system(at.path() + "/" + token, errno, errc::unavailable);
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
  // If it fails, others may pass us over until the next write.
  if (::pwrite(file_.get(), &word, sizeof word, 0) != sizeof word) errno = 0;
}

void life::give_away(std::uint64_t parcel) const noexcept {
  // If it fails, people cannot see which process that is.
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

std::optional<std::string> heir_of(const folder& at, const std::string& token) {
  // The inode of the last socket that it gave to another process to keep it alive; 0: none.
  const auto parcel = written<std::uint64_t>(at, token, sizeof(std::int64_t));
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
