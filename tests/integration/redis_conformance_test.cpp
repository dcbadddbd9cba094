// The scripts against the ledger: the same verbs at the same times, in random order, must be
// answered alike. The ledger gets the time that the server answered.
#include "redis_conformance_subject.hpp"
#include "stores/redis/layout.hpp"
#include "support/rounds.hpp"

#include <random>
#include <set>
#include <thread>

namespace holdfast::test {

namespace {

using memory::process_id;

// One resource, several processes; by functions where the seed is even, else by scripts.
class world {
 public:
  world(std::uint16_t port, std::uint64_t seed, about what)
      : caller_(port, times_for(what), seed % 2 == 0),
        random_(seed),
        resource_{"conformance", "seed " + std::to_string(seed)},
        place_(redis::place_of(resource_)),
        ledger_(short_rules(what), [this](process_id who) { return !deaf_.contains(who); }),
        about_(what),
        ordinary_(what != about::anything && what != about::semaphore) {
    for (process_id who = 0; who < processes; ++who) hear(who);
  }

  void run(int steps) {
    const std::string wrapping = caller_.node().options().functions ? ", functions" : ", scripts";
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(resource_.name + wrapping + ", step " + std::to_string(i));
      if (pick(about_ == about::line ? 200 : 12) == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(pick(20'000)));
      if (pick(about_ == about::line ? 500 : (ordinary_ ? 100 : 25)) == 0) toggle(pick(processes));
      floor_ = greatest_;
      act(about_ == about::alone ? 0 : pick(processes));
      compare_pushes();
    }
  }

 private:
  static constexpr process_id processes = 4;

  [[nodiscard]] std::size_t claims_at_most() const {
    if (about_ == about::alone) return 2;
    return about_ == about::line ? 24 : 14;
  }

  struct known_claim {
    spi::claim_ptr claim;
    process_id process;
  };

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }

  void hear(process_id who) {
    listeners_[who] = std::make_shared<message_listener>();
    subscriptions_[who] = caller_.listen(place_.partition, process_name(who), listeners_[who]);
  }
  void toggle(process_id who) {
    if (deaf_.erase(who) > 0) return hear(who);
    deaf_.insert(who);
    subscriptions_[who].reset();
    ASSERT_TRUE(caller_.deaf(place_.partition, process_name(who)));
    listeners_[who] = std::make_shared<message_listener>();
  }

  known_claim newcomer(process_id who) {
    spi::claim claim;
    claim.id.bytes[0] = static_cast<std::uint8_t>(++numbers_ >> 8U);
    claim.id.bytes[1] = static_cast<std::uint8_t>(numbers_);
    claim.resource = resource_;
    claim.ttl = std::chrono::milliseconds((ordinary_ ? 100 : 5) + pick(40));
    claim.fair = pick(ordinary_ ? 8 : 2) == 0;
    claim.queued = pick(about_ == about::line ? 30 : 6) != 0;
    claim.renewed = pick(5) != 0;
    claim.lock_delay = !ordinary_ && pick(8) == 0 ? duration(3ms) : duration{0};
    claim.fence_block = static_cast<std::uint32_t>(1 + pick(3));
    const bool semaphore = about_ == about::semaphore || about_ == about::permits;
    if (semaphore && pick(20) != 0) {
      claim.mode = spi::mode::permit;
      claim.max = pick(20) == 0 ? 4 : 3;
      claim.permits = static_cast<std::uint32_t>(1 + (ordinary_ && pick(8) != 0 ? 0 : pick(3)));
    } else if (about_ == about::line) {
      if (pick(300) == 0) claim.mode = spi::mode::shared;
      if (pick(3) == 0) claim.payload.assign(pick(250), 'p');
    } else if (about_ == about::readers ? pick(5) != 0 : pick(ordinary_ ? 20 : 2) == 0) {
      claim.mode = spi::mode::shared;
    }
    return {std::make_shared<const spi::claim>(std::move(claim)), who};
  }

  redis::sender from(process_id who) { return {process_name(who), offer_for(about_)}; }
  std::vector<std::string> keys() { return {place_.state, redis::observed_key(place_.partition)}; }
  std::string bytes(const known_claim& one, std::optional<spi::server_time> not_after = {}) {
    return redis::claim_bytes(*one.claim, from(one.process), redis::queueing::allowed, not_after);
  }

  void act(process_id who) {
    if (pick(about_ == about::line ? 200 : 60) == 0) return revoke();
    if (pick(30) == 0) return inspect();
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (claims_[i].process == who) own.push_back(i);
    }
    if (claims_.size() <= 4 || claims_.size() >= claims_at_most()) growing_ = claims_.size() <= 4;
    const bool comes = about_ == about::line ? (pick(8) != 0) == growing_
                                             : pick(3) == 0;  // a queue grows, then shrinks
    if (own.empty() || (comes && claims_.size() < claims_at_most())) {
      claims_.push_back(newcomer(who));
      return attempt(claims_.back());
    }
    std::size_t index = own[pick(own.size())];
    if (about_ == about::line && pick(25) != 0) {  // mostly the holder releases
      for (std::size_t i = 0; i < claims_.size(); ++i) {
        if (claims_[i].claim->id == last_granted_) index = i;
      }
    }
    const known_claim one = claims_[index];
    const bool leaves =
        about_ == about::line ? pick(25) != 0 : about_ == about::alone && pick(4) != 0;
    if (!leaves && pick(12) == 0) return transfer(index);
    switch (leaves ? 7 : pick(8)) {
      case 0:
      case 1:
        return attempt(one);
      case 2:
      case 3:
        return renew(one);
      case 4:
        return change(one, pick(2) == 0 ? spi::mode::exclusive : spi::mode::shared);
      default:
        // Now and then its id is remembered, and it is attempted again.
        if (pick(6) != 0) claims_.erase(claims_.begin() + static_cast<std::ptrdiff_t>(index));
        if (about_ == about::alone && pick(2) == 0 && one.claim->lock_delay == duration{0}) {
          claims_.push_back(newcomer(who));
          return leave_and_attempt(one, claims_.back());
        }
        return leave(one);
    }
  }

