// The ledger under random verbs, times, losses of reach and repetitions, judged after every step by
// an oracle that knows the promises but not the code: what each process was told must never
// contradict the promises, whatever order things come in.
#include "ledger_harness.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <random>

namespace holdfast::memory {

namespace {

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
  spi::server_time until{};   // of the hold, or of the waiter's lease
  bool offer = false;
};

class world {
 public:
  explicit world(std::uint64_t seed) : random_(seed), seed_(seed) {
    for (std::size_t i = 0; i < names; ++i) {
      // The last name is a semaphore, the others are locks.
      semaphore_.push_back(i + 1 == names);
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step_ = i;
      touched_ = names;
      now_ += duration(
          static_cast<duration::rep>(pick(10) == 0 ? pick(3'000'000'000) : pick(2'000'000)));
      const process_id process = pick(processes);
      if (pick(40) == 0) toggle_reach(process);
      if (pick(100) == 0) {
        force(pick(names));
      } else {
        act(process);
      }
      check();
    }
    finish();
  }

 private:
  static constexpr std::size_t names = 4;
  static constexpr std::size_t processes = 6;
  static constexpr process_id nobody = 99;
  static constexpr std::size_t claims_at_most = 40;
  static constexpr std::uint32_t max_permits = 3;

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }

  [[nodiscard]] std::string where() const {
    return "seed " + std::to_string(seed_) + " step " + std::to_string(step_);
  }

  static std::size_t name_of(const view& claim) {
    return static_cast<std::size_t>(claim.claim->resource.name[0] - 'a');
  }

  void toggle_reach(process_id process) {
    if (!unreachable_.erase(process)) unreachable_.insert(process);
  }

  void act(process_id process) {
    std::vector<std::uint64_t> own;
    for (const auto& [number, claim] : claims_) {
      if (claim.process == process) own.push_back(number);
    }
    if (own.empty() || (pick(3) == 0 && claims_.size() < claims_at_most)) {
      attempt(place(process), process);
      return;
    }
    const std::uint64_t number = own[pick(own.size())];
    switch (pick(8)) {
      case 0:
      case 1:
        attempt(number, process);
        break;
      case 2:
      case 3:
      case 4:
        leave(number, process);
        break;
      case 5:
      case 6:
        renew(number, process);
        break;
      default:
        change(number, process);
    }
  }

  std::uint64_t place(process_id process) {
    const std::size_t at = pick(names);
    wish wish;
    wish.name = std::string(1, static_cast<char>('a' + at));
    wish.mode = semaphore_[at] ? spi::mode::permit
                : pick(2) == 0 ? spi::mode::shared
                               : spi::mode::exclusive;
    wish.permits = static_cast<std::uint32_t>(1 + pick(max_permits));
    wish.max = max_permits;
    // One name is only fair, one only unfair, the others mixed.
    wish.fair = at == 0 || (at != 1 && pick(2) == 0);
    wish.queued = pick(5) != 0;
    wish.renewed = pick(4) != 0;
    wish.ttl = std::chrono::milliseconds(100 + pick(5'000));
    wish.lock_delay = std::chrono::milliseconds(pick(6) == 0 ? pick(500) : 0);
    wish.fence_block = static_cast<std::uint32_t>(1 + pick(3));
    const std::uint64_t number = ++last_number_;
    view& fresh = claims_[number];
    fresh.claim = make_claim(number, wish);
    fresh.process = process;
    return number;
  }

  // What must be over by now on this name, as the verb that follows will find it.
  void expire(std::size_t name, process_id speaker) {
    touched_ = name;
    silent_.erase(speaker);
    for (auto& [number, claim] : claims_) {
      if (name_of(claim) != name || claim.is == view::state::none || claim.until > now_) continue;
      if (claim.is == view::state::held) {
        if (claim.claim->lock_delay > 0s) {
          shut_[name] = std::max(shut_[name], claim.until + claim.claim->lock_delay);
        }
        if (claim.offer && claim.process != speaker) silent_.insert(claim.process);
      }
      claim.is = view::state::none;
    }
  }

  void attempt(std::uint64_t number, process_id process) {
    view& claim = claims_.at(number);
    const std::size_t name = name_of(claim);
    expire(name, process);
    effects out;
    const auto answer = book_.attempt(now_, claim.claim, process, std::nullopt, out);
    ASSERT_TRUE(answer.has_value()) << where() << " " << answer.error().message();
    // Joined before anything was granted in this step, so that its place is judged.
    const bool queued = answer->index() == 1 && std::get<spi::blocked>(*answer).queued;
    if (queued) {
      if (claim.is != view::state::waiting) {
        claim.is = view::state::waiting;
        claim.arrival = ++arrivals_;
        claim.since = now_;
      }
      claim.until = now_ + rules_.waiter_lease;
    }
    const auto* grant = std::get_if<spi::granted>(&*answer);
    take(out, number, grant);
    if (grant == nullptr) {
      EXPECT_GT(std::get<spi::blocked>(*answer).recheck_after, 0s) << where();
      EXPECT_EQ(queued, claim.claim->queued) << where();
      if (!claim.claim->queued) claims_.erase(number);
    }
  }

  void leave(std::uint64_t number, process_id process) {
    const view claim = claims_.at(number);
    const std::size_t name = name_of(claim);
    expire(name, process);
    const view now_is = claims_.at(number);
    effects out;
    const spi::departure left = book_.leave(
        now_, *claim.claim, process, pick(2) == 0 ? on_leave::remember : on_leave::forget, out);
    const spi::departure expected = now_is.is == view::state::held ? spi::departure::was_holder
                                    : now_is.is == view::state::waiting
                                        ? spi::departure::was_waiting
                                        : spi::departure::gone;
    EXPECT_EQ(left, expected) << where();
    claims_.erase(number);
    take(out);
    // Replayed: gone, and nobody else is touched.
    if (pick(4) == 0) {
      effects again;
      EXPECT_EQ(book_.leave(now_, *claim.claim, process, on_leave::forget, again),
                spi::departure::gone)
          << where();
      take(again);
    }
  }

  void renew(std::uint64_t number, process_id process) {
    view& claim = claims_.at(number);
    const std::size_t name = name_of(claim);
    expire(name, process);
    effects out;
    const spi::renewal answer = book_.renew(now_, *claim.claim, process, out);
    const bool held =
        answer.state == spi::hold_state::renewed || answer.state == spi::hold_state::held;
    take(out, number, held ? &answer.grant : nullptr);
    switch (answer.state) {
      case spi::hold_state::renewed:
      case spi::hold_state::held:
        break;
      case spi::hold_state::waiting:
        EXPECT_EQ(claim.is, view::state::waiting) << where();
        claim.until = now_ + rules_.waiter_lease;
        break;
      default:
        EXPECT_EQ(claim.is, view::state::none) << where();
        claims_.erase(number);
    }
  }

  void change(std::uint64_t number, process_id process) {
    view& claim = claims_.at(number);
    const std::size_t name = name_of(claim);
    if (semaphore_[name] || claim.is != view::state::held || claim.until <= now_) return;
    expire(name, process);
    const spi::mode to = claim.mode == spi::mode::shared ? spi::mode::exclusive : spi::mode::shared;
    effects out;
    const auto answer = book_.change(now_, *claim.claim, to, process, out);
    if (!answer) {
      take(out);
      EXPECT_EQ(answer.error(), errc::would_deadlock) << where();
      EXPECT_TRUE(holding(name) > 1 || shut_[name] > now_) << where();
      return;
    }
    EXPECT_GT(answer->fence.value(), fences_[name]) << where();
    // Its own fence was drawn before those of readers that came in by it.
    claim.mode = to;
    claim.fence = answer->fence.value();
    fences_[name] = claim.fence + claim.claim->fence_block - 1;
    take(out, number, &*answer);
  }

  void force(std::size_t name) {
    expire(name, nobody);
    effects out;
    const std::size_t before = holding(name);
    const spi::resource_id resource{"", std::string(1, static_cast<char>('a' + name))};
    const auto taken = book_.revoke(now_, resource, spi::revocation::force, "", out);
    EXPECT_GE(taken.size(), before) << where();
    // Those granted by the first half of the step are taken away by the second.
    take(out);
    for (const push& each : out.pushes) {
      if (each.what != push::kind::gone) continue;
      std::erase_if(claims_,
                    [&](const auto& entry) { return entry.second.claim->id == each.claim; });
    }
  }

  std::size_t holding(std::size_t name) {
    return static_cast<std::size_t>(
        std::count_if(claims_.begin(), claims_.end(), [name](const auto& entry) {
          return name_of(entry.second) == name && entry.second.is == view::state::held;
        }));
  }

  // All grants of one step, pushed and answered, in the order in which they were made.
  void take(const effects& out, std::uint64_t speaker = 0, const spi::granted* answer = nullptr) {
    std::map<std::uint64_t, std::pair<std::uint64_t, spi::granted>> grants;
    if (answer != nullptr) grants[answer->fence.value()] = {speaker, *answer};
    for (const push& each : out.pushes) {
      if (each.what != push::kind::granted) continue;
      const auto found = std::find_if(claims_.begin(), claims_.end(), [&](const auto& entry) {
        return entry.second.claim->id == each.claim;
      });
      ASSERT_NE(found, claims_.end()) << where() << ": granted to one that left";
      EXPECT_NE(found->first, speaker) << where() << ": who speaks is answered, not pushed to";
      EXPECT_EQ(found->second.is, view::state::waiting) << where();
      EXPECT_TRUE(reachable(found->second)) << where();
      EXPECT_TRUE(each.grant->offer) << where();
      EXPECT_FALSE(grants.contains(each.grant->fence.value())) << where() << ": a fence twice";
      grants[each.grant->fence.value()] = {found->first, *each.grant};
    }
    for (const auto& [fence, entry] : grants) granted(entry.first, entry.second);
  }

  void granted(std::uint64_t number, const spi::granted& grant) {
    view& claim = claims_.at(number);
    const std::size_t name = name_of(claim);
    if (claim.is == view::state::held) {
      EXPECT_EQ(grant.fence.value(), claim.fence) << where() << ": a fence changed during a hold";
      if (!claim.offer && !claim.claim->renewed) {
        EXPECT_EQ(now_ + grant.ttl, claim.until) << where();
      }
    } else {
      EXPECT_GT(grant.fence.value(), fences_[name]) << where() << ": a fence did not grow";
      EXPECT_LE(shut_[name], now_) << where() << ": granted while shut";
      judge_order(number);
      fences_[name] = grant.fence.value() + claim.claim->fence_block - 1;
      claim.fence = grant.fence.value();
      claim.mode = claim.claim->mode;
    }
    EXPECT_LE(grant.ttl, claim.claim->ttl) << where();
    claim.is = view::state::held;
    claim.offer = grant.offer;
    claim.until = now_ + grant.ttl;
  }

  [[nodiscard]] bool reachable(const view& claim) const {
    return !unreachable_.contains(claim.process) && !silent_.contains(claim.process);
  }

  void judge_order(std::uint64_t number) {
    const view& claim = claims_.at(number);
    for (const auto& [other, earlier] : claims_) {
      if (other == number || name_of(earlier) != name_of(claim)) continue;
      if (earlier.is != view::state::waiting || !reachable(earlier)) continue;
      if (claim.is == view::state::waiting) {
        EXPECT_GT(earlier.arrival, claim.arrival) << where() << ": overtaken in line";
      } else {
        EXPECT_FALSE(earlier.claim->fair) << where() << ": a fair waiter was overtaken";
        EXPECT_FALSE(claim.claim->fair) << where() << ": a fair newcomer overtook";
        EXPECT_FALSE(claim.claim->mode == spi::mode::shared &&
                     earlier.claim->mode == spi::mode::exclusive)
            << where() << ": a reader overtook a writer";
      }
    }
  }

  // Nobody beside an exclusive holder, permits within max, and nobody waits for what is free.
  void check() {
    for (std::size_t name = 0; name < names; ++name) {
      std::size_t count = 0, alone = 0, line = 0;
      std::uint64_t used = 0;
      const view* first = nullptr;
      for (const auto& [number, claim] : claims_) {
        if (name_of(claim) != name || claim.until <= now_) continue;
        if (claim.is == view::state::held) {
          ++count;
          if (claim.mode == spi::mode::exclusive) ++alone;
          if (claim.mode == spi::mode::permit) used += claim.claim->permits;
        } else if (claim.is == view::state::waiting) {
          ++line;
          if (!reachable(claim)) continue;
          if (first == nullptr || claim.arrival < first->arrival) first = &claim;
        }
      }
      EXPECT_TRUE(alone == 0 || count == 1) << where() << ": a writer is not alone";
      EXPECT_LE(used, max_permits) << where() << ": too many permits";
      if (name == touched_ && first != nullptr) progress(*first, count, alone, used, line);
    }
  }

  void progress(const view& first, std::size_t count, std::size_t alone, std::uint64_t used,
                std::size_t line) {
    const std::size_t name = name_of(first);
    if (shut_[name] > now_) return;
    const bool may = first.claim->mode == spi::mode::exclusive ? count == 0
                     : first.claim->mode == spi::mode::shared
                         ? alone == 0
                         : used + first.claim->permits <= max_permits;
    const bool only_told =
        !first.claim->fair && line == 1 && now_ - first.since <= rules_.hand_over_after;
    EXPECT_TRUE(!may || only_told) << where() << ": waits for what is free";
  }

  void finish() {
    while (!claims_.empty() && !::testing::Test::HasFailure()) {
      const auto [number, claim] = *claims_.begin();
      leave(number, claim.process);
      check();
    }
    EXPECT_TRUE(book_.empty()) << where() << ": something was left behind";
    effects out;
    now_ += 120s;
    EXPECT_EQ(book_.leave(now_, *make_claim(1), 1, on_leave::forget, out), spi::departure::gone);
    EXPECT_EQ(book_.tombstones(), 0U) << where();
  }

  std::mt19937_64 random_;
  std::uint64_t seed_;
  int step_ = 0;
  memory::rules rules_{.waiter_lease = std::chrono::seconds(8)};
  std::set<process_id> unreachable_;
  memory::ledger book_{rules_, [this](process_id id) { return !unreachable_.contains(id); }};
  spi::server_time now_{1000s};
  std::uint64_t last_number_ = 0;
  std::uint64_t arrivals_ = 0;
  std::size_t touched_ = names;
  std::vector<bool> semaphore_;
  std::map<std::uint64_t, view> claims_;
  std::set<process_id> silent_;
  std::map<std::size_t, std::uint64_t> fences_;
  std::map<std::size_t, spi::server_time> shut_;
};

}  // namespace

class ledger_random : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ledger_random, keeps_its_promises_over_many_random_steps) { world(GetParam()).run(20'000); }

INSTANTIATE_TEST_SUITE_P(seeds, ledger_random, ::testing::Range<std::uint64_t>(1, 11));

}  // namespace holdfast::memory
