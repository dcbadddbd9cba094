// The connections of strategy=row: each is free, in use for a moment, or holds one lock in a
// transaction that stays open. Their number is limited, and waiters for a lock have none.
#pragma once

#include "net/connector.hpp"
#include "stores/sql/bound_claims.hpp"
#include "stores/sql/engine.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace holdfast::sql {

// One connection. Its hold, if it has one, is bound to its life.
struct pooled_connection {
  std::shared_ptr<connection> over;
  std::shared_ptr<sql::bound_claims> bound_claims = std::make_shared<sql::bound_claims>();
};

// Thread-safe. Completions are called exactly once, under no lock.
//
//   a pooled connection is  means                          changes to
//   free       no transaction, or ended       busy: lend()
//   busy       an attempt or a release        free: give(); holding: keep()
//   holding    its transaction has a lock     busy: claim(); free: its connection ended
class row_pool : public std::enable_shared_from_this<row_pool> {
 public:
  // How many may wait while pooled connections are busy; beyond it: overloaded.
  static constexpr std::size_t wait_limit = 100'000;

  // `process`: the server's name for this client.
  row_pool(net::network net, std::shared_ptr<const engine> of, std::string process)
      : net_(std::move(net)), engine_(std::move(of)), process_(std::move(process)) {}

  // A free pooled connection, as soon as there is one; unavailable: not until then; overloaded: all hold locks, so
  // the wait might never end.
  void lend(time_point until, spi::completion<std::shared_ptr<pooled_connection>> done);
  // The transaction has ended, or its connection.
  void give(const std::shared_ptr<pooled_connection>& back);
  // It holds this claim from now on.
  void keep(const std::shared_ptr<pooled_connection>& held, const spi::claim_id& claim);
  // Removes the pooled connection that holds this claim, to end it; null: none does.
  std::shared_ptr<pooled_connection> claim(const spi::claim_id& claim);
  // The same without removing it.
  [[nodiscard]] std::shared_ptr<pooled_connection> find(const spi::claim_id& claim) const;

  void close() noexcept;

 private:
  enum class state : std::uint8_t { free, busy, holding };
  struct waiter {
    spi::completion<std::shared_ptr<pooled_connection>> done;
    time_point until;
  };

  std::shared_ptr<pooled_connection> make(std::size_t number);
  void ended(const std::weak_ptr<pooled_connection>& whose);
  void serve();
  void watch_deadline(time_point until);
  void check_deadlines();

  const net::network net_;
  const std::shared_ptr<const engine> engine_;
  const std::string process_;

  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  bool closed_ = false;
  std::map<std::shared_ptr<pooled_connection>, state> pooled_;
  std::map<spi::claim_id, std::shared_ptr<pooled_connection>> held_;
  std::deque<waiter> waiting_;
  spi::runtime::timer_id alarm_ = 0;  // for the first of them that is late
  time_point alarm_at_ = time_point::max();
};

}  // namespace holdfast::sql
