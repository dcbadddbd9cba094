// Homes and listeners. The way of a command is in moving_errands.cpp.
#include "stores/redis/topology/moving_topology.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

// One listener's place; the topology may end first.
class moving_topology::ticket final : public spi::subscription {
 public:
  ticket(std::weak_ptr<moving_topology> of, std::uint64_t id) : of_(std::move(of)), id_(id) {}
  ~ticket() override {
    if (const auto owner = of_.lock()) owner->forget(id_);
  }
  ticket(const ticket&) = delete;
  ticket& operator=(const ticket&) = delete;

 private:
  const std::weak_ptr<moving_topology> of_;
  const std::uint64_t id_;
};

moving_topology::moving_topology(net::network net, server_options common, channel_id::flavour how)
    : net_(std::move(net)), common_(std::move(common)), flavour_(how) {}

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
    lane which, const std::string& channel, std::weak_ptr<channel_listener> listener) {
  if (guard_.forked()) return failure(errc::cancelled, "forked from the client's process");
  const auto made = std::make_shared<roamer>(channel_id{flavour_, channel}, std::move(listener),
                                             [weak = weak_from_this()] {
                                               if (const auto self = weak.lock()) {
                                                 self->look_around();
                                               }
                                             });
  mutex_lock lock(mutex_);
  if (closed_) return failure(errc::cancelled, "closed");
  const std::uint64_t id = ++numbers_;
  listeners_[id] = {which, made};
  const std::shared_ptr<node> home = lanes_[which].home;
  const std::uint64_t version = lanes_[which].version;
  lock.unlock();
  if (home != nullptr) {
    made->go(home, version);
  } else {
    look_around();
  }
  return std::make_unique<ticket>(weak_from_this(), id);
}

void moving_topology::forget(std::uint64_t listener) noexcept {
  if (guard_.forked()) return;
  std::shared_ptr<roamer> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = listeners_.find(listener);
    if (found == listeners_.end()) return;
    gone = std::move(found->second.who);
    listeners_.erase(found);
  }
  gone->end();
}

void moving_topology::settle(lane which, const std::shared_ptr<node>& where) {
  homes all;
  all[which] = where;
  settle(all);
}

void moving_topology::settle(const homes& where) {
  struct move {
    std::shared_ptr<roamer> who;
    std::shared_ptr<node> to;
    std::uint64_t version;
  };
  std::vector<move> moves;
  std::vector<lane> changed;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    const time_point now = net_.reactor->now();
    for (std::size_t i = 0; i < lane_count; ++i) {
      lane_state& mine = lanes_[i];
      if (where[i] == nullptr || where[i] == mine.home) continue;
      mine.home = where[i];
      ++mine.version;
      mine.again_at = now;
      changed.push_back(static_cast<lane>(i));
    }
    if (changed.empty()) return;
    for (const auto& [id, each] : listeners_) {
      if (!std::ranges::binary_search(changed, each.where)) continue;
      const lane_state& mine = lanes_[each.where];
      moves.push_back({each.who, mine.home, mine.version});
    }
  }
  for (const move& each : moves) each.who->go(each.to, each.version);
  for (const lane each : changed) drain(each);
}

moving_topology::homes moving_topology::current() const {
  const std::lock_guard lock(mutex_);
  homes all;
  for (std::size_t i = 0; i < lane_count; ++i) all[i] = lanes_[i].home;
  return all;
}

std::string moving_topology::where(lane which) const {
  std::shared_ptr<node> home;
  {
    const std::lock_guard lock(mutex_);
    home = lanes_[which].home;
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

// Whatever is sent is sent to a home.
void moving_topology::ready(const net::patience& until, spi::completion<void> done) {
  send(0, command{"PING"}, until, [done = std::move(done)](const result<reply>& answer) mutable {
    if (!answer) return done(tl::unexpected(answer.error()));
    done({});
  });
}

void moving_topology::close() noexcept {
  if (guard_.forked()) return;
  std::map<std::uint64_t, listening> listeners;
  std::vector<errand> stalled;
  homes left;
  mutex_lock lock(mutex_);
  if (std::exchange(closed_, true)) return;
  listeners.swap(listeners_);
  for (std::size_t i = 0; i < lane_count; ++i) {
    std::ranges::move(lanes_[i].stalled, std::back_inserter(stalled));
    lanes_[i].stalled.clear();
    left[i] = std::move(lanes_[i].home);
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
  for (errand& each : stalled) each.done(failure(errc::unavailable, "closed"));
}

}  // namespace holdfast::redis
