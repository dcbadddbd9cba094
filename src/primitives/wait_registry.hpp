// Those who wait in a client for something else than a claim (latches), so that closing it can tell
// them.
//
// Thread-safe; calls those it tells under no lock.
#pragma once

#include <holdfast/result.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace holdfast {

class wait_registry {
 public:
  class entry {
   public:
    virtual ~entry() = default;
    virtual void cancel(const error& why) noexcept = 0;
  };

  static constexpr std::size_t limit = 100'000;

  // Keeps it alive until remove(). cancelled: closed; overloaded: too many.
  result<std::uint64_t> add(std::shared_ptr<entry> waiting) {
    const std::lock_guard lock(mutex_);
    if (closed_) return failure(errc::cancelled, "the client is closed");
    if (entries_.size() >= limit) return failure(errc::overloaded, "too many wait in this client");
    entries_.emplace(next_, std::move(waiting));
    return next_++;
  }

  void remove(std::uint64_t id) noexcept {
    std::shared_ptr<entry> removed;  // destroyed after the lock is gone
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    removed = std::move(found->second);
    entries_.erase(found);
  }

  void close(const error& why) noexcept {
    std::map<std::uint64_t, std::shared_ptr<entry>> told;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      told.swap(entries_);
    }
    for (const auto& [id, waiting] : told) waiting->cancel(why);
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<entry>> entries_;  // guarded by mutex_
  std::uint64_t next_ = 1;                                   // guarded by mutex_
  bool closed_ = false;                                      // guarded by mutex_
};

}  // namespace holdfast
