// Gathers the facts that `doctor` judges, and clears dead clients away.
#include "stores/sqlite/checks.hpp"
#include "stores/sqlite/sqlite_store.hpp"

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <utility>

namespace holdfast::sqlite {

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
