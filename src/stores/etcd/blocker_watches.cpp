#include "stores/etcd/blocker_watches.hpp"

#include <algorithm>

namespace holdfast::etcd {

namespace {

constexpr duration spare_time =
    std::chrono::seconds(1);  // a watch that nobody uses stays one to two of these

}  // namespace

std::shared_ptr<blocker_watches::interest> blocker_watches::add(const std::string& what,
                                                                watch_filter without,
                                                                std::int64_t seen,
                                                                std::function<void()> look) {
  auto made = std::make_shared<interest>(interest{seen, std::move(look)});
  const name which(what, without);
  bool late = false;
  {
    const std::scoped_lock lock(mutex_);
    if (closed_) return made;
    const auto [found, fresh] = watches_.try_emplace(which);
    one_watch& watch = found->second;
    watch.used = true;
    watch.interests.push_back(made);
    late = watch.latest > seen;
    if (fresh) {
      watch.id = hub_->add(keys_with(what), without,
                           [weak = weak_from_this(), which](const watch_news& news) {
                             if (const auto self = weak.lock()) self->tell(which, news);
                           });
      wake_tidying();
    }
  }
  if (late) made->look();
  return made;
}

void blocker_watches::tell(const name& which, const watch_news& news) {
  if (news.refused) return;
  std::vector<std::shared_ptr<interest>> those;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = watches_.find(which);
    if (found == watches_.end()) return;
    one_watch& watch = found->second;
    // What happened before it was there is not known, and perhaps revisions have begun again: any event counts.
    if (news.created) watch.latest = 0;
    std::int64_t latest = 0;
    for (const auto& each : news.events) latest = std::max(latest, each.kv.modified);
    watch.latest = std::max(watch.latest, latest);
    std::erase_if(watch.interests, [&](const std::weak_ptr<interest>& each) {
      auto alive = each.lock();
      if (alive == nullptr) return true;
      if (news.created) alive->seen = 0;
      if (news.created || latest > alive->seen) those.push_back(std::move(alive));
      return false;
    });
  }
  for (const auto& each : those) each->look();
}

// Called with the mutex held.
void blocker_watches::wake_tidying() {
  if (closed_ || std::exchange(tidying_, true)) return;
  timer_ = reactor_->at(reactor_->now() + spare_time, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tidy();
  });
}

void blocker_watches::tidy() {
  const std::scoped_lock lock(mutex_);
  tidying_ = false;
  if (closed_) return;
  for (auto each = watches_.begin(); each != watches_.end();) {
    one_watch& watch = each->second;
    std::erase_if(watch.interests, [](const auto& one) { return one.expired(); });
    if (std::exchange(watch.used, false) || !watch.interests.empty()) {
      ++each;
      continue;
    }
    hub_->remove(watch.id);
    each = watches_.erase(each);
  }
  if (!watches_.empty()) wake_tidying();
}

void blocker_watches::close() noexcept {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  watches_.clear();
  reactor_->cancel(timer_);
}

}  // namespace holdfast::etcd
