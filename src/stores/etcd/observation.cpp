#include "stores/etcd/observation.hpp"

#include "stores/etcd/etcd_store.hpp"

#include <set>
#include <utility>

namespace holdfast::etcd {

namespace {

constexpr duration look_time = std::chrono::seconds(10);
constexpr duration pause_after_failure = std::chrono::seconds(1);

key_range range_to_watch(const server_options& options, const spi::resource_id& resource) {
  return keys_with(resource.name.empty() ? space_prefix(options, resource.space)
                                         : prefix_of(options, resource));
}

}  // namespace

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
      sink_(std::move(sink)) {}

void observation::start() {
  watch_ =
      watches_->add(range_, watch_filter::none, [weak = weak_from_this()](const watch_news& news) {
        if (const auto self = weak.lock()) self->take(news);
      });
}

void observation::end() {
  if (reactor_->forked()) return;
  watches_->remove(watch_);
  callbacks_.end();
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
  } else if (!self->callbacks_.ended()) {
    self->reactor_->at(self->reactor_->now() + pause_after_failure,
                       [weak = std::weak_ptr(self), number] {
                         const auto alive = weak.lock();
                         if (alive && !alive->callbacks_.ended()) look(alive, number);
                       });
  }
}

// Whoever finds nobody at work does all that is there. Until the look has come, events wait for it.
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
  // What one transaction did is one change.
  for (std::size_t i = 0; i < what.events.size();) {
    const std::int64_t revision = what.events[i].kv.modified;
    std::set<std::string> changed;
    for (; i < what.events.size() && what.events[i].kv.modified == revision; ++i) {
      watch_answer::event& each = what.events[i];
      const auto name = revision > revision_ ? name_of(each.kv.key) : std::nullopt;
      if (!name) continue;  // seen by the look already, or nobody's
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
  using spi::event_kind;
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
  for (const auto& [id, who] : before) {
    if (now.contains(id)) continue;
    tell(!who.holds    ? event_kind::withdrawn
         : who.revoked ? event_kind::forced
                       : event_kind::released,
         name, who);
  }
  for (const auto& [id, who] : now) {
    const auto old = before.find(id);
    if (who.holds && (old == before.end() || !old->second.holds)) {
      tell(event_kind::granted, name, who);
    } else if (!who.holds && old == before.end()) {
      tell(event_kind::queued, name, who);
    }
  }
  if (now.empty()) people_.erase(name);
}

void observation::tell(spi::event_kind kind, const std::string& name, const person& who) {
  spi::store_event event;
  event.kind = kind;
  event.name = name;
  event.claim = who.claim;
  event.mode = who.mode;
  event.payload = who.payload;
  if (kind != spi::event_kind::queued && kind != spi::event_kind::withdrawn) {
    event.fence = who.fence;
  }
  callbacks_.run([&] { sink_(event); });
}

result<std::unique_ptr<spi::subscription>> etcd_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (closed_) return failure(errc::cancelled, "closed");
  auto made = std::make_shared<observation>(net_.reactor, way_, watches_, options_, resource,
                                            std::move(sink));
  made->start();
  return std::make_unique<stores::observing<observation>>(std::move(made));
}

}  // namespace holdfast::etcd
