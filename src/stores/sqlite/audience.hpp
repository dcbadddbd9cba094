// Who in this process observes resources or waits for latches.
#pragma once

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::sqlite {

// Thread-safe. Calls its listeners under no lock of its own, one call at a time for each.
class audience : public std::enable_shared_from_this<audience> {
 public:
  // `ended(key)`: the last listener of a key is gone. Called on the thread that ended it.
  explicit audience(std::function<void(const std::string&)> ended) : ended_(std::move(ended)) {}

  // `key`: a resource's, or "namespace/" for all in it.
  std::unique_ptr<spi::subscription> observe(std::string key,
                                             spi::function<void(const spi::store_event&)> sink);
  std::unique_ptr<spi::subscription> watch_latch(std::string key, spi::latch_watch on_change);

  void tell(const std::string& key, const spi::store_event& event);
  void tell_latch(const std::string& key);
  // Changes may have been missed: whoever waits for a latch looks again.
  void tell_all_latches();

  [[nodiscard]] bool empty() const;
  [[nodiscard]] bool listens(const std::string& key) const;
  void close() noexcept;

 private:
  struct listener;
  class seat;

  std::unique_ptr<spi::subscription> enter(std::shared_ptr<listener> who);
  void leave(const std::shared_ptr<listener>& who);
  [[nodiscard]] std::vector<std::shared_ptr<listener>> listeners(const std::string& key,
                                                                 bool latches) const;

  const std::function<void(const std::string&)> ended_;
  mutable std::mutex mutex_;
  bool closed_ = false;                                           // guarded by mutex_
  std::multimap<std::string, std::shared_ptr<listener>> by_key_;  // guarded by mutex_
};

}  // namespace holdfast::sqlite
