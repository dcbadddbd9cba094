// Connects transactions with the outside: carries messages to the clients that a transaction
// concerns, wakes this client's own claims, and finds out who has died.
#pragma once

#include "stores/sql/common/subscribers.hpp"
#include "stores/sqlite/ledger.hpp"
#include "stores/sqlite/local_claims.hpp"
#include "stores/sqlite/location.hpp"
#include "stores/sqlite/mailbox.hpp"
#include "stores/sqlite/session.hpp"

#include <holdfast/spi/reactor.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace holdfast::sqlite {

// Thread-safe. Calls wake-ups and listeners under no lock. open -> closed.
class peer_notifier : public std::enable_shared_from_this<peer_notifier> {
 public:
  // Dead clients that are remembered, and addresses.
  static constexpr std::size_t memory_limit = 4096;

  using numbers = std::set<std::int64_t>;

  peer_notifier(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<session> session,
                std::shared_ptr<const folder> folder, std::shared_ptr<local_claims> local_claims,
                std::shared_ptr<sql::subscribers> subscribers, peer self);

  result<void> open();

  // Sends the effects of a committed transaction. True: a client that it concerned is dead, so that
  // another transaction is due.
  bool deliver(const effects& out, time_point deadline);
  // Registers that the claim waits for these clients: it is woken when one of them dies.
  // True: one is dead already.
  bool watch(const spi::claim_id& id, const std::vector<std::int64_t>& blockers,
             time_point deadline);
  // Looks once.
  bool any_dead(const std::vector<std::int64_t>& clients, time_point deadline);

  // Clients that are known to be dead. They stay dead.
  [[nodiscard]] std::shared_ptr<const numbers> dead() const;

  [[nodiscard]] int share() const noexcept { return mailbox_->share(); }
  // Does a connection to this client's own socket succeed?
  [[nodiscard]] bool reachable() const;
  void close() noexcept;
  // How to reach a client, if this one has met it.
  [[nodiscard]] std::optional<peer> address(std::int64_t client) const;

 private:
  bool send(std::int64_t client, const message& what);
  // Never nested on one thread: a message that another message causes to be sent to this process is
  // handled after that one, or thousands of waiters would be released recursively.
  void hand_over(const message& what);
  void tell(const message& what);
  void learn(const std::vector<std::int64_t>& clients, time_point deadline);
  bool watch_one(std::int64_t client);
  bool is_dead(std::int64_t client);
  void mark_dead(std::int64_t client);
  void hung_up(const peer& who);
  void check(const peer& who, duration pause);
  void look_again(const peer& who, duration pause);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<session> session_;
  const std::shared_ptr<const folder> folder_;
  const std::shared_ptr<local_claims> local_claims_;
  const std::shared_ptr<sql::subscribers> subscribers_;
  const peer self_;
  std::shared_ptr<mailbox> mailbox_;  // set by open()

  mutable std::mutex mutex_;
  std::map<std::int64_t, peer> addresses_;  // guarded by mutex_
  std::shared_ptr<const numbers> dead_;     // guarded by mutex_
  numbers looked_after_;                    // guarded by mutex_; a timer is set for each
};

}  // namespace holdfast::sqlite
