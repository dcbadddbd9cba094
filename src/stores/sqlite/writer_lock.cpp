#include "stores/sqlite/writer_lock.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast::sqlite {

namespace {

// About two transactions long. Without giving up the processor in between: measured, that was less
// fair and no faster.
constexpr int quick_tries = 64;
// Then others are let in first, if there are any. Fewer than a process does between two turns of the
// scheduler's own: measured, that is fairer and no slower.
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
    std::thread([made] { made->serve(); }).detach();
    return made;
  }

  // Is it still blocked for somebody who gave up? Then nobody may try past it: the lock that it gets
  // would be the same lock.
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
        done_.wait_for(lock, left);
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
      // Should it fail otherwise (no memory for locks), SQLite's own lock keeps writers apart.
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
  function work_ = nullptr;    // guarded by mutex_ but while running
  void* with_ = nullptr;       // likewise
};

writer_lock::writer_lock(descriptor file) : file_(std::make_shared<descriptor>(std::move(file))) {}
writer_lock::writer_lock(writer_lock&&) noexcept = default;
writer_lock& writer_lock::operator=(writer_lock&&) noexcept = default;
writer_lock::~writer_lock() {
  if (helper_) helper_->end();
}

result<writer_lock> writer_lock::open(int folder, const std::string& path, mode_t mode) {
  descriptor file = descriptor::made_by(
      [&] { return ::openat(folder, "gate", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode); });
  if (!file) {
    const errc code = errno == ENOSPC || errno == EMFILE ? errc::unavailable : errc::denied;
    return failure(code, "sqlite, open " + path + "/gate, " + std::strerror(errno));
  }
  // Past the umask; only its owner can, and needs to.
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
  // Whoever was woken by the unlock needs a processor, and this process would be back inside before
  // it has one.
  if (met_others_) ::sched_yield();
  in_a_row_ = 0;
  met_others_ = false;
}

bool writer_lock::inside_later(time_point deadline, function work, void* with) {
  if (!helper_) helper_ = helper::start(file_);
  return helper_->inside(deadline, work, with);
}

}  // namespace holdfast::sqlite
