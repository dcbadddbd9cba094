// The connections of strategy=row: each is free, in use for a moment, or holds one lock in a transaction
// that stays open. There are only so many, and who waits for a lock has none.
#pragma once

#include "net/connector.hpp"
#include "stores/sql/bound_claims.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sql {

// One connection. Its hold, if it has one, is bound to its life.
template <class Engine>
struct pooled_connection {
  std::shared_ptr<typename Engine::connection> over;
  std::shared_ptr<sql::bound_claims> bound_claims = std::make_shared<sql::bound_claims>();
};

// Thread-safe. Completions are called exactly once, under no lock.
//
//   a pooled connection is  means                          changes to
//   free       no transaction, or ended       busy: lend()
//   busy       somebody tries, or gives back  free: give(); holding: keep()
//   holding    its transaction has a lock     busy: claim(); free: its connection ended
template <class Engine>
class row_pool : public std::enable_shared_from_this<row_pool<Engine>> {
 public:
  using connection = typename Engine::connection;
  using server_options = typename Engine::server_options;
  using pooled_connection = sql::pooled_connection<Engine>;

  // How many may wait for a pooled connection that is busy; then overloaded.
  static constexpr std::size_t wait_limit = 100'000;

  // `process`: by which the server knows this client.
  row_pool(net::network net, std::shared_ptr<const server_options> options, std::string process);

  // A free pooled connection, as soon as there is one; overloaded: all hold locks, and waiting might be forever.
  void lend(spi::completion<std::shared_ptr<pooled_connection>> done);
  // The transaction has ended, or its connection.
  void give(const std::shared_ptr<pooled_connection>& back);
  // It holds this claim from now on.
  void keep(const std::shared_ptr<pooled_connection>& held, const spi::claim_id& claim);
  // Takes the pooled connection that holds this claim, to end it; null: none does.
  std::shared_ptr<pooled_connection> claim(const spi::claim_id& claim);
  // The same, and it stays.
  [[nodiscard]] std::shared_ptr<pooled_connection> find(const spi::claim_id& claim) const;

  void close() noexcept;

 private:
  enum class state : std::uint8_t { free, busy, holding };

  std::shared_ptr<pooled_connection> make(std::size_t number);
  void ended(const std::weak_ptr<pooled_connection>& whose);
  void serve();

  const net::network net_;
  const std::shared_ptr<const server_options> options_;
  const std::string process_;

  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  bool closed_ = false;
  std::map<std::shared_ptr<pooled_connection>, state> pooled_;
  std::map<spi::claim_id, std::shared_ptr<pooled_connection>> held_;
  std::deque<spi::completion<std::shared_ptr<pooled_connection>>> waiting_;
};

template <class Engine>
row_pool<Engine>::row_pool(net::network net, std::shared_ptr<const server_options> options,
                           std::string process)
    : net_(std::move(net)), options_(std::move(options)), process_(std::move(process)) {}

// Under the mutex.
template <class Engine>
std::shared_ptr<sql::pooled_connection<Engine>> row_pool<Engine>::make(std::size_t number) {
  auto made = std::make_shared<pooled_connection>();
  typename connection::events tell;
  tell.opened = [weak = std::weak_ptr(made)] {
    if (const auto self = weak.lock()) self->bound_claims->begin(self->over->home());
  };
  tell.ended = [weak = std::weak_ptr(made), pool = this->weak_from_this()](const error& why) {
    if (const auto self = weak.lock()) self->bound_claims->end(why);
    if (const auto all = pool.lock()) all->ended(weak);
  };
  // Nothing is lost with a connection that holds nothing.
  tell.silence = [bound_claims = made->bound_claims] {
    return bound_claims->count() == 0 ? connection::silence_limit : sql::longest_belief;
  };
  made->over = Engine::make_carrier(net_, options_, process_ + "/" + std::to_string(number),
                                    std::move(tell));
  return made;
}

template <class Engine>
void row_pool<Engine>::lend(spi::completion<std::shared_ptr<pooled_connection>> done) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_ && waiting_.size() < wait_limit) {
      const auto free = std::find_if(pooled_.begin(), pooled_.end(),
                                     [](const auto& each) { return each.second == state::free; });
      if (free == pooled_.end() && pooled_.size() < options_->connections) {
        pooled_.emplace(make(pooled_.size()), state::free);
      }
      waiting_.push_back(std::move(done));
      done = nullptr;
    }
  }
  if (done) {
    return done(failure(errc::overloaded,
                        std::string(Engine::name) + ": closed, or too many tries at once"));
  }
  serve();
}

// Connections to those who wait for one; where all hold locks there is nothing to wait for.
template <class Engine>
void row_pool<Engine>::serve() {
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
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (given != nullptr) {
      next(std::move(given));
    } else {
      next(failure(errc::overloaded,
                   std::string(Engine::name) + ": each of the " +
                       std::to_string(options_->connections) +
                       " connections of this client holds a lock; connections=N in the URL"));
    }
  }
}

template <class Engine>
void row_pool<Engine>::give(const std::shared_ptr<pooled_connection>& back) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pooled_.find(back);
    if (found != pooled_.end()) found->second = state::free;
    if (waiting_.empty()) return;
  }
  // Not from within: where calls are refused at once, each would serve the next, one inside the other.
  net_.reactor->post([self = this->shared_from_this()] { self->serve(); });
}

template <class Engine>
void row_pool<Engine>::keep(const std::shared_ptr<pooled_connection>& held,
                            const spi::claim_id& claim) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pooled_.find(held);
    if (found == pooled_.end()) return;
    found->second = state::holding;
    held_[claim] = held;
  }
  serve();
}

template <class Engine>
std::shared_ptr<sql::pooled_connection<Engine>> row_pool<Engine>::claim(
    const spi::claim_id& claim) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(claim);
  if (found == held_.end()) return nullptr;
  std::shared_ptr<pooled_connection> taken = std::move(found->second);
  held_.erase(found);
  pooled_[taken] = state::busy;
  return taken;
}

template <class Engine>
std::shared_ptr<sql::pooled_connection<Engine>> row_pool<Engine>::find(
    const spi::claim_id& claim) const {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(claim);
  return found == held_.end() ? nullptr : found->second;
}

// What it held is lost, and has been told; who uses it for a moment hears of it by the answer. It
// connects again, since that ends what the server may still believe to be there.
template <class Engine>
void row_pool<Engine>::ended(const std::weak_ptr<pooled_connection>& whose) {
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

template <class Engine>
void row_pool<Engine>::close() noexcept {
  std::vector<std::shared_ptr<pooled_connection>> all;
  std::deque<spi::completion<std::shared_ptr<pooled_connection>>> waiting;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [each, is] : pooled_) all.push_back(each);
    waiting.swap(waiting_);
  }
  for (const auto& each : all) each->over->close();
  for (auto& each : waiting) {
    each(failure(errc::unavailable, std::string(Engine::name) + ": closed"));
  }
}

}  // namespace holdfast::sql
