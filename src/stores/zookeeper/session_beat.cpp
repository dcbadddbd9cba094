// What keeps a session alive and shows that it is: writes to a node of its own while somebody lives
// by it, pings else.
#include "stores/zookeeper/protocol.hpp"
#include "stores/zookeeper/session.hpp"

#include <array>
#include <utility>

namespace holdfast::zookeeper {

namespace {

std::string hex(std::int64_t number) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    text[i] = digits[static_cast<std::uint64_t>(number) >> (60 - 4 * i) & 15U];
  }
  return text;
}

}  // namespace

duration session::beat_interval() const noexcept {
  return std::max<duration>(timeout_ / 6, options_->tick * 6 / 10);
}

// Called with the mutex held.
void session::schedule_beat(time_point when) {
  net_.reactor->cancel(beat_timer_);
  beat_timer_ = net_.reactor->at(when, [weak = weak_from_this(), turn = ++beat_turn_] {
    const auto self = weak.lock();
    if (self != nullptr) self->beat(turn);
  });
}

void session::beat(std::uint64_t turn) {
  mutex_lock lock(mutex_);
  if (state_ != state::open || turn != beat_turn_) return;
  const time_point now = net_.reactor->now();
  schedule_beat(now + beat_interval());
  if (held()) {
    if (std::exchange(beating_, true)) return;
    const std::int64_t id = id_;
    const bool made = beating_node_ == id;
    const time_point deadline = now + stall_limit();
    lock.unlock();
    prove(shared_from_this(), id, made, deadline);
    return;
  }
  if (ping_sent_ || now - last_sent_ < timeout_ / 3) return;
  ping(now);
  watch_deadline(now + stall_limit());
  const std::shared_ptr<link> out = link_;
  lock.unlock();
  out->flush();
}

// Called with the mutex held, while open. Goes out with the next flush.
void session::ping(time_point now) {
  ping_sent_ = now;
  last_sent_ = now;
  link_->queue(framed(ping_xid, request{opcode::ping, {}}));
}

// Static, and keeps the session: a flow may outlive who began it.
flow session::prove(std::shared_ptr<session> self, std::int64_t id, bool made,
                    time_point deadline) {
  const std::string folder = self->options_->root + "/_holdfast";
  const std::string node = folder + "/" + hex(id);
  const openness acl = self->options_->acl;
  question write{made ? make_set_data(node, {}) : make_create(node, {}, node_kind::ephemeral, acl),
                 nullptr,
                 {}};
  result<reply> answer = co_await ask_one(self, std::move(write), deadline, id);
  bool exists = made;
  if (answer && !made && answer->code == code::no_node) {
    const result<void> above = co_await make_containers(self, folder, acl, deadline);
    if (above) {
      question again{make_create(node, {}, node_kind::ephemeral, acl), nullptr, {}};
      answer = co_await ask_one(self, std::move(again), deadline, id);
    }
  }
  if (answer) exists = answer->code == code::ok || answer->code == code::node_exists;
  const std::scoped_lock lock(self->mutex_);
  self->beating_ = false;
  if (self->id_ == id) self->beating_node_ = exists ? id : 0;
}

}  // namespace holdfast::zookeeper
