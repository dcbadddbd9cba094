#include "stores/redis/foreign/release_channels.hpp"

#include <utility>

namespace holdfast::redis {

// The listener of one channel. It keeps nothing alive: the subscription holds it weakly.
class release_channels::listener final : public channel_listener {
 public:
  listener(std::weak_ptr<release_channels> all, std::string which)
      : all_(std::move(all)), which_(std::move(which)) {}

  void confirmed() override {
    if (const auto all = all_.lock()) all->confirmed(which_);
  }
  void message(std::string_view) override {
    if (const auto all = all_.lock()) all->published(which_);
  }
  void interrupted(const error& why) override {
    if (const auto all = all_.lock()) all->interrupted(which_, why);
  }

 private:
  const std::weak_ptr<release_channels> all_;
  const std::string which_;
};

void release_channels::enter(const spi::claim& claim, const std::string& channel,
                             std::shared_ptr<spi::wakeup> wakeup) {
  const std::lock_guard lock(mutex_);
  if (!closed_) channels_[channel].waiters[claim.id].wakeup = std::move(wakeup);
}

void release_channels::listen(const spi::claim& claim, partition where_it_is,
                              const std::string& which, time_point deadline,
                              spi::completion<spi::armed> done) {
  std::unique_lock lock(mutex_);
  const auto where = channels_.find(which);
  if (where == channels_.end() || !where->second.waiters.contains(claim.id)) {
    lock.unlock();
    return done(failure(errc::cancelled, "nobody waits any more"));
  }
  auto& who = where->second.waiters.at(claim.id);
  if (where->second.confirmed) {
    const bool before = std::exchange(who.listens, true);
    lock.unlock();
    return done(before ? spi::armed::no_gap : spi::armed::recheck);
  }
  who.done = std::move(done);
  who.timer = runtime_->at(deadline, [weak = weak_from_this(), which, id = claim.id] {
    if (const auto self = weak.lock()) self->late(which, id);
  });
  if (where->second.listener) return;
  const std::shared_ptr<channel_listener> begins =
      std::make_shared<listener>(weak_from_this(), which);
  where->second.listener = begins;
  lock.unlock();
  auto made = topology_->listen(where_it_is, which, begins);
  std::unique_ptr<spi::subscription> unneeded;
  {
    const std::lock_guard again(mutex_);
    const auto found = channels_.find(which);
    const bool wanted = found != channels_.end() && found->second.listener == begins;
    if (made) (wanted ? found->second.subscription : unneeded) = std::move(*made);
    if (!made && wanted) found->second.listener.reset();  // the next one to listen tries again
  }
  if (!made) interrupted(which, made.error());
}

void release_channels::forget(const spi::claim& claim, const std::string& channel) noexcept {
  std::unique_ptr<spi::subscription> unneeded;
  spi::completion<spi::armed> done;
  {
    const std::lock_guard lock(mutex_);
    const auto where = channels_.find(channel);
    if (where == channels_.end()) return;
    const auto who = where->second.waiters.find(claim.id);
    if (who == where->second.waiters.end()) return;
    runtime_->cancel(who->second.timer);
    done = std::move(who->second.done);
    where->second.waiters.erase(who);
    if (where->second.waiters.empty()) {
      unneeded = std::move(where->second.subscription);
      channels_.erase(where);
    }
  }
  if (done) done(failure(errc::cancelled, "nobody waits any more"));
}

void release_channels::confirmed(const std::string& which) {
  std::vector<spi::completion<spi::armed>> waiting;
  std::vector<std::shared_ptr<spi::wakeup>> others;
  {
    const std::lock_guard lock(mutex_);
    const auto where = channels_.find(which);
    if (where == channels_.end()) return;
    where->second.confirmed = true;
    for (auto& [id, who] : where->second.waiters) {
      runtime_->cancel(who.timer);
      who.listens = true;
      if (who.done) {
        waiting.push_back(std::exchange(who.done, nullptr));
      } else {
        others.push_back(who.wakeup);  // what was published during the interruption is unknown
      }
    }
  }
  for (auto& each : waiting) each(spi::armed::recheck);
  for (const auto& each : others) each->notify(std::nullopt);
}

void release_channels::published(const std::string& which) {
  std::vector<std::shared_ptr<spi::wakeup>> all;
  {
    const std::lock_guard lock(mutex_);
    const auto where = channels_.find(which);
    if (where == channels_.end()) return;
    for (const auto& [id, who] : where->second.waiters) all.push_back(who.wakeup);
  }
  for (const auto& each : all) each->notify(std::nullopt);
}

// If the channel is not allowed, nothing will be received; else the subscription comes back by
// itself, and until then waiters ask again as they would without it.
void release_channels::interrupted(const std::string& which, const error& why) {
  std::vector<spi::completion<spi::armed>> waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto where = channels_.find(which);
    if (where == channels_.end()) return;
    where->second.confirmed = false;
    for (auto& [id, who] : where->second.waiters) {
      who.listens = false;
      if (!who.done) continue;
      runtime_->cancel(who.timer);
      waiting.push_back(std::exchange(who.done, nullptr));
    }
  }
  for (auto& each : waiting) each(tl::unexpected(why));
}

void release_channels::late(const std::string& which, const spi::claim_id& id) {
  spi::completion<spi::armed> done;
  {
    const std::lock_guard lock(mutex_);
    const auto where = channels_.find(which);
    if (where == channels_.end()) return;
    const auto who = where->second.waiters.find(id);
    if (who != where->second.waiters.end()) done = std::exchange(who->second.done, nullptr);
  }
  if (done) done(failure(errc::unavailable, "redis: no confirmation of a subscription in time"));
}

void release_channels::close() noexcept {
  std::map<std::string, heard> all;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    all = std::exchange(channels_, {});
  }
  for (auto& [which, where] : all) {
    for (auto& [id, who] : where.waiters) {
      runtime_->cancel(who.timer);
      if (who.done) who.done(failure(errc::cancelled, "redis: closed"));
    }
  }
}

}  // namespace holdfast::redis
