// Holds that are bound to the life of a connection: while it lives the server keeps them, and when it
// ends they are lost, all at once.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace holdfast::sql {

// How long a hold is valid after its last answered request, whatever its ttl. A server that hears
// nothing from a connection must keep it for longer than this, but not forever.
inline constexpr duration longest_belief = std::chrono::seconds(30);

// Thread-safe. Makes outside calls under no lock.
//
// What must hold: a holder that is notified of a grant is also notified of its loss, in this order,
// although the answer and the end of the connection may come on two threads. So while a grant is
// being delivered, the news of an end waits for it.
class bound_claims {
 public:
  // Identifies one life of the connection; 0: none.
  using life = std::int64_t;

  void begin(life now);
  // The connection has ended, and every hold with it.
  void end(const error& why);

  // Delivers a grant that was answered in that life. False, and nothing is
  // delivered: that life is over.
  template <class Deliver>
  [[nodiscard]] bool tie(life in, spi::claim_ptr claim, std::shared_ptr<spi::wakeup> holder,
                         Deliver&& deliver) {
    if (!enter(in, std::move(claim), std::move(holder))) return false;
    std::forward<Deliver>(deliver)();
    leave();
    return true;
  }
  // The same grant once more, of a claim that is tied. False, and nothing is delivered: it is not, or not any more.
  template <class Deliver>
  [[nodiscard]] bool deliver_again(const spi::claim_id& claim, std::shared_ptr<spi::wakeup> holder,
                                   Deliver&& deliver) {
    if (!enter_again(claim, std::move(holder))) return false;
    std::forward<Deliver>(deliver)();
    leave();
    return true;
  }
  // Whether it was bound. If its release was not answered, it still is to the next call of this; but not as a hold.
  bool untie(const spi::claim_id& claim, bool answered = true);

  // Null: not bound here, or not any more.
  [[nodiscard]] spi::claim_ptr find(const spi::claim_id& claim) const;
  [[nodiscard]] std::size_t count() const;

 private:
  struct one {
    spi::claim_ptr claim;
    std::shared_ptr<spi::wakeup> holder;
  };

  bool enter(life in, spi::claim_ptr claim, std::shared_ptr<spi::wakeup> holder);
  bool enter_again(const spi::claim_id& claim, std::shared_ptr<spi::wakeup> holder);
  void leave();
  static void tell(const std::vector<std::shared_ptr<spi::wakeup>>& those, const error& why);

  mutable std::mutex mutex_;
  life life_ = 0;                                    // guarded by mutex_
  std::map<spi::claim_id, one> held_;                // guarded by mutex_
  std::set<spi::claim_id> unanswered_;               // guarded by mutex_
  std::size_t delivering_ = 0;                       // guarded by mutex_
  std::vector<std::shared_ptr<spi::wakeup>> ended_;  // guarded by mutex_: not yet notified
  error why_;                                        // guarded by mutex_
};

// Holds that must expire: if a name stays blocked after an abnormal end, the core does not
// leave a hold that ends, and relies on the store's clock. Locks of a connection have no such
// clock, so it is kept here.
//
// Thread-safe. Makes outside calls under no lock.
class run_out : public std::enable_shared_from_this<run_out> {
 public:
  // `over`: the time of this hold is over. Called on the runtime's threads.
  run_out(std::shared_ptr<spi::runtime> runtime, std::function<void(const spi::claim_ptr&)> over)
      : runtime_(std::move(runtime)), over_(std::move(over)) {}

  // It was proven by a request sent at that time, and is valid no longer than its ttl after that.
  // Claims without a delay are ignored.
  void prove(const spi::claim_ptr& claim, time_point sent);
  // The same of a hold that was proven before. False: it has run out.
  [[nodiscard]] bool extend(const spi::claim_ptr& claim, time_point sent);
  void forget(const spi::claim_id& claim);
  void close();

 private:
  struct one {
    spi::claim_ptr claim;
    time_point until;
  };

  void watch(const spi::claim_id& claim, time_point until);
  void check(const spi::claim_id& claim);

  const std::shared_ptr<spi::runtime> runtime_;
  const std::function<void(const spi::claim_ptr&)> over_;
  std::mutex mutex_;
  std::map<spi::claim_id, one> all_;  // guarded by mutex_
};

}  // namespace holdfast::sql
