// All watches of a store, on one stream over a connection of their own: on the connection of the calls a
// burst of events would delay renewals (etcd#15402).
//
// A watch begins from now, never from a revision: a watch on a past one is served by a loop that
// runs ten times a second. So a watcher looks once when the watch exists, and nothing is missed.
// After a lost connection, and after a compaction, the same happens again. A small call now and
// then detects a lost connection: a member that has died, or is cut off, just stays silent.
#pragma once

#include "net/backoff.hpp"
#include "stores/etcd/channel.hpp"

#include <holdfast/spi/reactor.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::etcd {

struct watch_news {
  bool created = false;            // it exists from now on: look
  std::optional<error> refused{};  // it will never exist
  std::vector<watch_answer::event> events{};
};
// Called under no lock, on a reactor's thread, one after the other.
using watcher = std::function<void(const watch_news&)>;

// Thread-safe.
class watch_hub final : public stream_listener, public std::enable_shared_from_this<watch_hub> {
 public:
  using watch_id = std::int64_t;

  watch_hub(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<channel> way,
            net::backoff_limits pauses);

  watch_id add(key_range of, watch_filter without, watcher who);
  // A call that has begun is completed.
  void remove(watch_id id);
  void close() noexcept;

  void message(std::uint64_t stream, const std::string& body) override;
  void stream_ended(std::uint64_t stream, const error& why) override;

 private:
  struct one_watch {
    key_range of;
    watch_filter without{};
    std::shared_ptr<watcher> who;
    std::int64_t wire = 0;  // as the server knows it, on this stream
    bool late = false;      // requested when the stream existed already
  };

  std::string create(watch_id id, one_watch& which);
  void open_stream();
  void begin_again(time_point when);
  void restart(channel::credentials how);
  std::map<std::int64_t, watch_id>::iterator find(const watch_answer& answer);
  std::optional<error> take_cancel(watch_id id, const watch_answer& answer);
  void wake_pulse();
  static flow pulse(std::shared_ptr<watch_hub> self);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<channel> way_;

  std::mutex mutex_;
  // All below: guarded by mutex_. The channel is called under it: it makes no
  // callback from within its calls.
  std::map<watch_id, one_watch> watches_;
  watch_id next_ = 1;
  // A number is not used twice: the server remembers those of watches that it has cancelled itself.
  std::map<std::int64_t, watch_id> wires_;
  std::int64_t next_wire_ = 1;
  std::deque<std::int64_t> asked_;  // not answered yet, in order
  std::uint64_t stream_ = 0;        // 0: none
  bool pausing_ = false;            // before the next stream
  net::backoff backoff_;
  time_point began_{};
  spi::runtime::timer_id timer_ = 0;
  bool pulsing_ = false;
  spi::runtime::timer_id pulse_timer_ = 0;
  bool closed_ = false;
};

// Watches on the blockers of claims: one for all that wait behind the same key. It stays for a
// while after the last waiter: a claim that queues again often finds the same claim before it. That
// saves the look that a new watch needs; besides, etcd is up to 100 ms late with the events of a
// watch that was created while something was written.
//
// Thread-safe.
class blocker_watches : public std::enable_shared_from_this<blocker_watches> {
 public:
  struct interest {
    std::int64_t seen = 0;       // guarded by the mutex of the watches
    std::function<void()> look;  // called under no lock, on a reactor's thread
  };

  blocker_watches(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<watch_hub> hub)
      : reactor_(std::move(reactor)), hub_(std::move(hub)) {}

  // `what`: a key, or what keys begin with. `seen`: the revision at which it was in the way. `look`
  // is called when something happened to it since, and whenever that is unknown, until the interest
  // is destroyed; a call that has begun is completed.
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