  void attempt(const known_claim& one) {
    // Some come too late.
    std::optional<spi::server_time> not_after;
    if (pick(10) == 0 && last_ != spi::server_time{})
      not_after = last_ + (pick(2) == 0 ? duration(-1ms) : duration(1min));
    const redis::reply raw = pick(2) == 0 ? batch("a", {bytes(one, not_after)}).at(0)
                                          : caller_.run(caller_.scripts().attempt, keys(),
                                                        {bytes(one, not_after), place_.written});
    check_attempt(one, raw, not_after);
  }
  void check_attempt(const known_claim& one, const redis::reply& raw,
                     std::optional<spi::server_time> not_after) {
    const auto answer = redis::answer_of(raw);
    ASSERT_TRUE(answer) << raw.text;
    last_ = answer->at;
    const auto theirs = redis::outcome_of(*answer, *one.claim);
    const auto ours = ledger_.attempt(answer->at, one.claim, one.process, not_after, out_);
    log("attempt", one, text_of(theirs));
    ASSERT_EQ(text_of(theirs), text_of(ours)) << history_;
    if (theirs && std::holds_alternative<spi::granted>(*theirs)) {
      check_fence(std::get<spi::granted>(*theirs).fence, one.claim->id);
    }
  }

  // Several calls as one: answered as if each had been sent alone.
  std::vector<redis::reply> batch(const std::string& letters,
                                  const std::vector<std::string>& arguments) {
    std::vector<std::string> all_keys;
    for (std::size_t i = 0; i < letters.size(); ++i) {
      for (const std::string& each : keys()) all_keys.push_back(each);
    }
    std::vector<std::string> words{letters};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const redis::reply raw = caller_.run(caller_.scripts().batch, all_keys, words);
    if (raw.elements.size() != letters.size()) {
      ADD_FAILURE() << "not an answer for each: " << raw.text;
      return std::vector<redis::reply>(letters.size());
    }
    return raw.elements;
  }

  // A new grant has a greater fence than all before it; the same grant keeps its own.
  void check_fence(fence_token fence, const spi::claim_id& id) {
    if (fence <= fences_[id]) return;  // a push may be overtaken by a later answer
    EXPECT_GT(fence.value(), floor_) << spi::public_id(id) << history_;
    greatest_ = std::max(greatest_, fence.value());
    fences_[id] = fence;
    last_granted_ = id;
  }
  void log(const std::string& what, const known_claim& one, const std::string& answer) {
    history_ += "\n" + what + " " + spi::public_id(one.claim->id) + " of " +
                std::to_string(one.process) + ": " + answer;
    if (history_.size() > 4'000) history_.erase(0, 1'000);
  }

