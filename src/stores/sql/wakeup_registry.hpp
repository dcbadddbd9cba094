// How the claims of this client are reached: which wake-up belongs to which claim.
#pragma once

#include "stores/sql/answers.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace holdfast::sql {

// Thread-safe. Wake-ups are called under no lock.
class wakeup_registry {
 public:
  // Before the attempt is sent: the push may overtake its answer.
  void add(const spi::claim_id& claim, std::shared_ptr<spi::wakeup> wakeup);
  void remove(const spi::claim_id& claim) noexcept;
  // It was added once: no other attempt of the claim went out. No registration: no.
  [[nodiscard]] bool only_attempt(const spi::claim_id& claim) const;
  void clear() noexcept;

  // What was heard of others who are concerned by a claim; what is so may be something else.
  enum class contention : std::uint8_t {
    none,  // what it holds is likely to be nobody else's concern
    some,  // it waits, or somebody waits for it
    many,  // it was pushed to, and others waited on
  };
  // It has some. Every push says so too.
  void mark_contended(const spi::claim_id& claim);
  // No registration: some.
  [[nodiscard]] contention around(const spi::claim_id& claim) const;

  // A push for a claim that is not here any more is for nobody.
  void notify(const push& what);
  // Pushes may have been missed: waiters ask again.
  void notify_all();

 private:
  struct registration {
    std::shared_ptr<spi::wakeup> wakeup;
    contention around = contention::none;
    std::uint32_t attempts = 0;
  };

  mutable std::mutex mutex_;
  std::map<spi::claim_id, registration> wakeups_;  // guarded by mutex_
};

}  // namespace holdfast::sql
