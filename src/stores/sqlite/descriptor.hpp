// A file descriptor of this store. Close-on-exec, and closed in a child that fork() makes: an open
// file description that lived on in a child would be a sign of life from a dead parent, and would
// keep its connections open.
#pragma once

#include <holdfast/result.hpp>

#include <cstdint>
#include <utility>

namespace holdfast::sqlite {

// Grows by one in every child that fork() makes. One load.
std::uint64_t fork_generation() noexcept;

// Not thread-safe; creating and closing one is, also with regard to fork(). Empty (-1) or open. In
// a forked child it is effectively empty: get() returns -1 and nothing is closed twice, since the
// child closed all of them in its first step.
class descriptor {
 public:
  // A descriptor above this number could not be closed in a child and is refused (EMFILE).
  static constexpr int limit = 1 << 16;

  descriptor() noexcept = default;
  descriptor(descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)), born_(other.born_) {}
  descriptor& operator=(descriptor&& other) noexcept {
    if (this != &other) {
      close();
      number_ = std::exchange(other.number_, -1);
      born_ = other.born_;
    }
    return *this;
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { close(); }

  // Calls `make` (open, socket, accept; always with close-on-exec) while no fork() can come between
  // it and the entry in the list of descriptors to close. Empty with errno set if it fails.
  template <class Make>
  static descriptor made_by(Make&& make) noexcept {
    const fork_lock lock;
    return enter(make());
  }

  explicit operator bool() const noexcept { return get() >= 0; }
  [[nodiscard]] int get() const noexcept { return born_ == fork_generation() ? number_ : -1; }
  void close() noexcept;

 private:
  // Keeps fork() out.
  class fork_lock {
   public:
    fork_lock() noexcept;
    ~fork_lock();
    fork_lock(const fork_lock&) = delete;
    fork_lock& operator=(const fork_lock&) = delete;
  };

  static descriptor enter(int number) noexcept;

  int number_ = -1;
  std::uint64_t born_ = fork_generation();
};

// SQLite across fork(). It keeps a list of the files that this process has open and of its locks on
// them. A child inherits the list but not the locks, and would assume that it is protected: another
// process could then take itself for the last user of a database and delete the log that the child
// is using. So the child closes what it inherited before it opens anything of its own, and to make
// that possible fork() waits until no thread is inside SQLite.
//
// Around every use of SQLite. Keeps fork() out; nests. A thread that comes while another forks waits
// for it.
class inside_sqlite {
 public:
  inside_sqlite() noexcept;
  ~inside_sqlite();
  inside_sqlite(const inside_sqlite&) = delete;
  inside_sqlite& operator=(const inside_sqlite&) = delete;
};

// unavailable: fork() gave up waiting for a thread that was inside SQLite, so SQLite's state in
// this process cannot be trusted.
result<void> check_inheritance();

}  // namespace holdfast::sqlite