  void leave(const known_claim& one) {
    const bool remember = about_ != about::alone && pick(ordinary_ ? 10 : 3) == 0;
    const bool delays = one.claim->lock_delay > duration{0};
    const std::string leaving = redis::leaving_bytes(*one.claim, from(one.process));
    const redis::reply raw =
        pick(2) == 0 && !remember && !delays
            ? batch("l", {leaving}).at(0)
            : caller_.run(caller_.scripts().leave, keys(),
                          {leaving, remember ? "1" : (delays ? "0" : ""), place_.written});
    check_leave(one, raw, remember);
  }
  void check_leave(const known_claim& one, const redis::reply& raw, bool remember) {
    const auto answer = redis::answer_of(raw);
    ASSERT_TRUE(answer) << raw.text;
    if (answer->dated()) last_ = answer->at;
    const auto ours =
        ledger_.leave(last_, *one.claim, one.process,
                      remember ? memory::on_leave::remember : memory::on_leave::forget, out_);
    log("leave", one, std::to_string(answer->kind) + (answer->dated() ? "" : ", undated"));
    // A hold that has ended without a successor may be told that it was the holder.
    if (!answer->dated() && ours == spi::departure::gone) {
      ASSERT_EQ(fences_[one.claim->id].value(), greatest_) << history_;
      return;
    }
    ASSERT_EQ(answer->kind, static_cast<int>(ours)) << history_;
  }

  // In one batch, as a thread sends them if it does not wait for the answer of its release.
  void leave_and_attempt(const known_claim& gone, const known_claim& next) {
    const auto answers =
        batch("la", {redis::leaving_bytes(*gone.claim, from(gone.process)), bytes(next)});
    check_leave(gone, answers[0], false);
    check_attempt(next, answers[1], {});
  }

  void renew(const known_claim& one) {
    const redis::reply raw = caller_.run(caller_.scripts().renew, keys(), {bytes(one)});
    ASSERT_EQ(raw.elements.size(), 2U) << raw.text;
    last_ = redis::to_server_time(raw.elements[0].integer);
    const auto theirs = redis::renewal_of(raw.elements[1], last_);
    const auto ours = ledger_.renew(last_, *one.claim, one.process, out_);
    log("renew", one, text_of(theirs));
    ASSERT_EQ(text_of(theirs), text_of(ours)) << history_;
    if (theirs.grant.fence != fence_token{}) check_fence(theirs.grant.fence, one.claim->id);
  }

  void change(const known_claim& one, spi::mode to) {
    const redis::reply raw = caller_.run(caller_.scripts().change, keys(),
                                         {bytes(one), std::to_string(static_cast<int>(to))});
    const auto answer = redis::answer_of(raw);
    ASSERT_TRUE(answer) << raw.text;
    last_ = answer->at;
    const auto ours = ledger_.change(answer->at, *one.claim, to, one.process, out_);
    const std::string theirs =
        answer->kind < 0 ? std::string(describe(redis::refusal_of(*answer, one.claim.get()).code))
                         : text_of(redis::granted_of(*answer, 2));
    log("change", one, theirs);
    ASSERT_EQ(theirs, ours ? text_of(*ours) : std::string(describe(ours.error().code))) << history_;
    if (answer->kind > 0) check_fence(redis::granted_of(*answer, 2).fence, one.claim->id);
  }

  // To a claim that is new, or to itself; sometimes once more, as if the answer had been lost.
  void transfer(std::size_t index) {
    const known_claim before = claims_[index];
    known_claim next = newcomer(pick(processes));
    auto claim = std::make_shared<spi::claim>(*next.claim);
    if (pick(4) == 0) claim->id = before.claim->id;
    // The new holder's values for these do not count.
    claim->mode = before.claim->mode;
    claim->permits = before.claim->permits;
    claim->max = before.claim->max;
    next.claim = std::move(claim);
    const bool remember = pick(4) == 0;
    for (std::uint64_t times = 1 + pick(4) / 3; times > 0; --times) {
      const std::string id(reinterpret_cast<const char*>(before.claim->id.bytes.data()),
                           before.claim->id.bytes.size());
      const redis::reply raw =
          caller_.run(caller_.scripts().transfer, keys(), {bytes(next), id, remember ? "1" : "0"});
      const auto answer = redis::answer_of(raw);
      ASSERT_TRUE(answer) << raw.text;
      if (answer->dated()) last_ = answer->at;
      const auto ours =
          ledger_.transfer(last_, before.claim->id, next.claim, next.process,
                           remember ? memory::on_leave::remember : memory::on_leave::forget, out_);
      const std::string theirs =
          answer->kind < 0
              ? std::string(describe(redis::refusal_of(*answer, next.claim.get()).code))
              : text_of(redis::granted_of(*answer, 2));
      log("transfer to " + spi::public_id(next.claim->id), before, theirs);
      ASSERT_EQ(theirs, ours ? text_of(*ours) : std::string(describe(ours.error().code)))
          << history_;
      if (!ours) return;
      EXPECT_EQ(redis::granted_of(*answer, 2).fence, fences_[before.claim->id]) << history_;
      fences_[next.claim->id] = fences_[before.claim->id];
      if (last_granted_ == before.claim->id) last_granted_ = next.claim->id;
      claims_[index] = next;
    }
  }

