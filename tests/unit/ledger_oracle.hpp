// The oracle of the ledger's random test: keeps what the ledger has told about each claim, and
// judges whether that can be true together. It knows the promises, not the code.
#pragma once

#include "ledger_harness.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace holdfast::memory {

// What the ledger has told about one claim.
struct view {
  enum class state : std::uint8_t { none, waiting, held };
  spi::claim_ptr claim;
  process_id process = 0;
  state is = state::none;
  spi::mode mode = spi::mode::exclusive;
  std::uint64_t fence = 0;
  std::uint64_t arrival = 0;  // while waiting
  spi::server_time since{};   // while waiting
  spi::server_time heard{};   // while waiting
  spi::server_time offered{};
  spi::server_time until{};  // of the hold, or of the waiter's lease
  bool offer = false;
  bool revoked = false;
};

class ledger_oracle {
 public:
  explicit ledger_oracle(const memory::rules& rules) : rules_(rules) {}

  spi::server_time now{std::chrono::seconds(1000)};
  std::string where;  // in the messages
  std::map<std::uint64_t, view> claims;
  std::set<process_id> unreachable;

  // A verb on this name begins: ends what must be over by now.
  void begin(const std::string& name) {
    for (auto& [number, claim] : claims) {
      if (!lives(claim, name) || claim.until > now) continue;
      if (claim.is == view::state::held) {
        const duration delay = claim.claim->lock_delay;
        if (delay > 0s) blocked_[name] = std::max(blocked_[name], claim.until + delay);
        if (claim.offer && !claim.revoked) silence_[name] = std::max(silence_[name], claim.offered);
      }
      claim.is = view::state::none;
    }
  }

  // It was told that it waits.
  void waits(std::uint64_t number) {
    view& claim = claims.at(number);
    if (claim.is != view::state::waiting) {
      claim.is = view::state::waiting;
      claim.arrival = ++arrivals_;
      claim.since = now;
    }
    claim.heard = now;
    claim.until = now + rules_.waiter_lease;
  }

  // All grants of one step, pushed and answered, in the order in which they were made.
  void take(const effects& out, std::uint64_t speaker = 0, const spi::granted* answer = nullptr) {
    std::map<std::uint64_t, std::pair<std::uint64_t, spi::granted>> grants;
    if (answer != nullptr) grants[answer->fence.value()] = {speaker, *answer};
    for (const push& each : out.pushes) {
      if (each.what != push::kind::granted) continue;
      const auto found = find(each.claim);
      ASSERT_NE(found, claims.end()) << where << ": granted to one that left";
      EXPECT_NE(found->first, speaker) << where << ": who speaks is answered, not pushed to";
      EXPECT_EQ(found->second.is, view::state::waiting) << where;
      EXPECT_TRUE(reachable(found->second)) << where;
      EXPECT_TRUE(each.grant->offer) << where;
      EXPECT_FALSE(grants.contains(each.grant->fence.value())) << where << ": a fence twice";
      grants[each.grant->fence.value()] = {found->first, *each.grant};
    }
    for (const auto& [fence, grant] : grants) granted(grant.first, grant.second);
  }

  // A change of mode was answered: its fence was drawn before those of readers that it let in.
  void changed(std::uint64_t number, spi::mode to, const spi::granted& grant) {
    view& claim = claims.at(number);
    std::uint64_t& last = fences_[claim.claim->resource.name];
    EXPECT_GT(grant.fence.value(), last) << where << ": a fence did not grow";
    claim.mode = to;
    claim.fence = grant.fence.value();
    last = claim.fence + claim.claim->fence_block - 1;
  }

  // Holds that a revocation reported: taken away, or not prolonged any more.
  void revoked(const effects& out, spi::revocation how) {
    for (const push& each : out.pushes) {
      const auto found = find(each.claim);
      if (each.what != push::kind::gone || found == claims.end()) continue;
      found->second.revoked = true;
      if (how == spi::revocation::force) claims.erase(found);
    }
  }

  [[nodiscard]] std::size_t holding(const std::string& name) const {
    return static_cast<std::size_t>(std::count_if(claims.begin(), claims.end(), [&](auto& each) {
      return lives(each.second, name) && each.second.is == view::state::held;
    }));
  }
  [[nodiscard]] bool blocked(const std::string& name) { return blocked_[name] > now; }

