// All watches of a store, on one stream over a connection of their own: on the connection of the calls a
// burst of events would delay renewals (etcd#15402).
//
// A watch begins from now, never from a revision: one of the past is served by a loop that runs ten times
// a second. So whoever watches looks once when the watch is there, and nothing is missed. After a
// lost connection, and after a compaction, the same happens again.
#pragma once

#include "net/backoff.hpp"
#include "stores/etcd/channel.hpp"

#include <holdfast/spi/reactor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::etcd {

struct watch_news {
  bool created = false;            // it is there from now on: look
  std::optional<error> refused{};  // it never will be
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
  // A call that has begun goes on.
  void remove(watch_id id);
  void close() noexcept;

  void message(std::uint64_t stream, const std::string& body) override;
  void stream_ended(std::uint64_t stream, const error& why) override;

 private:
  struct one_watch {
    key_range of;
    watch_filter without{};
    std::shared_ptr<watcher> who;
  };

  void open_stream();
  void request(std::string body);
  void begin_again(time_point when);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<channel> way_;

  std::mutex mutex_;
  // All below: guarded by mutex_. The channel is called under it: it calls nobody back from within.
  std::map<watch_id, one_watch> watches_;
  watch_id next_ = 1;
  std::uint64_t stream_ = 0;  // 0: none
  bool pausing_ = false;      // before the next stream
  net::backoff backoff_;
  time_point began_{};
  spi::runtime::timer_id timer_ = 0;
  bool closed_ = false;
};

}  // namespace holdfast::etcd
