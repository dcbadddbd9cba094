#include "stores/sqlite/session.hpp"

#include "runtime/service_thread.hpp"
#include "stores/sqlite/database.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

namespace holdfast::sqlite {

namespace {

// A page holds a lock and little else; what is not written needs no checksum.
constexpr std::int64_t page_size = 1024;
constexpr std::int64_t frame_size = page_size + 24;
// The log is copied back when it has this many pages. More: fewer stalls of some milliseconds, and
// a longer first open when no process has the file open, since the whole log is read then. So a
// session begins with few: if all processes are short-lived, like `run`, none finds a long log.
constexpr std::int64_t checkpoint_pages = 4000;
constexpr std::int64_t first_checkpoint_pages = 256;
constexpr std::int64_t least_checkpoint_pages = 32;
// Transactions that are written while the log could not be copied back yet.
constexpr std::int64_t log_slack_pages = 256;

// About two transactions long. Without yielding in between: that was measured to be
// less fair and no faster.
constexpr int quick_tries = 64;
// After these, other processes are let in first, if there are any. Fewer than a process does in one
// time slice of the scheduler: that was measured to be fairer and no slower.
constexpr int turns_in_a_row = 32;

}  // namespace

// Thread-safe. One request at a time.
//
//   idle -> asked -> running -> done -> idle
//           asked -> abandoned, when its deadline passed -> idle, or asked by the next
class writer_lock::helper {
 public:
  explicit helper(std::shared_ptr<const descriptor> file) : file_(std::move(file)) {}

  static std::shared_ptr<helper> start(std::shared_ptr<const descriptor> file) {
    auto made = std::make_shared<helper>(std::move(file));
    runtime::start_service("holdfast-writer", [made] { made->serve(); })->detach();
    return made;
  }

  // Is it still blocked on behalf of a caller that gave up? Then nobody may try besides it: the
  // lock that it gets would be the same lock.
  [[nodiscard]] bool busy() {
    const std::lock_guard lock(mutex_);
    return state_ != state::idle;
  }

  bool inside(time_point deadline, function work, void* with) {
    std::unique_lock lock(mutex_);
    work_ = work;
    with_ = with;
    state_ = state::asked;
    asked_.notify_one();
    while (state_ != state::done) {
      const duration left = deadline - clock::now();
      if (left <= duration{0} && state_ == state::asked) {
        state_ = state::abandoned;
        return false;
      }
      if (state_ == state::running) {
        done_.wait(lock);  // it ends by itself
      } else {
        done_.wait_for(lock, std::min<duration>(left, std::chrono::hours(1)));  // no sum overflows
      }
    }
    state_ = state::idle;
    return true;
  }

  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    asked_.notify_one();
  }

 private:
  enum class state { idle, asked, running, done, abandoned };

  void serve() noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      asked_.wait(lock, [this] { return ended_ || state_ == state::asked; });
      if (ended_) return;
      lock.unlock();
      // If it fails otherwise (no memory for locks), SQLite's own lock keeps writers apart.
      while (::flock(file_->get(), LOCK_EX) != 0 && errno == EINTR) {
      }
      lock.lock();
      const bool wanted = state_ == state::asked;
      if (wanted) {
        state_ = state::running;
        lock.unlock();
        work_(with_);
        lock.lock();
      }
      ::flock(file_->get(), LOCK_UN);
      state_ = wanted ? state::done : state::idle;
      if (wanted) done_.notify_one();
    }
  }

  const std::shared_ptr<const descriptor> file_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable done_;
  state state_ = state::idle;  // guarded by mutex_
  bool ended_ = false;         // guarded by mutex_
  function work_ = nullptr;    // guarded by mutex_, except while running
  void* with_ = nullptr;       // likewise
};

writer_lock::writer_lock(descriptor file) : file_(std::make_shared<descriptor>(std::move(file))) {}
writer_lock::writer_lock(writer_lock&&) noexcept = default;
writer_lock& writer_lock::operator=(writer_lock&&) noexcept = default;
writer_lock::~writer_lock() {
  if (helper_) helper_->end();
}