  void revoke() {
    const bool force = pick(2) == 0;
    const redis::reply raw = caller_.run(caller_.scripts().revoke, keys(), {force ? "1" : "0"});
    const auto answer = redis::answer_of(raw);
    ASSERT_TRUE(answer) << raw.text;
    last_ = answer->at;
    const auto ours = ledger_.revoke(
        answer->at, resource_, force ? spi::revocation::force : spi::revocation::safe, "", out_);
    ASSERT_EQ(raw.elements.size() - 2, ours.size()) << "revoke";
  }

  void inspect() {
    const redis::reply raw = caller_.run(caller_.scripts().inspect, keys(), {});
    const auto answer = redis::answer_of(raw);
    ASSERT_TRUE(answer) << raw.text;
    last_ = answer->at;
    const auto ours = ledger_.inspect(answer->at, resource_, out_);
    std::vector<std::string> there;
    std::vector<std::string> here;
    for (const redis::reply& each : raw.elements.at(2).elements) {
      const auto holder = redis::holder_of(each.words(), last_);
      there.push_back(holder->shown.claim + " " + std::to_string(*holder->shown.remaining / 1us));
    }
    for (const spi::holder& each : ours.holders) {
      here.push_back(each.claim + " " + std::to_string(*each.remaining / 1us));
    }
    EXPECT_THAT(there, testing::UnorderedElementsAreArray(here));
    ASSERT_EQ(raw.elements.at(3).elements.size(), ours.waiters.size());
    for (std::size_t i = 0; i < ours.waiters.size(); ++i) {
      EXPECT_EQ(redis::waiter_of(raw.elements[3].elements[i].words(), last_)->claim,
                ours.waiters[i].claim);
    }
  }

  // Grants and losses reach the same processes. "Wanted" and "free" are only hints.
  void compare_pushes() {
    std::map<process_id, std::vector<std::string>> expected;
    for (const memory::push& each : out_.pushes) {
      if (deaf_.contains(each.process)) continue;
      if (each.what == memory::push::kind::granted) {
        expected[each.process].push_back(spi::public_id(each.claim) + text_of(*each.grant));
      } else if (each.what == memory::push::kind::gone) {
        expected[each.process].push_back(spi::public_id(each.claim) + "gone");
      }
    }
    out_ = {};
    for (process_id who = 0; who < processes; ++who) {
      if (deaf_.contains(who)) continue;
      std::vector<std::string> heard;
      const auto collect = [&] {
        for (const redis::push& each : listeners_[who]->take()) {
          if (each.what == redis::push::kind::granted) {
            heard.push_back(spi::public_id(each.claim) + text_of(each.grant));
            history_ += "\npushed " + heard.back();
            check_fence(each.grant.fence, each.claim);
          } else if (each.what == redis::push::kind::gone) {
            heard.push_back(spi::public_id(each.claim) + "gone");
          }
        }
        return heard.size() >= expected[who].size();
      };
      if (!expected[who].empty()) {
        EXPECT_TRUE(eventually(collect));
      }
      collect();
      EXPECT_THAT(heard, testing::UnorderedElementsAreArray(expected[who])) << "pushes" << history_;
    }
  }

  script_caller caller_;
  std::mt19937_64 random_;
  const spi::resource_id resource_;
  const redis::place place_;
  std::set<process_id> deaf_;
  memory::ledger ledger_;
  const about about_;
  const bool ordinary_;
  memory::effects out_;
  std::map<process_id, std::shared_ptr<message_listener>> listeners_;
  std::map<process_id, std::unique_ptr<spi::subscription>> subscriptions_;
  std::vector<known_claim> claims_;
  std::map<spi::claim_id, fence_token> fences_;
  spi::claim_id last_granted_{};
  bool growing_ = true;
  std::uint64_t greatest_ = 0;
  std::uint64_t floor_ = 0;  // the greatest before this step
  std::uint16_t numbers_ = 0;
  std::string history_;  // the last verbs, for messages
  spi::server_time last_{};
};

}  // namespace

// Broken if it fails: the scripts grant, refuse, order or end claims by other rules than every
// other store.
TEST(redis_conformance, the_scripts_answer_as_the_ledger_does) {
  const redis_server server;
  const std::uint64_t seeds = rounds<std::uint64_t>(21, 500);
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    const about what = subjects[seed % std::size(subjects)];
    world one(server.port(), seed, what);
    one.run(what == about::line ? 600 : 300);
  }
}

}  // namespace holdfast::test
