
#include "stores/redis/switchboard.hpp"

#include "stores/redis/wire.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

// One partition's listener; the switchboard may end first.
class switchboard::line final : public channel_listener {
 public:
  line(std::weak_ptr<switchboard> of, partition which) : of_(std::move(of)), partition_(which) {}

  void confirmed() override {
    if (const auto owner = of_.lock()) owner->confirmed(partition_);
  }
  void message(std::string_view payload) override {
    if (const auto owner = of_.lock()) owner->message(partition_, payload);
  }
  void interrupted(const error& why) override {
    if (const auto owner = of_.lock()) owner->interrupted(partition_, why);
  }

 private:
  const std::weak_ptr<switchboard> of_;
  const partition partition_;
};

switchboard::switchboard(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers,
                         std::string process, pushes how)
    : runtime_(std::move(runtime)),
      topology_(std::move(servers)),
      process_(std::move(process)),
      pushes_(how) {}

switchboard::~switchboard() = default;

bool switchboard::connect(partition which, const spi::claim_id& id,
                          std::shared_ptr<spi::wakeup> wakeup) {
  std::shared_ptr<line> listener;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    wakeup = wakeups_[which].add(id, std::move(wakeup));  // the previous one ends under no lock
    state& mine = partitions_[which];
    if (mine.listener != nullptr) return mine.open;
    mine.listener = std::make_shared<line>(weak_from_this(), which);
    listener = mine.listener;
  }
  auto made = topology_->listen(which, process_channel(which, process_), listener);
  const std::lock_guard lock(mutex_);
  state& mine = partitions_[which];
  if (made) {
    mine.subscription = std::move(*made);
  } else {
    mine.refusal = made.error();
    mine.listener = nullptr;  // the next one subscribes again
  }
  return mine.open;
}

void switchboard::when_open(partition which, time_point deadline, spi::completion<void> done) {
  std::unique_lock lock(mutex_);
  state& mine = partitions_[which];
  result<void> answer;
  if (closed_) {
    answer = failure(errc::cancelled, "closed");
  } else if (mine.refusal && *mine.refusal == errc::denied) {
    answer = tl::unexpected(*mine.refusal);
  } else if (!mine.open) {
    const std::uint64_t number = next_number_++;
    const auto timer = runtime_->at(deadline, [weak = weak_from_this(), which, number] {
      if (const auto self = weak.lock()) self->expire(which, number);
    });
    mine.waiting.push_back({number, timer, std::move(done)});
    return;
  }
  lock.unlock();
  done(std::move(answer));
}

void switchboard::expire(partition which, std::uint64_t number) {
  std::unique_lock lock(mutex_);
  auto& those = partitions_[which].waiting;
  const auto found = std::ranges::find(those, number, &caller::number);
  if (found == those.end()) return;
  auto done = std::move(found->done);
  those.erase(found);
  const std::string why =
      partitions_[which].refusal ? partitions_[which].refusal->detail : "no subscription in time";
  lock.unlock();
  done(failure(errc::unavailable, topology_->where() + ", SUBSCRIBE: " + why));
}

void switchboard::finish(std::vector<caller> those, spi::runtime& runtime,
                         const result<void>& how) {
  for (caller& one : those) {
    runtime.cancel(one.timer);
    one.done(how);
  }
}

void switchboard::confirmed(partition which) {
  std::vector<caller> those;
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    state& mine = partitions_[which];
    if (closed_ || mine.open) return;
    mine.open = true;
    mine.refusal.reset();
    those = std::exchange(mine.waiting, {});
    again = std::exchange(mine.opened_before, true);
  }
  finish(std::move(those), *runtime_, {});
  // A grant may have been pushed while nobody listened. Not the first time: nobody
  // queued here before that.
  if (again) wakeups_[which].notify_all();
}

void switchboard::interrupted(partition which, const error& why) {
  std::vector<caller> those;
  {
    const std::lock_guard lock(mutex_);
    state& mine = partitions_[which];
    mine.open = false;
    mine.refusal = why;
    if (why == errc::denied) those = std::exchange(mine.waiting, {});
  }
  finish(std::move(those), *runtime_, tl::unexpected(why));
}

void switchboard::message(partition which, std::string_view payload) {
  for (const push& one : pushes_of(payload)) {
    const auto wakeup = wakeups_[which].find(one.claim);
    if (!wakeup) continue;
    switch (one.what) {
      case push::kind::granted:
        wakeup->notify(pushes_ == pushes::as_grants ? std::optional(one.grant) : std::nullopt);
        break;
      case push::kind::wanted:
        wakeup->wanted();
        break;
      case push::kind::gone:
        wakeup->gone(
            {errc::lost, one.forced ? "released by force" : "revoked: not renewed any more"});
        if (one.forced) claim_over(which, one.claim);
        break;
    }
  }
}

void switchboard::close() noexcept {
  std::array<state, partition_count> ended;  // under no lock
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    std::swap(ended, partitions_);
  }
  for (auto& each : wakeups_) each.clear();
  for (state& one : ended) {
    finish(std::move(one.waiting), *runtime_, failure(errc::cancelled, "closed"));
  }
}

}  // namespace holdfast::redis
