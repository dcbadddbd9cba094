#include "stores/sql/common/subscribers.hpp"

#include "stores/sql/common/names.hpp"

#include <utility>

namespace holdfast::sql {

struct subscribers::listener {
  std::string key;
  spi::function<void(const spi::store_event&)> sink;
  spi::latch_watch on_change;

  // Held across the call, so that no call follows the end; recursive, since a
  // listener may end itself.
  std::recursive_mutex mutex;
  bool ended = false;  // guarded by mutex

  void tell(const spi::store_event* event) {
    const std::lock_guard lock(mutex);
    if (ended) return;
    if (event != nullptr) return sink(*event);
    on_change();
  }
  void end() {
    const std::lock_guard lock(mutex);
    ended = true;
  }
};

class subscribers::subscription : public spi::subscription {
 public:
  subscription(std::weak_ptr<subscribers> of, std::shared_ptr<listener> who)
      : subscribers_(std::move(of)), listener_(std::move(who)) {}
  ~subscription() override {
    listener_->end();
    if (const auto of = subscribers_.lock()) of->leave(listener_);
  }
  subscription(const subscription&) = delete;
  subscription& operator=(const subscription&) = delete;

 private:
  const std::weak_ptr<subscribers> subscribers_;
  const std::shared_ptr<listener> listener_;
};

std::unique_ptr<spi::subscription> subscribers::observe(
    std::string key, spi::function<void(const spi::store_event&)> sink) {
  auto who = std::make_shared<listener>();
  who->key = std::move(key);
  who->sink = std::move(sink);
  {
    const std::lock_guard lock(mutex_);
    observers_.emplace(who->key, who);
  }
  return std::make_unique<subscription>(weak_from_this(), std::move(who));
}

std::unique_ptr<spi::subscription> subscribers::watch_latch(std::string key,
                                                            spi::latch_watch on_change) {
  auto who = std::make_shared<listener>();
  who->key = std::move(key);
  who->on_change = std::move(on_change);
  {
    const std::lock_guard lock(mutex_);
    watchers_.emplace(who->key, who);
  }
  return std::make_unique<subscription>(weak_from_this(), std::move(who));
}

void subscribers::leave(const std::shared_ptr<listener>& who) {
  interests over;
  {
    const std::lock_guard lock(mutex_);
    table& in = who->sink ? observers_ : watchers_;
    auto [from, to] = in.equal_range(who->key);
    for (; from != to; ++from) {
      if (from->second != who) continue;
      in.erase(from);
      break;
    }
    if (!closed_ && !in.contains(who->key)) {
      (who->sink ? over.events : over.latches).push_back(who->key);
    }
  }
  if (!over.empty()) ended_(over);
}

void subscribers::collect(const table& from, const std::string& key,
                          std::vector<std::shared_ptr<listener>>& into) {
  const auto [first, last] = from.equal_range(key);
  for (auto at = first; at != last; ++at) into.push_back(at->second);
}

void subscribers::tell(const std::string& key, const spi::store_event& event) {
  std::vector<std::shared_ptr<listener>> found;
  {
    const std::lock_guard lock(mutex_);
    collect(observers_, key, found);
    collect(observers_, space_of(key), found);
  }
  for (const auto& who : found) who->tell(&event);
}

void subscribers::tell_latch(const std::string& key) {
  std::vector<std::shared_ptr<listener>> found;
  {
    const std::lock_guard lock(mutex_);
    collect(watchers_, key, found);
  }
  for (const auto& who : found) who->tell(nullptr);
}

void subscribers::tell_all_latches() {
  std::vector<std::shared_ptr<listener>> found;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, who] : watchers_) found.push_back(who);
  }
  for (const auto& who : found) who->tell(nullptr);
}

subscribers::interests subscribers::all() const {
  interests known;
  const std::lock_guard lock(mutex_);
  for (auto at = observers_.begin(); at != observers_.end();
       at = observers_.upper_bound(at->first)) {
    known.events.push_back(at->first);
  }
  for (auto at = watchers_.begin(); at != watchers_.end(); at = watchers_.upper_bound(at->first)) {
    known.latches.push_back(at->first);
  }
  return known;
}

bool subscribers::empty() const {
  const std::lock_guard lock(mutex_);
  return observers_.empty() && watchers_.empty();
}

bool subscribers::listens(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return observers_.contains(key) || watchers_.contains(key);
}

void subscribers::close() noexcept {
  table observers;
  table watchers;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    observers.swap(observers_);
    watchers.swap(watchers_);
  }
  for (const auto& [key, who] : observers) who->end();
  for (const auto& [key, who] : watchers) who->end();
}

}  // namespace holdfast::sql
