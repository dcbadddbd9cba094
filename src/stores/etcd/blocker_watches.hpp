// Watches on what is in the way of claims: one for all that wait behind the same key. It stays for a while when nobody
// does: who queues again often finds the same claim before it. That saves the look that a new watch needs, and etcd
// tells up to 100 ms late of what happens to a watch that was made while something was written.
#pragma once

#include "stores/etcd/watch_hub.hpp"

#include <holdfast/spi/reactor.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::etcd {

// Thread-safe.
class blocker_watches : public std::enable_shared_from_this<blocker_watches> {
 public:
  struct interest {
    std::int64_t seen = 0;       // guarded by the mutex of the watches
    std::function<void()> look;  // called under no lock, on a reactor's thread
  };

  blocker_watches(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<watch_hub> hub)
      : reactor_(std::move(reactor)), hub_(std::move(hub)) {}

  // `what`: a key, or what keys begin with. `seen`: the revision at which it was in the way. `look` is called when
  // something happened to it since, and whenever that cannot be told, until the interest is destroyed; a call that has
  // begun goes on.
  [[nodiscard]] std::shared_ptr<interest> add(const std::string& what, watch_filter without,
                                              std::int64_t seen, std::function<void()> look);
  void close() noexcept;

 private:
  using name = std::pair<std::string, watch_filter>;
  struct one_watch {
    watch_hub::watch_id id = 0;
    std::int64_t latest = 0;  // the revision of the last event
    bool used = true;         // since the last tidying
    std::vector<std::weak_ptr<interest>> interests{};
  };

  void tell(const name& which, const watch_news& news);
  void tidy();
  void wake_tidying();

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<watch_hub> hub_;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  std::map<name, one_watch> watches_;
  spi::runtime::timer_id timer_ = 0;
  bool tidying_ = false;
  bool closed_ = false;
};

}  // namespace holdfast::etcd
