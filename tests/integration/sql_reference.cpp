#if defined(HOLDFAST_WITH_POSTGRESQL) || defined(HOLDFAST_WITH_MARIADB)

#include "integration/sql_reference.hpp"

#include "stores/memory/ledger.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

std::string described(const spi::granted& grant) {
  return "granted for " + std::to_string(grant.ttl.count()) + (grant.offer ? ", offer" : "") +
         (grant.wanted ? ", wanted" : "");
}
std::string described(const result<spi::outcome>& answer) {
  if (!answer) return answer.error().message();
  if (const auto* grant = std::get_if<spi::granted>(&*answer)) return described(*grant);
  const auto& blocked = std::get<spi::blocked>(*answer);
  return (blocked.queued ? "queued behind " : "blocked by ") + blocked.blocker;
}
std::string described(const result<spi::granted>& answer) {
  return answer ? described(*answer) : answer.error().message();
}
std::string described(const spi::renewal& answer) {
  std::string text = std::to_string(static_cast<int>(answer.state));
  const bool held =
      answer.state == spi::hold_state::renewed || answer.state == spi::hold_state::held;
  return held ? text + " " + described(answer.grant) : text;
}
std::string described(const result<spi::latch_state>& answer) {
  if (!answer) return answer.error().message();
  return answer->count ? std::to_string(*answer->count) : "unset";
}
std::string described(const spi::resource_state& state) {
  std::string text;
  for (const auto& each : state.holders) {
    text += " +" + each.claim + "/" + std::to_string(static_cast<int>(each.mode)) + "/" +
            std::to_string(each.remaining->count());
  }
  for (const auto& each : state.waiters) text += " ." + each.claim;
  return text;
}

// The recipient and the message, without the fence, which starts at another number.
std::string described(const std::string& process, const stores::push& push) {
  const std::string to = process + " " + spi::public_id(push.claim);
  switch (push.what) {
    case stores::push::kind::granted:
      return to + " " + described(*push.grant);
    case stores::push::kind::freed:
      return to + " freed";
    case stores::push::kind::wanted:
      return to + " wanted";
    default:
      return to + " " + push.why.message();
  }
}
std::string described(const memory::push& push) {
  return described(sql_process_name(push.process), push);
}

// Both ledgers, given the same requests and compared.
class both {
 public:
  explicit both(sql_rules& rules) : rules_(rules) {}

  void pass(duration time) { now_ += std::chrono::duration_cast<std::chrono::microseconds>(time); }

