#include "stores/sql/row_pool.hpp"

#include "net/patience.hpp"

#include <algorithm>
#include <vector>

namespace holdfast::sql {

// Under the mutex.
std::shared_ptr<pooled_connection> row_pool::make(std::size_t number) {
  auto made = std::make_shared<pooled_connection>();
  connection::events tell;
  tell.opened = [weak = std::weak_ptr(made)] {
    if (const auto self = weak.lock()) self->bound_claims->begin(self->over->home());
  };
  tell.ended = [weak = std::weak_ptr(made), pool = weak_from_this()](const error& why) {
    if (const auto self = weak.lock()) self->bound_claims->end(why);
    if (const auto all = pool.lock()) all->ended(weak);
  };
  // Nothing is lost with a connection that holds nothing.
  tell.silence = [bound_claims = made->bound_claims] {
    return bound_claims->count() == 0 ? connection::silence_limit : sql::longest_belief;
  };
  made->over =
      engine_->make_carrier(net_, process_ + "/" + std::to_string(number), std::move(tell));
  return made;
}

void row_pool::lend(time_point until, spi::completion<std::shared_ptr<pooled_connection>> done) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_ && waiting_.size() < wait_limit) {
      const auto free = std::find_if(pooled_.begin(), pooled_.end(),
                                     [](const auto& each) { return each.second == state::free; });
      if (free == pooled_.end() && pooled_.size() < engine_->options().connections) {
        pooled_.emplace(make(pooled_.size()), state::free);
      }
      waiting_.push_back({std::move(done), until});
      done = nullptr;
    }
  }
  if (done) {
    return done(failure(errc::overloaded, engine_->name + ": closed, or too many tries at once"));
  }
  serve();
  const std::lock_guard lock(mutex_);
  if (!waiting_.empty()) watch_deadline(until);
}

// Under the mutex. One timer for all: it is set again only for an earlier time.
void row_pool::watch_deadline(time_point until) {
  if (until >= alarm_at_) return;
  net_.reactor->cancel(alarm_);
  alarm_at_ = until;
  alarm_ = net_.reactor->at(until, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->check_deadlines();
  });
}

void row_pool::check_deadlines() {
  std::vector<waiter> late;
  {
    const std::lock_guard lock(mutex_);
    const time_point now = net_.reactor->now();
    if (now < alarm_at_) return;
    alarm_at_ = time_point::max();
    std::erase_if(waiting_, [&](waiter& each) {
      if (each.until > now) return false;
      late.push_back(std::move(each));
      return true;
    });
    for (const waiter& each : waiting_) watch_deadline(each.until);
  }
  for (waiter& each : late) {
    each.done(tl::unexpected(net::unsent(
        {errc::unavailable, engine_->name + ": no connection of this client is free"})));
  }
}

// Gives connections to those who wait for one; if all connections hold locks
// there is nothing to wait for.
void row_pool::serve() {
  for (;;) {
    spi::completion<std::shared_ptr<pooled_connection>> next;
    std::shared_ptr<pooled_connection> given;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return;
      const auto in = [&](state wanted) {
        return std::find_if(pooled_.begin(), pooled_.end(),
                            [&](const auto& each) { return each.second == wanted; });
      };
      if (const auto free = in(state::free); free != pooled_.end()) {
        free->second = state::busy;
        given = free->first;
      } else if (!closed_ && in(state::busy) != pooled_.end()) {
        return;
      }
      next = std::move(waiting_.front().done);
      waiting_.pop_front();
    }
    if (given != nullptr) {
      next(std::move(given));
    } else {
      next(failure(errc::overloaded,
                   engine_->name + ": each of the " +
                       std::to_string(engine_->options().connections) +
                       " connections of this client holds a lock; connections=N in the URL"));
    }
  }
}

void row_pool::give(const std::shared_ptr<pooled_connection>& back) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pooled_.find(back);
    if (found != pooled_.end()) found->second = state::free;
    if (waiting_.empty()) return;
  }
  // Posted: if calls are refused at once, each would serve the next, one inside the other.
  net_.reactor->post([self = shared_from_this()] { self->serve(); });
}

void row_pool::keep(const std::shared_ptr<pooled_connection>& held, const spi::claim_id& claim) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pooled_.find(held);
    if (found == pooled_.end()) return;
    found->second = state::holding;
    held_[claim] = held;
  }
  serve();
}

std::shared_ptr<pooled_connection> row_pool::claim(const spi::claim_id& claim) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(claim);
  if (found == held_.end()) return nullptr;
  std::shared_ptr<pooled_connection> taken = std::move(found->second);
  held_.erase(found);
  pooled_[taken] = state::busy;
  return taken;
}

std::shared_ptr<pooled_connection> row_pool::find(const spi::claim_id& claim) const {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(claim);
  return found == held_.end() ? nullptr : found->second;
}

// What it held is lost, and that was reported; a temporary user learns of it from the answer. It
// connects again, since that ends what the server may still assume to be alive.
void row_pool::ended(const std::weak_ptr<pooled_connection>& whose) {
  const std::shared_ptr<pooled_connection> over = whose.lock();
  {
    const std::lock_guard lock(mutex_);
    const auto found = pooled_.find(over);
    if (found == pooled_.end() || closed_) return;
    if (found->second == state::holding) {
      found->second = state::free;
      std::erase_if(held_, [&](const auto& each) { return each.second == over; });
    }
  }
  over->over->start();
  serve();
}

void row_pool::close() noexcept {
  std::vector<std::shared_ptr<pooled_connection>> all;
  std::deque<waiter> waiting;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    net_.reactor->cancel(alarm_);
    for (const auto& [each, is] : pooled_) all.push_back(each);
    waiting.swap(waiting_);
  }
  for (const auto& each : all) each->over->close();
  for (waiter& each : waiting) {
    each.done(failure(errc::unavailable, engine_->name + ": closed"));
  }
}

}  // namespace holdfast::sql
