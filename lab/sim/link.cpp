#include "sim/link.hpp"

#include "sim/history.hpp"
#include "sim/server.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

link::link(event_loop& loop, history& log, node& client, sim::server& server, std::int32_t process,
           random_source random, const link_conditions& normal)
    : loop_(loop),
      log_(log),
      client_(client),
      server_(server),
      process_(process),
      random_(random),
      normal_(normal),
      conditions_(normal) {}

std::uint32_t link::channel(direction which, std::uint32_t number) const noexcept {
  const auto of = static_cast<std::uint32_t>(process_);
  return event_loop::first_of_links +
         ((of << 16U | number) << 2U | static_cast<std::uint32_t>(which));
}

duration link::delay() { return random_.between(conditions_.shortest, conditions_.longest); }

bool link::send(request_ptr message) {
  if (!connection_ || ended_) return false;
  if (random_.chance(conditions_.request_loss)) return true;
  connection& on = *connection_;
  on.last_up = std::max({on.last_up, loop_.now() + delay(), on.stuck_until});
  loop_.at(
      on.last_up, server_, event_class::receipt,
      [this, on = connection_, message = std::move(message)]() mutable {
        arrive(on, std::move(message));
      },
      channel(direction::up, on.number));
  return true;
}

void link::arrive(const connection_ptr& on, request_ptr message) {
  if (ended_ || !server_.up()) return;
  if (!on->open && !on->executed) return;
  const moment earliest = on->open ? on->stuck_until : std::max(on->stuck_until, on->late);
  if (loop_.now() < earliest) {
    // Stuck since it was sent. Events of the same time keep their order, and so do the requests.
    loop_.at(
        earliest, server_, event_class::receipt,
        [this, on, message = std::move(message)]() mutable { arrive(on, std::move(message)); },
        channel(direction::up, on->number));
    return;
  }
  answer(on, server_.execute(*message));
}

void link::answer(const connection_ptr& on, reply answer) {
  if (!on->open || random_.chance(conditions_.reply_loss)) return;
  on->last_down = std::max({on->last_down, loop_.now() + delay(), on->stuck_until});
  loop_.at(
      on->last_down, client_, event_class::receipt,
      [this, on, answer = std::move(answer)]() mutable {
        if (!ended_ && on->open) user_->received(std::move(answer));
      },
      channel(direction::down, on->number));
}

void link::stall(moment until) noexcept {
  if (connection_) connection_->stuck_until = std::max(connection_->stuck_until, until);
}

void link::unstick() {
  if (connection_ && connection_->stuck_until > loop_.now()) cut(true, connection_->stuck_until);
}

void link::cut(bool executed, moment late) {
  if (!connection_) return;
  connection_->open = false;
  connection_->executed = executed;
  connection_->late = late;
  connection_.reset();
  if (client_dead_) return;
  loop_.at(
      loop_.now(), client_, event_class::receipt,
      [this] {
        if (ended_ || client_dead_) return;
        user_->disconnected();
        reconnect();
      },
      channel(direction::news));
}

void link::reconnect() {
  loop_.at(
      loop_.now() + random_.between(conditions_.shortest_reconnect, conditions_.longest_reconnect),
      client_, event_class::timer, [this] {
        if (ended_ || client_dead_) return;
        if (!server_.up()) return reconnect();
        connection_ = std::make_shared<connection>();
        connection_->number = ++connections_;
        user_->connected();
      });
}

void link::push(push_value news) {
  if (ended_ || !server_sees_ || !subscribed_ || random_.chance(conditions_.push_loss)) return;
  moment when = loop_.now() + delay();
  if (conditions_.pushes_in_order) when = std::max(when, last_push_);
  last_push_ = std::max(last_push_, when);
  loop_.at(
      when, client_, event_class::receipt,
      [this, epoch = epoch_, news = std::move(news)] {
        if (!ended_ && subscribed_ && epoch == epoch_) user_->pushed(news);
      },
      channel(direction::pushes));
}

void link::set_reachable(bool seen) {
  if (server_sees_ == seen) return;
  server_sees_ = seen;
  log_.add({.kind = seen ? what::reachable : what::unreachable, .process = process_});
}

void link::cut_subscription(duration unnoticed) {
  if (!subscribed_) return;
  subscribed_ = false;
  ++epoch_;
  loop_.at(
      loop_.now() + unnoticed, server_, event_class::receipt,
      [this, epoch = epoch_] {
        if (!ended_ && epoch == epoch_ && !subscribed_) set_reachable(false);
      },
      channel(direction::news));
  if (!client_dead_) subscribe();
}

void link::subscribe() {
  loop_.at(
      loop_.now() + random_.between(conditions_.shortest_reconnect, conditions_.longest_reconnect),
      client_, event_class::timer, [this, epoch = epoch_] {
        if (ended_ || client_dead_ || epoch != epoch_ || subscribed_) return;
        if (!server_.up()) return subscribe();
        loop_.at(
            loop_.now() + delay(), server_, event_class::receipt,
            [this, epoch] { confirm_subscription(epoch); }, channel(direction::pushes));
      });
}

void link::confirm_subscription(std::uint32_t epoch) {
  if (ended_ || epoch != epoch_ || client_dead_) return;
  if (!server_.up()) return subscribe();
  subscribed_ = true;
  set_reachable(true);
  loop_.at(
      loop_.now() + delay(), client_, event_class::receipt,
      [this, epoch] {
        if (!ended_ && epoch == epoch_) user_->subscribed();
      },
      channel(direction::pushes));
}

void link::server_died() {
  cut(false, moment{});
  cut_subscription(duration{0});
  set_reachable(false);
}

void link::client_died(duration unnoticed) {
  client_dead_ = true;
  if (connection_) {
    connection_->open = false;
    connection_->executed = true;
    connection_.reset();
  }
  cut_subscription(unnoticed);
}

}  // namespace holdfast::sim