  void attempt(const spi::claim_ptr& claim, std::uint64_t process) {
    memory::effects expected;
    const auto reference = reference_.attempt(time(), claim, process, std::nullopt, expected);
    const auto answer =
        sql::to_outcome(rules_.attempt(now_, *claim, sql_process_name(process)), claim->ttl);
    EXPECT_EQ(described(answer), described(reference)) << "attempt of " << name_of(*claim);
    claims_[claim->id] = claim;
    if (answer && std::holds_alternative<spi::granted>(*answer)) {
      fences_.emplace(std::get<spi::granted>(*answer).fence.value(), claim->id);
    }
    compare(expected, "attempt of " + name_of(*claim));
  }
  void leave(const spi::claim_ptr& claim, std::uint64_t process, sql_rules::remember how) {
    using remember = sql_rules::remember;
    if (how == remember::unless_here && !rules_.knows_unless_here()) how = remember::yes;
    memory::effects expected;
    const auto then = how == remember::yes ? memory::on_leave::remember : memory::on_leave::forget;
    const auto reference = reference_.leave(time(), *claim, process, then, expected);
    if (how == remember::unless_here && reference == spi::departure::gone) {
      reference_.leave(time(), *claim, process, memory::on_leave::remember, expected);
    }
    const auto answer = sql::to_departure(rules_.leave(now_, *claim, how));
    EXPECT_EQ(answer.value(), reference) << "leave of " << name_of(*claim);
    granted_.erase(claim->id);
    compare(expected, "leave of " + name_of(*claim));
  }
  // Together, and one after another.
  void renew(const std::vector<spi::claim_ptr>& claims, std::uint64_t process) {
    memory::effects expected;
    std::vector<spi::renewal> reference;
    for (const auto& each : claims) {
      reference.push_back(reference_.renew(time(), *each, process, expected));
    }
    const auto answer =
        sql::to_renewals(rules_.renew(now_, claims, sql_process_name(process)), claims.size());
    ASSERT_TRUE(answer) << answer.error().message();
    for (std::size_t i = 0; i < claims.size(); ++i) {
      EXPECT_EQ(described((*answer)[i]), described(reference[i]))
          << "renew of " << name_of(*claims[i]);
    }
    compare(expected, "renew of " + std::to_string(claims.size()));
  }
  void change(const spi::claim_ptr& claim, spi::mode to, std::uint64_t process) {
    memory::effects expected;
    const auto reference = reference_.change(time(), *claim, to, process, expected);
    const auto answer = sql::to_granted(rules_.change(now_, *claim, to, sql_process_name(process)));
    EXPECT_EQ(described(answer), described(reference)) << "change of " << name_of(*claim);
    if (answer) fences_.emplace(answer->fence.value(), claim->id);
    compare(expected, "change of " + name_of(*claim));
  }
  // True: `to` holds, and has the fence that the other had.
  bool transfer(const spi::claim_ptr& from, const spi::claim_ptr& to, std::uint64_t process,
                bool remember) {
    memory::effects expected;
    const auto reference = reference_.transfer(
        time(), from->id, to, process,
        remember ? memory::on_leave::remember : memory::on_leave::forget, expected);
    const auto answer =
        sql::to_granted(rules_.transfer(now_, from->id, *to, sql_process_name(process), remember));
    EXPECT_EQ(described(answer), described(reference)) << "transfer of " << name_of(*from);
    if (answer) {
      EXPECT_EQ(answer->fence.value(), granted_[from->id]) << name_of(*from);
      granted_[to->id] = granted_[from->id];
      auto claim = std::make_shared<spi::claim>(*to);
      claim->fence_block = claims_[from->id]->fence_block;
      claims_[to->id] = std::move(claim);
    }
    compare(expected, "transfer of " + name_of(*from));
    return answer.has_value();
  }
  void revoke(const spi::resource_id& resource, spi::revocation how) {
    memory::effects expected;
    const auto reference = reference_.revoke(time(), resource, how, "", expected);
    const auto answer =
        sql::to_holders(rules_.revoke(now_, resource, how == spi::revocation::force));
    EXPECT_EQ(answer->size(), reference.size());
    compare(expected, "revoke");
  }
  void change_latch(const spi::resource_id& resource, const spi::latch_change& change) {
    memory::effects expected;
    const auto reference = reference_.change_latch(time(), resource, change, expected);
    const auto answer = sql::to_latch(rules_.change_latch(now_, resource, change));
    EXPECT_EQ(described(answer), described(reference)) << "change of a latch";
    compare(expected, "change of a latch");
  }
  void read_latch(const spi::resource_id& resource) {
    memory::effects expected;
    const auto reference = reference_.read_latch(time(), resource, expected);
    const auto answer = sql::to_latch(rules_.read_latch(now_, resource));
    EXPECT_EQ(described(answer), described(reference)) << "a look at a latch";
    compare(expected, "a look at a latch");
  }
  // Who holds for how long, in the order of their fences, and who waits in which order.
  void compare_states(const spi::resource_id& resource) {
    memory::effects expected;
    const auto reference = reference_.inspect(time(), resource, expected);
    const auto answer = sql::to_state(rules_.inspect(now_, resource));
    EXPECT_EQ(described(*answer), described(reference)) << resource.name;
    compare(expected, "a look at " + resource.name);
  }

  // Claims that were offered something and have not been heard from since.
  std::set<spi::claim_id> offers;

 private:
  static std::string name_of(const spi::claim& claim) {
    return spi::public_id(claim.id) + ", mode " + std::to_string(static_cast<int>(claim.mode)) +
           (claim.fair ? ", fair" : "") + (claim.queued ? "" : ", try");
  }
  [[nodiscard]] spi::server_time time() const { return spi::server_time(now_); }

