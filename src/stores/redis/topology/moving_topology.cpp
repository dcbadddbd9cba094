#include "stores/redis/topology/moving_topology.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

// Listens at one node; the migrating_subscription may end, or move elsewhere, first.
class migrating_subscription::relay final : public channel_listener {
 public:
  relay(std::weak_ptr<migrating_subscription> of, std::uint64_t token)
      : of_(std::move(of)), token_(token) {}

  void confirmed() override { pass({event::kind::confirmed, {}, {}}); }
  void message(std::string_view payload) override {
    pass({event::kind::message, std::string(payload), {}});
  }
  void interrupted(const error& why) override { pass({event::kind::interrupted, {}, why}); }

 private:
  void pass(event what) {
    if (const auto owner = of_.lock()) owner->take(token_, std::move(what));
  }

  const std::weak_ptr<migrating_subscription> of_;
  const std::uint64_t token_;
};

migrating_subscription::migrating_subscription(channel_id channel,
                                               std::weak_ptr<channel_listener> listener,
                                               std::function<void()> troubled)
    : listener_(std::move(listener)),
      troubled_(std::move(troubled)),
      channel_(std::move(channel)) {}

migrating_subscription::~migrating_subscription() = default;

void migrating_subscription::go(const std::shared_ptr<node>& to, std::uint64_t version) {
  mutex_lock lock(mutex_);
  if (ended_ || version <= version_) return;
  version_ = version;
  node_ = to;
  listen_there(lock);
}

// Called with the mutex held, which it releases.
void migrating_subscription::listen_there(mutex_lock& lock) {
  const std::uint64_t token = ++token_;
  if (token > 1) {
    events_.push_back(
        {event::kind::interrupted, {}, {errc::unavailable, "the partition moved to another node"}});
  }
  const auto mine = std::make_shared<relay>(weak_from_this(), token);
  relay_ = mine;
  std::unique_ptr<spi::subscription> left = std::move(subscription_);
  const std::shared_ptr<node> to = node_;
  const channel_id channel = channel_;
  lock.unlock();
  left.reset();
  auto made = to->listen(channel, mine);
  lock.lock();
  if (token == token_) {
    if (made) {
      subscription_ = *std::move(made);
    } else {
      events_.push_back({event::kind::interrupted, {}, made.error()});
    }
  }
  deliver(lock);
  lock.unlock();
}

void migrating_subscription::take(std::uint64_t token, event what) {
  mutex_lock lock(mutex_);
  if (ended_ || token != token_) return;
  const bool trouble = what.what == event::kind::interrupted;
  if (trouble && what.why == errc::unsupported && channel_.kind == channel_id::flavour::sharded) {
    channel_.kind = channel_id::flavour::classic;
    return listen_there(lock);
  }
  if (what.what == event::kind::message && events_.size() >= event_limit) return;
  events_.push_back(std::move(what));
  deliver(lock);
  lock.unlock();
  if (trouble) troubled_();
}

// Called with the mutex held, which is held again on return. A thread that finds another one
// delivering leaves the events to it.
void migrating_subscription::deliver(mutex_lock& lock) {
  if (std::exchange(delivering_, true)) return;
  while (!events_.empty() && !ended_) {
    const event next = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    if (const auto whom = listener_.lock()) {
      if (next.what == event::kind::confirmed) whom->confirmed();
      if (next.what == event::kind::message) whom->message(next.payload);
      if (next.what == event::kind::interrupted) whom->interrupted(next.why);
    }
    lock.lock();
  }
  delivering_ = false;
}

void migrating_subscription::end() noexcept {
  std::unique_ptr<spi::subscription> left;
  std::shared_ptr<node> from;
  const std::lock_guard lock(mutex_);
  ended_ = true;
  ++token_;
  left = std::move(subscription_);
  from = std::move(node_);
}

// Homes and listeners. Routing of commands is in routed_commands.cpp.

// One listener's subscription; the topology may end first.
class moving_topology::handle final : public spi::subscription {
 public:
  handle(std::weak_ptr<moving_topology> of, std::uint64_t id) : of_(std::move(of)), id_(id) {}
  ~handle() override {
    if (const auto owner = of_.lock()) owner->forget(id_);
  }
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;

 private:
  const std::weak_ptr<moving_topology> of_;
  const std::uint64_t id_;
};

moving_topology::moving_topology(net::network net, server_options common, channel_id::flavour how,
                                 std::size_t partitions)
    : net_(std::move(net)), common_(std::move(common)), flavour_(how), partitions_(partitions) {}

std::shared_ptr<node> moving_topology::make_node(const net::target& where) {
  server_options options = common_;
  options.where = where;
  const auto weak = weak_from_this();
  const std::string name = where.text();
  connection::events tell;
  tell.opened = [weak, name](const server_info&) {
    if (const auto self = weak.lock()) self->node_opened(name);
  };
  tell.ended = [weak, name](const error&) {
    if (const auto self = weak.lock()) self->node_ended(name);
  };
  return std::make_shared<node>(net_, options, std::move(tell));
}

