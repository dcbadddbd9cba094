#include "stores/sqlite/membership.hpp"

#include "stores/sqlite/database.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace holdfast::sqlite {

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

// Commits may be lost in a power cut. Fences are microseconds of the wall clock at least, so that those
// after a reboot are greater than all before it, also if the clock lost less than this. Where it lost
// more, so many are left out: more than can have been given.
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

// After a reboot nobody of before lives. The floor of the fences must be on the disk before any fence above
// it is given.
void start_boot(session& at, statements& of, ledger& book, const folder& beside, const host& here) {
  if (last_boot(of) == here.boot) return;  // somebody was quicker
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

// What was written before is read as it is; but who wrote it would not understand what we write.
void adopt_format(const session& at, statements& of, const folder& beside) {
  if (of.owner.pragma_number("user_version") == format::version) return;
  for (const listed_client& client : all_clients(of)) {
    if (alive(beside, client.who)) refuse(at, "an older holdfast uses it: end that first");
  }
  of.owner.execute("PRAGMA user_version = " + std::to_string(format::version));
}

// Files of clients that are not in the database: they were killed on their way in or out. Nobody
// else is on its way, since that happens inside the writer lock, where we are. Those who were purged in this
// transaction keep theirs until it is committed: if it is not, they are in the database still, and
// without a name only an inode would be left of them, which another may have by then.
void remove_orphans(statements& of, const folder& beside, const std::vector<peer>& purged) {
  std::set<std::string> known;
  for (const peer& each : purged) known.insert(each.token);
  for (const listed_client& client : all_clients(of)) known.insert(client.who.token);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(beside.path().c_str()), &::closedir);
  if (!listing) return;
  std::vector<std::string> orphans;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    const std::string token = name.substr(0, name.find('.'));
    if (token.size() == 32 && !known.contains(token)) orphans.push_back(name);
  }
  for (const std::string& name : orphans) {
    const std::string token = name.substr(0, name.find('.'));
    if (!alive(beside, {0, token, 0})) beside.remove(name);
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
    if (done.purged.size() < membership::purge_limit && !alive(beside, client.who)) {
      dead.insert(client.who.number);
      done.purged.push_back(client.who);
    } else {
      ++done.alive;
    }
  }
  const moment step{.now = now(), .out = out, .self = self, .dead = &dead};
  for (const peer& each : done.purged) book.purge(step, each.number);
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

}  // namespace holdfast::sqlite
