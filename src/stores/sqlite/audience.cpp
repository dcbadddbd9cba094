#include "stores/sqlite/audience.hpp"

#include "stores/sqlite/rows.hpp"

#include <utility>

namespace holdfast::sqlite {

struct audience::listener {
  std::string key;
  spi::function<void(const spi::store_event&)> sink;
  spi::latch_watch on_change;

  // Held across the call, which "no call after the end" demands of whoever ends it; recursive, since
  // a listener may end itself.
  std::recursive_mutex mutex;
  bool ended = false;  // guarded by mutex

  void tell(const spi::store_event* event) {
    const std::lock_guard lock(mutex);
    if (ended) return;
    if (event != nullptr && sink) sink(*event);
    if (event == nullptr && on_change) on_change();
  }
  void end() {
    const std::lock_guard lock(mutex);
    ended = true;
  }
};

class audience::seat : public spi::subscription {
 public:
  seat(std::weak_ptr<audience> of, std::shared_ptr<listener> who)
      : audience_(std::move(of)), listener_(std::move(who)) {}
  ~seat() override {
    listener_->end();
    if (const auto of = audience_.lock()) of->leave(listener_);
  }
  seat(const seat&) = delete;
  seat& operator=(const seat&) = delete;

 private:
  const std::weak_ptr<audience> audience_;
  const std::shared_ptr<listener> listener_;
};

std::unique_ptr<spi::subscription> audience::enter(std::shared_ptr<listener> who) {
  {
    const std::lock_guard lock(mutex_);
    by_key_.emplace(who->key, who);
  }
  return std::make_unique<seat>(weak_from_this(), std::move(who));
}

std::unique_ptr<spi::subscription> audience::observe(
    std::string key, spi::function<void(const spi::store_event&)> sink) {
  auto who = std::make_shared<listener>();
  who->key = std::move(key);
  who->sink = std::move(sink);
  return enter(std::move(who));
}

std::unique_ptr<spi::subscription> audience::watch_latch(std::string key,
                                                         spi::latch_watch on_change) {
  auto who = std::make_shared<listener>();
  who->key = std::move(key);
  who->on_change = std::move(on_change);
  return enter(std::move(who));
}

void audience::leave(const std::shared_ptr<listener>& who) {
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    auto [from, to] = by_key_.equal_range(who->key);
    for (; from != to; ++from) {
      if (from->second != who) continue;
      by_key_.erase(from);
      break;
    }
    last = !closed_ && !by_key_.contains(who->key);
  }
  if (last) ended_(who->key);
}

std::vector<std::shared_ptr<audience::listener>> audience::listeners(const std::string& key,
                                                                     bool latches) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<listener>> found;
  const std::string space = resource_of(key).space + "/";
  for (const std::string& each : {key, space}) {
    const auto [from, to] = by_key_.equal_range(each);
    for (auto at = from; at != to; ++at) {
      if (static_cast<bool>(at->second->on_change) == latches) found.push_back(at->second);
    }
  }
  return found;
}

void audience::tell(const std::string& key, const spi::store_event& event) {
  for (const auto& who : listeners(key, false)) who->tell(&event);
}

void audience::tell_latch(const std::string& key) {
  for (const auto& who : listeners(key, true)) who->tell(nullptr);
}

void audience::tell_all_latches() {
  std::vector<std::shared_ptr<listener>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, who] : by_key_) {
      if (who->on_change) all.push_back(who);
    }
  }
  for (const auto& who : all) who->tell(nullptr);
}

bool audience::empty() const {
  const std::lock_guard lock(mutex_);
  return by_key_.empty();
}

bool audience::listens(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return by_key_.contains(key);
}

void audience::close() noexcept {
  std::multimap<std::string, std::shared_ptr<listener>> all;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    all.swap(by_key_);
  }
  for (const auto& [key, who] : all) who->end();
}

}  // namespace holdfast::sqlite