result<std::unique_ptr<spi::subscription>> moving_topology::listen(
    partition which, const std::string& channel, std::weak_ptr<channel_listener> listener) {
  if (guard_.forked()) return failure(errc::cancelled, "forked from the client's process");
  const auto made = std::make_shared<migrating_subscription>(
      channel_id{flavour_, channel}, std::move(listener), [weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
          self->look_around();
        }
      });
  mutex_lock lock(mutex_);
  if (closed_) return failure(errc::cancelled, "closed");
  const std::uint64_t id = ++numbers_;
  listeners_[id] = {which, made};
  const std::shared_ptr<node> home = partitions_[which].home;
  const std::uint64_t version = partitions_[which].version;
  lock.unlock();
  if (home != nullptr) {
    made->go(home, version);
  } else {
    look_around();
  }
  return std::make_unique<handle>(weak_from_this(), id);
}

void moving_topology::forget(std::uint64_t listener) noexcept {
  if (guard_.forked()) return;
  std::shared_ptr<migrating_subscription> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = listeners_.find(listener);
    if (found == listeners_.end()) return;
    gone = std::move(found->second.who);
    listeners_.erase(found);
  }
  gone->end();
}

void moving_topology::settle(partition which, const std::shared_ptr<node>& where) {
  homes all(partitions_.size());
  all[which] = where;
  settle(all);
}

void moving_topology::settle(const homes& where) {
  struct move {
    std::shared_ptr<migrating_subscription> who;
    std::shared_ptr<node> to;
    std::uint64_t version;
  };
  std::vector<move> moves;
  std::vector<partition> changed;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    const time_point now = net_.reactor->now();
    for (std::size_t i = 0; i < partitions_.size(); ++i) {
      partition_state& mine = partitions_[i];
      if (where[i] == nullptr || where[i] == mine.home) continue;
      mine.home = where[i];
      ++mine.version;
      mine.again_at = now;
      changed.push_back(static_cast<partition>(i));
    }
    if (changed.empty()) return;
    for (const auto& [id, each] : listeners_) {
      if (!std::ranges::binary_search(changed, each.where)) continue;
      const partition_state& mine = partitions_[each.where];
      moves.push_back({each.who, mine.home, mine.version});
    }
  }
  for (const move& each : moves) each.who->go(each.to, each.version);
  for (const partition each : changed) drain(each);
}

moving_topology::homes moving_topology::current() const {
  const std::lock_guard lock(mutex_);
  homes all(partitions_.size());
  for (std::size_t i = 0; i < partitions_.size(); ++i) all[i] = partitions_[i].home;
  return all;
}

std::string moving_topology::where(partition which) const {
  std::shared_ptr<node> home;
  {
    const std::lock_guard lock(mutex_);
    home = partitions_[which].home;
  }
  return home == nullptr ? where() : where() + " (" + home->options().where.text() + ")";
}

std::vector<std::shared_ptr<node>> moving_topology::nodes() {
  std::vector<std::shared_ptr<node>> all;
  for (const auto& each : current()) {
    if (each != nullptr && std::ranges::find(all, each) == all.end()) all.push_back(each);
  }
  return all;
}

bool moving_topology::in_demand() const {
  const std::lock_guard lock(mutex_);
  return !closed_ && (stalled_ > 0 || !listeners_.empty());
}

void moving_topology::set_trouble(std::string text) {
  const std::lock_guard lock(mutex_);
  trouble_ = std::move(text);
}

// Any command is sent to a home.
void moving_topology::ready(const net::patience& until, spi::completion<void> done) {
  send(0, command{"PING"}, until, [done = std::move(done)](const result<reply>& answer) mutable {
    if (!answer) return done(tl::unexpected(answer.error()));
    done({});
  });
}

void moving_topology::close() noexcept {
  if (guard_.forked()) return;
  std::map<std::uint64_t, listening> listeners;
  std::vector<routed_command> stalled;
  homes left(partitions_.size());
  mutex_lock lock(mutex_);
  if (std::exchange(closed_, true)) return;
  listeners.swap(listeners_);
  for (std::size_t i = 0; i < partitions_.size(); ++i) {
    std::ranges::move(partitions_[i].stalled, std::back_inserter(stalled));
    partitions_[i].stalled.clear();
    left[i] = std::move(partitions_[i].home);
  }
  stalled_ = 0;
  const auto timer = timer_;
  lock.unlock();
  net_.reactor->cancel(timer);
  for (const auto& [id, each] : listeners) each.who->end();
  end();
  for (const auto& each : left) {
    if (each != nullptr) each->close();
  }
  for (routed_command& each : stalled) each.done(failure(errc::unavailable, "closed"));
}

}  // namespace holdfast::redis