  // After a verb on this name: nobody beside an exclusive holder, permits within max, and nobody
  // waits for what is free.
  void check(const std::string& name) {
    sums sum;
    for (const auto& [number, claim] : claims) {
      if (!lives(claim, name) || claim.until <= now) continue;
      if (claim.is == view::state::held) {
        ++sum.holders;
        if (claim.mode == spi::mode::exclusive) ++sum.exclusive;
        if (claim.mode == spi::mode::permit) sum.permits += claim.claim->permits;
        sum.max = claim.claim->max;
      } else {
        ++sum.line;
        if (!reachable(claim)) continue;
        if (sum.first == nullptr || claim.arrival < sum.first->arrival) sum.first = &claim;
      }
    }
    EXPECT_TRUE(sum.exclusive == 0 || sum.holders == 1) << where << ": a writer is not alone";
    EXPECT_TRUE(sum.permits == 0 || sum.permits <= sum.max) << where << ": too many permits";
    if (sum.first != nullptr && !blocked(name)) check_progress(sum);
  }

 private:
  struct sums {
    std::size_t holders = 0;
    std::size_t exclusive = 0;
    std::size_t line = 0;
    std::uint64_t permits = 0;
    std::uint32_t max = 0;
    const view* first = nullptr;
  };

  static bool lives(const view& claim, const std::string& name) {
    return claim.is != view::state::none && claim.claim->resource.name == name;
  }

  std::map<std::uint64_t, view>::iterator find(const spi::claim_id& id) {
    return std::find_if(claims.begin(), claims.end(),
                        [&](const auto& each) { return each.second.claim->id == id; });
  }

  [[nodiscard]] bool reachable(const view& claim) const {
    const auto mark = silence_.find(claim.claim->resource.name);
    return !unreachable.contains(claim.process) &&
           (mark == silence_.end() || claim.heard > mark->second);
  }

  void granted(std::uint64_t number, const spi::granted& grant) {
    view& claim = claims.at(number);
    const std::string& name = claim.claim->resource.name;
    EXPECT_EQ(grant.at, now) << where;
    EXPECT_LE(grant.ttl, claim.claim->ttl) << where;
    if (claim.is == view::state::held) {
      EXPECT_EQ(grant.fence.value(), claim.fence) << where << ": a fence changed during a hold";
      if (claim.revoked || (!claim.offer && !claim.claim->renewed)) {
        EXPECT_EQ(now + grant.ttl, claim.until) << where << ": prolonged although it may not be";
      }
    } else {
      EXPECT_GT(grant.fence.value(), fences_[name]) << where << ": a fence did not grow";
      EXPECT_FALSE(blocked(name)) << where << ": granted while blocked";
      check_order(claim);
      fences_[name] = grant.fence.value() + claim.claim->fence_block - 1;
      claim.fence = grant.fence.value();
      claim.mode = claim.claim->mode;
      claim.revoked = false;
    }
    claim.is = view::state::held;
    claim.offer = grant.offer;
    if (grant.offer) claim.offered = now;
    claim.until = now + grant.ttl;
  }

  void check_order(const view& claim) {
    const spi::claim& request = *claim.claim;
    for (const auto& [other, earlier] : claims) {
      if (&earlier == &claim || !lives(earlier, request.resource.name)) continue;
      if (earlier.is != view::state::waiting || !reachable(earlier)) continue;
      if (claim.is == view::state::waiting) {
        EXPECT_GT(earlier.arrival, claim.arrival) << where << ": overtaken in line";
        continue;
      }
      EXPECT_FALSE(earlier.claim->fair) << where << ": a fair waiter was overtaken";
      EXPECT_FALSE(request.fair) << where << ": a fair newcomer overtook";
      EXPECT_FALSE(request.mode == spi::mode::shared && earlier.claim->mode == spi::mode::exclusive)
          << where << ": a reader overtook a writer";
    }
  }

  void check_progress(const sums& sum) const {
    const spi::claim& first = *sum.first->claim;
    const bool may = first.mode == spi::mode::exclusive ? sum.holders == 0
                     : first.mode == spi::mode::shared  ? sum.exclusive == 0
                                                        : sum.permits + first.permits <= first.max;
    const bool only_told =
        !first.fair && sum.line == 1 && now - sum.first->since <= rules_.hand_over_after;
    EXPECT_TRUE(!may || only_told) << where << ": waits for what is free";
  }

  const memory::rules rules_;
  std::uint64_t arrivals_ = 0;
  std::map<std::string, spi::server_time> silence_;  // when the last offer was made that lapsed
  std::map<std::string, std::uint64_t> fences_;
  std::map<std::string, spi::server_time> blocked_;
};

}  // namespace holdfast::memory
