// Processes that work side by side, for bench and demo: forked from this one while it has a single
// thread, ready together, started together, and ended with it.
#pragma once

#include "cli/output.hpp"
#include "cli/signals.hpp"
#include "runtime/descriptor.hpp"

#include <holdfast/clock.hpp>

#include <sys/mman.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <type_traits>
#include <vector>

namespace holdfast::cli {

// Elements that this process shares with those that it forks. Each is atomic, or is written by one
// process and read when that process has ended.
template <class T>
class shared_array {
 public:
  explicit shared_array(std::size_t size) : size_(size) {
    static_assert(std::is_trivially_destructible_v<T>);
    void* memory = ::mmap(nullptr, size * sizeof(T), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap");
    first_ = static_cast<T*>(memory);
    std::uninitialized_value_construct_n(first_, size);
  }
  shared_array(const shared_array&) = delete;
  shared_array& operator=(const shared_array&) = delete;
  ~shared_array() { ::munmap(first_, size_ * sizeof(T)); }

  [[nodiscard]] T& operator[](std::size_t index) const noexcept { return first_[index]; }
  [[nodiscard]] std::span<T> all() const noexcept { return {first_, size_}; }

 private:
  std::size_t size_;
  T* first_;
};

// Used by one thread, the main one: the workers die with it.
class worker_processes {
 public:
  // `leave_within`: how long workers that are ended early may take to clean up. Throws std::system_error.
  worker_processes(signal_inbox& inbox, duration leave_within);
  worker_processes(const worker_processes&) = delete;
  worker_processes& operator=(const worker_processes&) = delete;
  ~worker_processes() { end(); }

  // What a worker does, given its number. If one fails, all fail.
  using work = std::function<outcome<void>(std::uint32_t number)>;
  void fork_all(std::uint32_t count, const work& each);

  // These return false after a failure or a signal. Waits until all are ready to start, at most
  // this long.
  [[nodiscard]] bool wait_until_ready(duration limit);
  void start() noexcept;
  // Waits until all have ended, or until the time. Calls `tick` now and then.
  [[nodiscard]] bool wait_until(time_point when, const std::function<void()>& tick = {});

  [[nodiscard]] bool all_ended() const noexcept { return pids_.empty(); }
  [[nodiscard]] const std::optional<complaint>& trouble() const noexcept { return trouble_; }
  [[nodiscard]] std::optional<int> ended_by() const noexcept { return ended_by_; }  // a signal

  // In a worker, on its main thread: reports that it is ready. False: the command has given up.
  [[nodiscard]] bool wait_for_start() noexcept;
  // In a worker: waits that long (not forever) for the command to give up. True if it has.
  [[nodiscard]] bool given_up(duration within = {}) const noexcept;
  // In a worker. Only the first complaint of all is kept.
  void complain(const complaint& what) const noexcept;

 private:
  // A pipe to which nothing is written: the message is that the last writer has closed its end.
  struct closing_pipe {
    closing_pipe();
    runtime::descriptor reading;
    runtime::descriptor writing;
  };
  struct shared_trouble {
    std::atomic<bool> taken{false};
    std::atomic<bool> written{false};
    int code = 0;
    std::array<char, 2048> text{};
  };

  [[noreturn]] void become_worker(std::uint32_t number, const work& each) noexcept;
  bool wait(const std::function<bool()>& done, time_point until, const std::function<void()>& tick);
  void collect();
  void end() noexcept;

  signal_inbox& inbox_;
  const duration leave_within_;
  closing_pipe ready_;    // closed by workers that are ready, or gone
  closing_pipe start_;    // closed by the command
  closing_pipe give_up_;  // likewise
  shared_array<shared_trouble> told_{1};
  std::vector<pid_t> pids_;  // of those that have not ended
  std::optional<complaint> trouble_;
  std::optional<int> ended_by_;
};

}  // namespace holdfast::cli