  void compare(const memory::effects& expected, const std::string& after) {
    std::multiset<std::string> wanted;
    for (const auto& each : expected.pushes) {
      wanted.insert(described(each));
      if (each.what == memory::push::kind::granted) offers.insert(each.claim);
    }
    std::multiset<std::string> heard;
    for (const auto& [process, message] : rules_.heard()) {
      const auto read = sql::to_notification(message);
      ASSERT_TRUE(read && read->push) << message;
      const auto& push = read->push;
      heard.insert(described(process, *push));
      if (push->grant) fences_.emplace(push->grant->fence.value(), push->claim);
    }
    EXPECT_EQ(heard, wanted) << "pushes of " << after;
    for (const auto& [fence, claim] : fences_) check_fence(claim, fence);
    fences_.clear();
  }

  // The reference's fences start at another number, so they are not compared: a grant's is greater
  // than all that were reserved before, or the one that the claim has.
  void check_fence(const spi::claim_id& id, std::uint64_t fence) {
    std::uint64_t& own = granted_[id];
    if (fence == own) return;
    own = fence;
    const spi::claim& claim = *claims_.at(id);
    std::uint64_t& highest = highest_[claim.resource.space + "/" + claim.resource.name];
    EXPECT_GT(fence, highest) << name_of(claim);
    highest = fence + claim.fence_block - 1;
  }

  sql_rules& rules_;
  memory::ledger reference_;
  std::chrono::microseconds now_{1'700'000'000'000'000};
  std::map<spi::claim_id, spi::claim_ptr> claims_;
  std::multimap<std::uint64_t, spi::claim_id> fences_;  // of the grants of one verb
  std::map<spi::claim_id, std::uint64_t> granted_;
  std::map<std::string, std::uint64_t> highest_;
};

struct request {
  spi::claim_ptr claim;
  std::uint64_t process = 0;
};

// Calm: mostly exclusive claims of one name that come and go, so that the fast paths are compared;
// else everything mixed, which leaves no fast path open for long.
class world {
 public:
  world(unsigned seed, both& ledgers)
      : random_(seed), calm_(seed % 2 == 0), space_(std::to_string(seed)), ledgers_(ledgers) {}

  void run() {
    for (int step = 0; step < 80 && !testing::Test::HasFailure(); ++step) {
      pass();
      act();
      // Not after each: a look moves a waiter out of its place for the fast path.
      if (pick(calm_ ? 20 : 4) != 0) continue;
      for (const char* name : {"lock", "semaphore"}) ledgers_.compare_states({space_, name});
    }
    // Longer than any lease: every claim is gone.
    ledgers_.pass(200s);
    for (const char* name : {"lock", "semaphore"}) ledgers_.compare_states({space_, name});
  }

 private:
  std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(random_()) % below; }

  void pass() {
    if (pick(12) != 0) return ledgers_.pass(std::chrono::microseconds(pick(1500)));
    // Some offers run out, and with them the turn of silent waiters.
    for (const request& each : requests_) {
      if (pick(3) == 0) continue;
      if (ledgers_.offers.contains(each.claim->id)) ledgers_.renew({each.claim}, each.process);
    }
    ledgers_.offers.clear();
    ledgers_.pass(std::chrono::milliseconds(pick(2500)));
  }

