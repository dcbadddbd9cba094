// The observers of resources, and waiters for latches, of this process.
#pragma once

#include <holdfast/spi/store.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::sql {

// Thread-safe. Calls its listeners under no lock of its own, one call at a time for each listener.
class subscribers : public std::enable_shared_from_this<subscribers> {
 public:
  // What the server is asked to notify us of.
  struct interests {
    std::vector<std::string> events;   // keys, or "namespace/" for all names in it
    std::vector<std::string> latches;  // keys

    [[nodiscard]] bool empty() const noexcept { return events.empty() && latches.empty(); }
  };

  // `ended`: nobody listens to these any more. Called on the thread that ended the subscription.
  explicit subscribers(std::function<void(const interests&)> ended) : ended_(std::move(ended)) {}

  std::unique_ptr<spi::subscription> observe(std::string key,
                                             spi::function<void(const spi::store_event&)> sink);
  std::unique_ptr<spi::subscription> watch_latch(std::string key, spi::latch_watch on_change);

  void tell(const std::string& key, const spi::store_event& event);
  void tell_latch(const std::string& key);
  // Changes may have been missed: waiters for a latch look again.
  void tell_all_latches();

  [[nodiscard]] interests all() const;
  [[nodiscard]] bool empty() const;
  [[nodiscard]] bool listens(const std::string& key) const;
  void close() noexcept;

 private:
  struct listener;
  class subscription;
  using table = std::multimap<std::string, std::shared_ptr<listener>>;

  void leave(const std::shared_ptr<listener>& who);
  static void collect(const table& from, const std::string& key,
                      std::vector<std::shared_ptr<listener>>& into);

  const std::function<void(const interests&)> ended_;
  mutable std::mutex mutex_;
  bool closed_ = false;  // guarded by mutex_
  table observers_;      // guarded by mutex_
  table watchers_;       // guarded by mutex_
};

}  // namespace holdfast::sql
