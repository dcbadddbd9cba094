// Calls to be made once no lock is held, in the order in which they were caused. Whoever finds
// nobody delivering delivers, also what others have added; a call that causes further calls adds
// them to the end, so nothing recurses.
#pragma once

#include <holdfast/spi/runtime.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace holdfast::memory {

// Thread-safe.
class outbox : public std::enable_shared_from_this<outbox> {
 public:
  // Who is called; retire() ends its calls.
  using recipient = std::int64_t;

  // Calls nothing: may be used under a lock, which then fixes the order.
  void add(recipient to, spi::task call);

  // Under no lock. Makes the calls that are there, unless another thread does so already; after a
  // batch of them the runtime goes on, so that no caller delivers forever.
  void deliver(spi::runtime& runtime);

  // When it returns, no call to this recipient is under way, unless on this very thread, and none
  // comes any more. Under no lock that a call could want.
  void retire(recipient who) noexcept;

 private:
  static constexpr std::size_t batch = 256;
  static constexpr recipient nobody = 0;

  struct entry {
    recipient to;
    spi::task call;
  };

  std::mutex mutex_;
  std::condition_variable called_;
  std::deque<entry> entries_;   // guarded by mutex_
  bool delivering_ = false;     // guarded by mutex_
  recipient current_ = nobody;  // guarded by mutex_; who is being called
  std::thread::id deliverer_;   // guarded by mutex_
  std::size_t retiring_ = 0;    // guarded by mutex_; how many wait in retire()
};

}  // namespace holdfast::memory
