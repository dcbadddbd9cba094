#include "stores/sqlite/peer_notifier.hpp"

#include "stores/sqlite/membership.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

namespace holdfast::sqlite {

namespace {

// For a client that hung up but lives: a child has inherited its sign of life, or it has no
// descriptors left. It is checked again, soon and then less often.
constexpr duration first_look = std::chrono::milliseconds(1);
constexpr duration last_look = std::chrono::seconds(1);

std::vector<std::int64_t> concerned(const effects& out) {
  std::vector<std::int64_t> clients;
  clients.reserve(out.pushes.size());
  for (const push& each : out.pushes) clients.push_back(each.process);
  for (const news& each : out.news) {
    clients.insert(clients.end(), each.observers.begin(), each.observers.end());
  }
  return clients;
}

}  // namespace

peer_notifier::peer_notifier(std::shared_ptr<spi::reactor> reactor,
                             std::shared_ptr<session> session, std::shared_ptr<const folder> folder,
                             std::shared_ptr<local_claims> local_claims,
                             std::shared_ptr<sql::subscribers> subscribers, peer self)
    : reactor_(std::move(reactor)),
      session_(std::move(session)),
      folder_(std::move(folder)),
      local_claims_(std::move(local_claims)),
      subscribers_(std::move(subscribers)),
      self_(std::move(self)),
      dead_(std::make_shared<const numbers>()) {}

result<void> peer_notifier::open() {
  mailbox::handlers call;
  call.received = [weak = weak_from_this()](const message& what) {
    if (const auto self = weak.lock()) self->hand_over(what);
  };
  call.hung_up = [weak = weak_from_this()](const peer& who) {
    if (const auto self = weak.lock()) self->hung_up(who);
  };
  auto opened = mailbox::open(reactor_, folder_, self_, std::move(call));
  if (!opened) return tl::unexpected(std::move(opened.error()));
  mailbox_ = std::move(*opened);
  return {};
}

void peer_notifier::close() noexcept {
  if (mailbox_) mailbox_->close();
}

bool peer_notifier::reachable() const {
  return mailbox_->connect(self_) == mailbox::delivery::sent;
}

bool peer_notifier::deliver(const effects& out, time_point deadline) {
  if (out.pushes.empty() && out.news.empty()) return false;
  learn(concerned(out), deadline);
  bool found_dead = false;
  for (const push& each : out.pushes) {
    found_dead |= send(each.process, {.what = message::kind::push, .push = each});
  }
  for (const news& each : out.news) {
    for (const std::int64_t client : each.observers) {
      for (const spi::store_event& event : each.events) {
        found_dead |= send(client, {.what = message::kind::event, .key = each.key, .event = event});
      }
      if (each.latch_changed) {
        found_dead |= send(client, {.what = message::kind::latch, .key = each.key});
      }
    }
  }
  return found_dead;
}

bool peer_notifier::send(std::int64_t client, const message& what) {
  if (!mailbox_) return false;  // opening failed: others look by themselves
  if (client == self_.number) {
    hand_over(what);
    return false;
  }
  const auto to = address(client);
  // A client that left has taken its claims with it.
  if (to && mailbox_->send(*to, what) != mailbox::delivery::refused) return false;
  return is_dead(client);
}

void peer_notifier::hand_over(const message& what) {
  struct letter {
    std::shared_ptr<peer_notifier> by;
    message what;
  };
  thread_local std::deque<letter>* caused = nullptr;  // set while this thread is in here
  if (caused != nullptr) {
    caused->push_back({shared_from_this(), what});
    return;
  }
  std::deque<letter> line;
  caused = &line;
  const struct leaving {
    ~leaving() { caused = nullptr; }
  } however;
  tell(what);
  while (!line.empty()) {
    const letter next = std::move(line.front());
    line.pop_front();
    next.by->tell(next.what);
  }
}

void peer_notifier::tell(const message& what) {
  if (what.what == message::kind::event) return subscribers_->tell(what.key, what.event);
  if (what.what == message::kind::latch) return subscribers_->tell_latch(what.key);
  const push& its = what.push;
  const auto wakeup = local_claims_->find(its.claim);
  if (!wakeup) return;  // left meanwhile
  // Before the call, within which it may be left, or enlisted again.
  if (its.what == push::kind::gone && its.kept > duration{0}) local_claims_->let_end(its.claim);
  // Nobody will leave a claim that is gone.
  if (its.what == push::kind::gone && its.kept <= duration{0}) local_claims_->strike(its.claim);
  its.deliver(*wakeup);
}

std::optional<peer> peer_notifier::address(std::int64_t client) const {
  const std::lock_guard lock(mutex_);
  const auto found = addresses_.find(client);
  if (found == addresses_.end()) return std::nullopt;
  return found->second;
}

// Their names in the folder, from the database where they are not known yet.
void peer_notifier::learn(const std::vector<std::int64_t>& clients, time_point deadline) {
  std::vector<std::int64_t> unknown;
  {
    const std::lock_guard lock(mutex_);
    for (const std::int64_t client : clients) {
      if (client != self_.number && !addresses_.contains(client)) unknown.push_back(client);
    }
  }
  if (unknown.empty()) return;
  std::vector<peer> found;
  const auto done =
      session_->read(deadline, [&](ledger&) { found = find_peers(session_->prepared(), unknown); });
  const std::lock_guard lock(mutex_);
  if (addresses_.size() > memory_limit) addresses_.clear();
  for (peer& each : found) addresses_.insert_or_assign(each.number, std::move(each));
  if (!done) return;
  // Not in any row: it left, or was purged by another client.
  for (const std::int64_t client : unknown) {
    if (!addresses_.contains(client)) addresses_.emplace(client, peer{client, {}, 0});
  }
}

bool peer_notifier::watch(const spi::claim_id& id, const std::vector<std::int64_t>& blockers,
                          time_point deadline) {
  std::vector<std::int64_t> others;
  std::copy_if(blockers.begin(), blockers.end(), std::back_inserter(others),
               [this](std::int64_t client) { return client != self_.number; });
  learn(others, deadline);
  // First this, then the connections: a client that hangs up in between is
  // then known to be watched.
  local_claims_->watch(id, others);
  bool found_dead = false;
  for (const std::int64_t client : others) found_dead |= watch_one(client);
  return found_dead;
}

bool peer_notifier::watch_one(std::int64_t client) {
  if (mailbox_->connected(client)) return false;
  const auto to = address(client);
  if (!to) return false;  // not even the database could be read: the next look will show
  if (mailbox_->connect(*to) == mailbox::delivery::sent) return false;
  if (is_dead(client)) return true;
  look_again(*to, first_look);
  return false;
}

bool peer_notifier::any_dead(const std::vector<std::int64_t>& clients, time_point deadline) {
  learn(clients, deadline);
  bool found = false;
  for (const std::int64_t client : clients) {
    if (client != self_.number && !mailbox_->connected(client)) found |= is_dead(client);
  }
  return found;
}

bool peer_notifier::is_dead(std::int64_t client) {
  if (client == nobody) return false;  // a detached claim ends by time
  const auto who = address(client);
  if (!who || alive(*folder_, *who)) return false;
  mark_dead(client);
  return true;
}

void peer_notifier::mark_dead(std::int64_t client) {
  const std::lock_guard lock(mutex_);
  if (dead_->contains(client)) return;
  auto more = std::make_shared<numbers>(*dead_);
  more->insert(client);
  // Numbers grow: the smallest belongs to the client that came, and very probably died, first.
  if (more->size() > memory_limit) more->erase(more->begin());
  dead_ = std::move(more);
}

std::shared_ptr<const peer_notifier::numbers> peer_notifier::dead() const {
  const std::lock_guard lock(mutex_);
  return dead_;
}

// On the reactor's thread.
void peer_notifier::hung_up(const peer& who) {
  check(address(who.number).value_or(who), first_look);
}

// No transaction here: a woken waiter asks again, and that attempt removes the dead. If a child has
// inherited the listening socket too, a new connection is closed when the child ends.
void peer_notifier::check(const peer& who, duration pause) {
  if (local_claims_->watchers(who.number).empty() || mailbox_->connected(who.number)) return;
  if (!alive(*folder_, who)) {
    mark_dead(who.number);
    for (const auto& wakeup : local_claims_->watchers(who.number)) wakeup->notify(std::nullopt);
  } else if (mailbox_->connect(who) != mailbox::delivery::sent) {
    look_again(who, pause);
  }
}

// One look at a time for a client, however many ask for it.
void peer_notifier::look_again(const peer& who, duration pause) {
  {
    const std::lock_guard lock(mutex_);
    if (!looked_after_.insert(who.number).second) return;
  }
  reactor_->at(reactor_->now() + pause, [weak = weak_from_this(), who, pause] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    {
      const std::lock_guard lock(self->mutex_);
      self->looked_after_.erase(who.number);
    }
    self->check(who, std::min(pause * 2, last_look));
  });
}

}  // namespace holdfast::sqlite