result<writer_lock> writer_lock::open(int folder, const std::string& path, mode_t mode) {
  descriptor file = descriptor::made_by([&] {
    return ::openat(folder, "writer_lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
  });
  if (!file) return refusal_by_system(path + "/writer_lock", errno);
  // Regardless of the umask; only its owner can do this, and needs to.
  if (::fchmod(file.get(), mode) != 0) errno = 0;
  return writer_lock(std::move(file));
}

bool writer_lock::enter_at_once() noexcept {
  if (helper_ && helper_->busy()) return false;
  for (int tries = 0; tries < quick_tries; ++tries) {
    if (::flock(file_->get(), LOCK_EX | LOCK_NB) == 0) return true;
    met_others_ = true;
  }
  return false;
}

void writer_lock::leave() noexcept {
  ::flock(file_->get(), LOCK_UN);
  if (++in_a_row_ < turns_in_a_row) return;
  // A process woken by the unlock needs a processor, and this one would be back
  // inside before it gets one.
  if (met_others_) ::sched_yield();
  in_a_row_ = 0;
  met_others_ = false;
}

bool writer_lock::inside_later(time_point deadline, function work, void* with) {
  try {
    if (!helper_) helper_ = helper::start(file_);
  } catch (const std::exception&) {
    return false;  // no memory, or no thread can be created now
  }
  return helper_->inside(deadline, work, with);
}

session::session(const location& at, writer_lock writer_lock, std::unique_ptr<database> connection,
                 opened_file file)
    : location_(at),
      file_(std::move(file)),
      writer_lock_(std::move(writer_lock)),
      database_(std::move(connection)),
      statements_(*database_),
      ledger_(statements_),
      most_pages_(checkpoint_pages),
      checkpoint_at_(first_checkpoint_pages) {}

result<std::unique_ptr<session>> session::open(const location& at, writer_lock writer_lock,
                                               time_point deadline) {
  struct stat status {};
  descriptor handle = descriptor::made_by(
      [&] { return ::open(at.database.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW); });
  if (!handle || ::fstat(handle.get(), &status) != 0) {
    return refusal_by_system(at.database, errno, errc::unavailable);
  }
  auto connection = database::open(at.database);
  if (!connection) return tl::unexpected(std::move(connection.error()));
  std::unique_ptr<session> made(new session(at, std::move(writer_lock), std::move(*connection),
                                            {std::move(handle), status.st_dev, status.st_ino}));
  made->database_->set_deadline(deadline);
  result<void> done;
  const bool entered = made->writer_lock_.inside(deadline, [&]() noexcept {
    done = made->attempt([&] { made->set_up(); });
    made->share_files();
  });
  if (!entered) return not_entered();
  if (!done) return tl::unexpected(std::move(done.error()));
  return made;
}

void session::set_up() {
  // Before anything is written: on a new file only these two settings take effect.
  database_->execute("PRAGMA page_size = " + std::to_string(page_size));
  format::check(*database_, location_.database);
  if (database_->pragma_text("journal_mode = WAL") != "wal") {
    throw failed{{errc::unsupported, "sqlite, open " + location_.database +
                                         ", the file system cannot hold a write-ahead log"}};
  }
  database_->execute("PRAGMA synchronous = NORMAL; PRAGMA secure_delete = OFF");
  sqlite3_wal_hook(database_->get(), &session::log_has_grown, this);
  if (database_->pragma_number("application_id") == format::application) return;
  database_->execute("BEGIN IMMEDIATE;" + std::string(statement_text("schema")) +
                     "PRAGMA application_id = " + std::to_string(format::application) +
                     "; PRAGMA user_version = " + std::to_string(format::version) + "; COMMIT");
}

// SQLite gives its files the mode of the database, but only root's processes give them its group.
void session::share_files() const noexcept {
  if ((location_.file_mode & 0060U) == 0) return;
  for (const char* suffix : {"-wal", "-shm"}) {
    const std::string path = location_.database + suffix;
    // Fails if another user created it, who has then done this.
    if (::fchownat(AT_FDCWD, path.c_str(), static_cast<uid_t>(-1), location_.group,
                   AT_SYMLINK_NOFOLLOW) != 0) {
      errno = 0;
    }
  }
}

result<void> session::take_turn(time_point deadline) {
  if (!turn_.take(deadline)) {
    return failure(errc::unavailable, "sqlite, this process's other operations took too long");
  }
  database_->set_deadline(deadline);
  return {};
}

result<void> session::begin(time_point deadline) {
  if (auto begun = take_turn(deadline); !begun) return begun;
  if (auto fine = in_place(); !fine) {
    turn_.give();
    return fine;
  }
  return {};
}

tl::unexpected<error> session::not_entered() {
  return failure(errc::unavailable,
                 "sqlite, writer lock, another process is inside for too long (is one stopped?)");
}

result<void> session::in_place() const {
  const time_point now = clock::now();
  struct stat status {};
  // Asks the file itself for its number of names, which costs half as much as following the path.
  if (now - path_seen_.load(std::memory_order_relaxed) < path_age &&
      ::fstat(file_.handle.get(), &status) == 0 && status.st_nlink > 0) {
    return {};
  }
  if (::stat(location_.database.c_str(), &status) != 0) {
    return failure(errc::unavailable, "sqlite, " + location_.database +
                                          " was deleted while in use: its locks are lost");
  }
  if (status.st_dev != file_.device || status.st_ino != file_.inode) {
    return failure(errc::unavailable, "sqlite, " + location_.database +
                                          " was replaced while in use: its locks are lost");
  }
  path_seen_.store(now, std::memory_order_relaxed);
  return {};
}

int session::log_has_grown(void* self, sqlite3* database, const char* schema_name, int pages) {
  auto& session = *static_cast<class session*>(self);
  if (pages < session.checkpoint_at_) return SQLITE_OK;
  session.checkpoint_at_ = session.most_pages_;
  sqlite3_wal_checkpoint_v2(database, schema_name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  return SQLITE_OK;
}

void session::reserve_log() noexcept {
  const inside_sqlite inside;
  // A new file's tables are still in the log. Copied back now, they take the file's first
  // blocks; on a full disk that would be impossible, and the log, which only that
  // empties, would be unusable.
  struct stat status {};
  if (::stat(location_.database.c_str(), &status) == 0 && status.st_size < database::growth) {
    sqlite3_wal_checkpoint_v2(database_->get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                              nullptr);
  }
  // Not the database itself: closing a descriptor of that would drop SQLite's locks.
  const std::string log = location_.database + "-wal";
  const int file = ::open(log.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  std::int64_t pages = checkpoint_pages;
  // If there is not even room for that now, the log is copied back earlier.
  while (pages > least_checkpoint_pages &&
         ::fallocate(file, FALLOC_FL_KEEP_SIZE, 0, (pages + log_slack_pages) * frame_size) != 0 &&
         errno == ENOSPC) {
    pages /= 2;
  }
  ::close(file);
  most_pages_ = pages;
  checkpoint_at_ = std::min(checkpoint_at_, pages);
}

}  // namespace holdfast::sqlite