  void act() {
    const auto choice = pick(100);
    if (calm_ && choice < 90) return come_or_go();
    if (choice < 4) return act_on_latch();
    if (requests_.empty() || choice < 40) {
      requests_.push_back(make_request());
      return ledgers_.attempt(requests_.back().claim, requests_.back().process);
    }
    const std::size_t index = pick(static_cast<std::uint32_t>(requests_.size()));
    const request chosen = requests_[index];
    if (choice < 48) return ledgers_.attempt(chosen.claim, chosen.process);
    if (choice < 55) return ledgers_.renew({chosen.claim}, chosen.process);
    if (choice < 58) return transfer(requests_[index]);
    if (choice < 62) return ledgers_.renew(all_of(chosen.process), chosen.process);
    if (choice < 88) {
      using remember = sql_rules::remember;
      const auto how = pick(4);
      ledgers_.leave(chosen.claim, chosen.process,
                     how == 0   ? remember::yes
                     : how == 1 ? remember::unless_here
                                : remember::no);
      // Left claims are attempted again now and then: late duplicates.
      if (pick(4) != 0) requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(index));
    } else if (choice < 97) {
      const auto to = pick(2) == 0 ? spi::mode::exclusive : spi::mode::shared;
      ledgers_.change(chosen.claim, to, chosen.process);
    } else {
      const auto how = pick(2) == 0 ? spi::revocation::force : spi::revocation::safe;
      ledgers_.revoke(chosen.claim->resource, how);
    }
  }

  // To a claim that is new, or to itself; sometimes once more, as if the answer had been lost.
  void transfer(request& chosen) {
    const spi::claim_ptr before = chosen.claim;
    request next = make_request();
    auto claim = std::make_shared<spi::claim>(*next.claim);
    if (pick(4) == 0) claim->id = before->id;
    claim->resource = before->resource;
    claim->mode = before->mode;
    claim->permits = before->permits;
    claim->max = before->max;
    next.claim = std::move(claim);
    const bool remember = pick(4) == 0;
    bool moved = ledgers_.transfer(before, next.claim, next.process, remember);
    if (pick(4) == 0)
      moved = ledgers_.transfer(before, next.claim, next.process, remember) || moved;
    if (moved) chosen = next;
  }

  // Those who came first go first, nearly always.
  void come_or_go() {
    if (requests_.size() < 2 || pick(2) == 0) {
      requests_.push_back(make_request());
      return ledgers_.attempt(requests_.back().claim, requests_.back().process);
    }
    const std::size_t index =
        pick(10) == 0 ? pick(static_cast<std::uint32_t>(requests_.size())) : 0;
    const request chosen = requests_[index];
    if (pick(10) == 0) return ledgers_.renew({chosen.claim}, chosen.process);
    ledgers_.leave(chosen.claim, chosen.process, sql_rules::remember::no);
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  std::vector<spi::claim_ptr> all_of(std::uint64_t process) const {
    std::vector<spi::claim_ptr> all;
    for (const request& each : requests_) {
      if (each.process == process) all.push_back(each.claim);
    }
    const auto name = [](const spi::claim_ptr& each) { return each->resource.name; };
    std::ranges::stable_sort(all, {}, name);
    return all;
  }

  void act_on_latch() {
    const spi::resource_id resource{space_, pick(6) == 0 ? "lock" : "latch"};
    if (pick(4) == 0) return ledgers_.read_latch(resource);
    spi::latch_change change;
    change.what = pick(3) == 0 ? spi::latch_change::kind::set : spi::latch_change::kind::down;
    change.count = 1 + pick(2);
    change.id.bytes[0] = static_cast<std::uint8_t>(pick(6));
    change.id.bytes[1] = static_cast<std::uint8_t>(change.what);
    change.life = 5s;
    ledgers_.change_latch(resource, change);
  }

  request make_request() {
    auto claim = std::make_shared<spi::claim>();
    for (auto& byte : claim->id.bytes) byte = static_cast<std::uint8_t>(random_());
    claim->resource.space = space_;
    claim->ttl = std::chrono::milliseconds(100 + pick(5000));
    claim->lock_delay = std::chrono::milliseconds(pick(6) == 0 ? pick(500) : 0);
    claim->fair = pick(3) == 0;
    claim->queued = pick(5) != 0;
    claim->payload = "host:1:test";
    claim->renewed = pick(4) != 0;
    claim->fence_block = pick(4) == 0 ? 33 : 1;
    if (calm_ && pick(10) != 0) {
      claim->resource.name = "lock";
      return {claim, 1 + pick(3)};
    }
    if (pick(4) == 0) {
      claim->resource.name = "semaphore";
      claim->mode = spi::mode::permit;
      claim->max = pick(20) == 0 ? 5 : 4;
      claim->permits = 1 + pick(4);
    } else {
      claim->resource.name = pick(30) == 0 ? "semaphore" : pick(30) == 0 ? "latch" : "lock";
      claim->mode = pick(2) == 0 ? spi::mode::exclusive : spi::mode::shared;
    }
    return {claim, 1 + pick(3)};
  }

  std::mt19937 random_;
  const bool calm_;
  const std::string space_;
  both& ledgers_;
  std::vector<request> requests_;
};

}  // namespace

void compare_with_reference(sql_rules& rules, unsigned seeds) {
  both ledgers(rules);
  for (unsigned seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    world(seed, ledgers).run();
  }
}

}  // namespace holdfast::test

#endif
