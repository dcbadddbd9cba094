#include "stores/sqlite/gate_file.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace holdfast::sqlite {

namespace {

// Long enough for whoever is inside to finish a transaction, short against a process that sleeps.
constexpr int quick_tries = 64;

bool try_lock(int file) noexcept {
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

}  // namespace

// Thread-safe. At most one request at a time.
//
//   idle -> asked -> (inside: taken over by who asked | abandoned -> idle, unlocked)
class gate_file::helper {
 public:
  explicit helper(std::shared_ptr<descriptor> file) : file_(std::move(file)) {}

  // Is it still blocked for someone who gave up? Then nobody may try past it: its lock is ours.
  [[nodiscard]] bool busy() {
    const std::lock_guard lock(mutex_);
    return state_ != state::idle;
  }

  static bool enter(const std::shared_ptr<helper>& self, time_point deadline) {
    std::unique_lock lock(self->mutex_);
    if (self->state_ == state::idle) self->start(self);
    self->state_ = state::asked;
    while (self->state_ != state::inside) {
      const duration left = deadline - clock::now();
      if (left <= duration{0}) {
        self->state_ = state::abandoned;
        return false;
      }
      self->changed_.wait_for(lock, left);
    }
    self->state_ = state::idle;
    return true;
  }

 private:
  enum class state { idle, asked, abandoned, inside };

  // A thread per long wait: such waits are rare, and a thread that nobody needs is not kept.
  static void start(const std::shared_ptr<helper>& self) {
    std::thread([self] { self->block(); }).detach();
  }

  void block() noexcept {
    // Should it fail otherwise (no memory for locks), SQLite's own lock still keeps writers apart.
    while (::flock(file_->get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    const std::lock_guard lock(mutex_);
    if (state_ == state::abandoned) {
      ::flock(file_->get(), LOCK_UN);
      state_ = state::idle;
    } else {
      state_ = state::inside;
      changed_.notify_all();
    }
  }

  const std::shared_ptr<descriptor> file_;
  std::mutex mutex_;
  std::condition_variable changed_;
  state state_ = state::idle;  // guarded by mutex_
};

gate_file::gate_file(descriptor file) : file_(std::make_shared<descriptor>(std::move(file))) {}
gate_file::gate_file(gate_file&&) noexcept = default;
gate_file& gate_file::operator=(gate_file&&) noexcept = default;
gate_file::~gate_file() = default;

result<gate_file> gate_file::open(int folder, const std::string& path, mode_t mode) {
  descriptor file = descriptor::made_by(
      [&] { return ::openat(folder, "gate", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode); });
  if (!file) {
    const errc code = errno == ENOSPC || errno == EMFILE ? errc::unavailable : errc::denied;
    return failure(code, "sqlite, open " + path + "/gate, " + std::strerror(errno));
  }
  // Past the umask; only its owner can, and needs to.
  if (::fchmod(file.get(), mode) != 0) errno = 0;
  return gate_file(std::move(file));
}

bool gate_file::enter(time_point deadline) {
  if (!helper_ || !helper_->busy()) {
    for (int tries = 0; tries < quick_tries; ++tries) {
      if (try_lock(file_->get())) return true;
      ::sched_yield();
    }
  }
  if (!helper_) helper_ = std::make_shared<helper>(file_);
  return helper::enter(helper_, deadline);
}

void gate_file::leave() noexcept { ::flock(file_->get(), LOCK_UN); }

bool gate_file::deleted() const noexcept {
  struct stat status {};
  return ::fstat(file_->get(), &status) == 0 && status.st_nlink == 0;
}

}  // namespace holdfast::sqlite
