// Watches one name, or all of a namespace, and tells what happened there. It looks once when its watch is
// there, and then follows the events, in order: what came and went is seen too, unless the connection
// was lost meanwhile.
#pragma once

#include "stores/callback_guard.hpp"
#include "stores/etcd/channel.hpp"
#include "stores/etcd/options.hpp"
#include "stores/etcd/watch_hub.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::etcd {

// Thread-safe. The sink is called under no lock, one event after the other.
class observation final : public std::enable_shared_from_this<observation> {
 public:
  observation(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<channel> way,
              std::shared_ptr<watch_hub> watches, std::shared_ptr<const server_options> options,
              spi::resource_id resource, spi::function<void(const spi::store_event&)> sink);

  void start();
  // No event afterwards.
  void end();

 private:
  struct person {
    std::string claim;  // as people are shown it
    spi::mode mode{};
    bool holds = false;
    bool revoked = false;
    std::optional<fence_token> fence;
    std::string payload;
  };
  // By revision and claim: one that hands its key on has ended.
  using people = std::map<std::pair<std::int64_t, std::string>, person>;
  using keys = std::map<std::string, key_value>;

  // What is to be done, in order.
  struct step {
    std::optional<range_answer> look;
    std::uint64_t number = 0;  // of the look
    std::vector<watch_answer::event> events;
  };

  void take(const watch_news& news);
  static flow look(std::shared_ptr<observation> self, std::uint64_t number);
  void add(step what);
  void work(step& what);
  [[nodiscard]] std::optional<std::string> name_of(const std::string& key) const;
  void tell_changes(const std::string& name);
  void tell(spi::event_kind kind, const std::string& name, const person& who);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<channel> way_;
  const std::shared_ptr<watch_hub> watches_;
  const std::shared_ptr<const server_options> options_;
  const spi::resource_id resource_;
  const key_range range_;
  spi::function<void(const spi::store_event&)> sink_;  // only by callbacks_
  stores::callback_guard callbacks_;
  watch_hub::watch_id watch_ = 0;  // set by start()

  // Only by the thread that works.
  std::map<std::string, keys> keys_;      // by name
  std::map<std::string, people> people_;  // as last told
  std::int64_t revision_ = 0;             // of the last look; 0: none yet

  std::mutex mutex_;
  // All below: guarded by mutex_.
  std::deque<step> steps_;
  bool working_ = false;
  bool looking_ = false;
  std::uint64_t looks_ = 0;  // the last one counts: it is of the stream of now
};

}  // namespace holdfast::etcd
