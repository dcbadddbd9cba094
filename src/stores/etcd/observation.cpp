// Watches one name, or a whole namespace, and reports what happened there. It looks once when its
// watch exists, and then follows the events, in order: short-lived claims are seen too, unless the
// connection was lost meanwhile.
#include "stores/etcd/channel.hpp"
#include "stores/etcd/etcd_store.hpp"
#include "stores/etcd/options.hpp"
#include "stores/etcd/watch_hub.hpp"
#include "stores/queued/observed.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::etcd {

namespace {

constexpr duration look_time = std::chrono::seconds(10);
constexpr duration pause_after_failure = std::chrono::seconds(1);

key_range range_to_watch(const server_options& options, const spi::resource_id& resource) {
  return keys_with(resource.name.empty() ? space_prefix(options, resource.space)
                                         : prefix_of(options, resource));
}

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
  using people = stores::observed_claims;
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

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<channel> way_;
  const std::shared_ptr<watch_hub> watches_;
  const std::shared_ptr<const server_options> options_;
  const spi::resource_id resource_;
  const key_range range_;
  stores::observer observer_;
  watch_hub::watch_id watch_ = 0;  // set by start()

  // Used only by the working thread.
  std::map<std::string, keys> keys_;      // by name
  std::map<std::string, people> people_;  // as last reported
  std::int64_t revision_ = 0;             // of the last look; 0: none yet

  std::mutex mutex_;
  // All below: guarded by mutex_.
  std::deque<step> steps_;
  bool working_ = false;
  bool looking_ = false;
  std::uint64_t looks_ = 0;  // the last one counts: it belongs to the current stream
};

observation::observation(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<channel> way,
                         std::shared_ptr<watch_hub> watches,
                         std::shared_ptr<const server_options> options, spi::resource_id resource,
                         spi::function<void(const spi::store_event&)> sink)
    : reactor_(std::move(reactor)),
      way_(std::move(way)),
      watches_(std::move(watches)),
      options_(std::move(options)),
      resource_(std::move(resource)),
      range_(range_to_watch(*options_, resource_)),
      observer_(std::move(sink)) {}

void observation::start() {
  watch_ =
      watches_->add(range_, watch_filter::none, [weak = weak_from_this()](const watch_news& news) {
        if (const auto self = weak.lock()) self->take(news);
      });
}

void observation::end() {
  if (reactor_->forked()) return;
  watches_->remove(watch_);
  observer_.callbacks.end();
}

void observation::take(const watch_news& news) {
  std::uint64_t number = 0;
  if (news.created) {
    const std::scoped_lock lock(mutex_);
    looking_ = true;
    number = ++looks_;
  }
  if (news.created) look(shared_from_this(), number);
  if (!news.events.empty()) add({std::nullopt, 0, news.events});
}

flow observation::look(std::shared_ptr<observation> self, std::uint64_t number) {
  const time_point deadline = self->reactor_->now() + look_time;
  call reads = range_call(self->range_);
  const result<reply> answer =
      co_await ask_one(self->way_, reads, "read", self->range_.key, deadline);
  const auto seen =
      answer ? read_range(answer->body) : result<range_answer>(tl::unexpected(answer.error()));
  if (seen) {
    self->add({*seen, number, {}});
  } else if (!self->observer_.callbacks.ended()) {
    self->reactor_->at(self->reactor_->now() + pause_after_failure,
                       [weak = std::weak_ptr(self), number] {
                         const auto alive = weak.lock();
                         if (alive && !alive->observer_.callbacks.ended()) look(alive, number);
                       });
  }
}

// A thread that finds nobody at work does all queued steps. Events wait until the look has come.
void observation::add(step what) {
  std::unique_lock lock(mutex_);
  if (what.look) {
    if (what.number != looks_) return;  // another one is on its way
    looking_ = false;
    steps_.push_front(std::move(what));
  } else {
    steps_.push_back(std::move(what));
  }
  if (looking_ || std::exchange(working_, true)) return;
  while (!steps_.empty() && !looking_) {
    step next = std::move(steps_.front());
    steps_.pop_front();
    lock.unlock();
    work(next);
    lock.lock();
  }
  working_ = false;
}

std::optional<std::string> observation::name_of(const std::string& key) const {
  if (!resource_.name.empty()) return resource_.name;
  const std::string root = space_prefix(*options_, resource_.space);
  if (!key.starts_with(root)) return std::nullopt;
  const auto found = name_in(std::string_view(key).substr(root.size()), options_->layout);
  return found ? std::optional(found->name) : std::nullopt;
}

void observation::work(step& what) {
  if (what.look) {
    std::set<std::string> changed;
    for (const auto& [name, old] : people_) changed.insert(name);
    keys_.clear();
    revision_ = what.look->header.revision;
    for (key_value& each : what.look->kvs) {
      const auto name = name_of(each.key);
      if (!name) continue;
      changed.insert(*name);
      std::string key = each.key;
      keys_[*name][std::move(key)] = std::move(each);
    }
    for (const std::string& each : changed) tell_changes(each);
    return;
  }
  // The effects of one transaction are one change.
  for (std::size_t i = 0; i < what.events.size();) {
    const std::int64_t revision = what.events[i].kv.modified;
    std::set<std::string> changed;
    for (; i < what.events.size() && what.events[i].kv.modified == revision; ++i) {
      watch_answer::event& each = what.events[i];
      const auto name = revision > revision_ ? name_of(each.kv.key) : std::nullopt;
      if (!name) continue;  // already seen by the look, or not a name
      changed.insert(*name);
      if (each.deleted) {
        keys_[*name].erase(each.kv.key);
      } else {
        keys_[*name][each.kv.key] = each.kv;
      }
    }
    for (const std::string& each : changed) tell_changes(each);
  }
}

void observation::tell_changes(const std::string& name) {
  std::vector<key_value> kvs;
  for (const auto& [key, kv] : keys_[name]) kvs.push_back(kv);
  if (kvs.empty()) keys_.erase(name);
  const line order(prefix_of(*options_, {resource_.space, name}), kvs);
  people now;
  for (std::size_t i = 0; i < order.claims().size(); ++i) {
    const standing& each = order.claims()[i];
    now[{each.created, each.claim}] = {each.claim,
                                       each.mode,
                                       order.holds(i),
                                       each.revoked,
                                       stores::fence_of(each.fenced),
                                       stores::payload_in(each.value)};
  }
  const people before = std::exchange(people_[name], now);
  observer_.tell_changes(name, before, now);
  if (now.empty()) people_.erase(name);
}

}  // namespace

result<std::unique_ptr<spi::subscription>> etcd_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (closed_) return failure(errc::cancelled, "closed");
  auto made = std::make_shared<observation>(net_.reactor, way_, watches_, options_, resource,
                                            std::move(sink));
  made->start();
  return std::make_unique<stores::observing<observation>>(std::move(made));
}

}  // namespace holdfast::etcd
