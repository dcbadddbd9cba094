// The ledger under random verbs, times, losses of reach, repetitions and late duplicates. After
// every step an oracle judges: what each process was told must never contradict the promises.
#include "ledger_oracle.hpp"

#include <random>

namespace holdfast::memory {

namespace {

class world {
 public:
  explicit world(std::uint64_t seed) : random_(seed), seed_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      oracle_.where = "seed " + std::to_string(seed_) + " step " + std::to_string(i);
      // Mostly close together, sometimes longer than an offer.
      const std::uint64_t passed = pick(10) == 0 ? pick(3'000'000'000) : pick(2'000'000);
      oracle_.now += std::chrono::nanoseconds(passed);
      const process_id process = pick(processes);
      if (pick(40) == 0) toggle_reach(process);
      act(process);
    }
    finish();
  }

 private:
  static constexpr std::size_t processes = 6;
  static constexpr process_id nobody = 99;
  static constexpr std::size_t claims_at_most = 40;
  static constexpr std::uint32_t max_permits = 3;
  // Only fair, only unfair, mixed, and a semaphore.
  static constexpr const char* names[] = {"fair", "unfair", "mixed", "semaphore"};

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }

  void toggle_reach(process_id process) {
    if (!oracle_.unreachable.erase(process)) oracle_.unreachable.insert(process);
  }

  void act(process_id process) {
    if (pick(100) == 0) return revoke(names[pick(std::size(names))]);
    if (pick(50) == 0 && !left_.empty()) return late_duplicate(process);
    std::vector<std::uint64_t> own;
    for (const auto& [number, claim] : oracle_.claims) {
      if (claim.process == process) own.push_back(number);
    }
    if (own.empty() || (pick(3) == 0 && oracle_.claims.size() < claims_at_most)) {
      return attempt(newcomer(process), process);
    }
    const std::uint64_t number = own[pick(own.size())];
    switch (pick(8)) {
      case 0:
      case 1:
        return attempt(number, process);
      case 2:
      case 3:
      case 4:
        return leave(number, process);
      case 5:
      case 6:
        return renew(number, process);
      default:
        return change(number, process);
    }
  }

  std::uint64_t newcomer(process_id process) {
    const std::size_t at = pick(std::size(names));
    request request;
    request.name = names[at];
    request.mode = pick(2) == 0 ? spi::mode::shared : spi::mode::exclusive;
    if (request.name == "semaphore") request.mode = spi::mode::permit;
    request.permits = static_cast<std::uint32_t>(1 + pick(max_permits));
    request.max = max_permits;
    request.fair = request.name == "fair" || (request.name != "unfair" && pick(2) == 0);
    request.queued = pick(5) != 0;
    request.renewed = pick(4) != 0;
    request.ttl = std::chrono::milliseconds(100 + pick(5'000));
    request.lock_delay = std::chrono::milliseconds(pick(6) == 0 ? pick(500) : 0);
    request.fence_block = static_cast<std::uint32_t>(1 + pick(3));
    const std::uint64_t number = ++last_number_;
    view& fresh = oracle_.claims[number];
    fresh.claim = make_claim(number, request);
    fresh.process = process;
    return number;
  }

  void attempt(std::uint64_t number, process_id process) {
    const spi::claim_ptr claim = oracle_.claims.at(number).claim;
    oracle_.begin(claim->resource.name);
    effects out;
    const auto answer = book_.attempt(oracle_.now, claim, process, std::nullopt, out);
    ASSERT_TRUE(answer.has_value()) << oracle_.where << " " << answer.error().message();
    const auto* blocked = std::get_if<spi::blocked>(&*answer);
    // Joined before the grants of this step are judged: its place counts.
    if (blocked != nullptr && blocked->queued) oracle_.waits(number);
    oracle_.take(out, number, std::get_if<spi::granted>(&*answer));
    if (blocked != nullptr) {
      EXPECT_GT(blocked->recheck_after, 0s) << oracle_.where;
      EXPECT_EQ(blocked->queued, claim->queued) << oracle_.where;
      if (!claim->queued) oracle_.claims.erase(number);
    }
    oracle_.check(claim->resource.name);
  }

  void leave(std::uint64_t number, process_id process) {
    const spi::claim_ptr claim = oracle_.claims.at(number).claim;
    oracle_.begin(claim->resource.name);
    const view::state was = oracle_.claims.at(number).is;
    const spi::departure expected = was == view::state::held      ? spi::departure::was_holder
                                    : was == view::state::waiting ? spi::departure::was_waiting
                                                                  : spi::departure::gone;
    const on_leave then = pick(2) == 0 ? on_leave::remember : on_leave::forget;
    effects out;
    EXPECT_EQ(book_.leave(oracle_.now, *claim, process, then, out), expected) << oracle_.where;
    if (then == on_leave::remember) left_.emplace_back(claim, oracle_.now);
    oracle_.claims.erase(number);
    oracle_.take(out);
    if (pick(4) == 0) {
      effects again;
      EXPECT_EQ(book_.leave(oracle_.now, *claim, process, on_leave::forget, again),
                spi::departure::gone)
          << oracle_.where;
      oracle_.take(again);
    }
    oracle_.check(claim->resource.name);
  }

  void late_duplicate(process_id process) {
    const auto [claim, when] = left_[pick(left_.size())];
    if (oracle_.now >= when + claim->ttl + rules_.tombstone_extra) return;
    oracle_.begin(claim->resource.name);
    effects out;
    const auto answer = book_.attempt(oracle_.now, claim, process, std::nullopt, out);
    EXPECT_FALSE(answer.has_value()) << oracle_.where << ": a late duplicate revived a claim";
    oracle_.take(out);
  }

  void renew(std::uint64_t number, process_id process) {
    const spi::claim_ptr claim = oracle_.claims.at(number).claim;
    oracle_.begin(claim->resource.name);
    effects out;
    const spi::renewal answer = book_.renew(oracle_.now, *claim, process, out);
    const bool held =
        answer.state == spi::hold_state::renewed || answer.state == spi::hold_state::held;
    const view::state was = oracle_.claims.at(number).is;
    EXPECT_FALSE(held && was == view::state::none) << oracle_.where << ": a renewal created";
    oracle_.take(out, number, held ? &answer.grant : nullptr);
    if (answer.state == spi::hold_state::waiting) {
      EXPECT_EQ(was, view::state::waiting) << oracle_.where;
      oracle_.waits(number);
    } else if (!held) {
      EXPECT_EQ(was, view::state::none) << oracle_.where;
      oracle_.claims.erase(number);
    }
    oracle_.check(claim->resource.name);
  }

  void change(std::uint64_t number, process_id process) {
    const view claim = oracle_.claims.at(number);
    const std::string& name = claim.claim->resource.name;
    const bool held = claim.is == view::state::held && claim.until > oracle_.now;
    if (!held || claim.mode == spi::mode::permit) return;
    oracle_.begin(name);
    const spi::mode to = claim.mode == spi::mode::shared ? spi::mode::exclusive : spi::mode::shared;
    effects out;
    const auto answer = book_.change(oracle_.now, *claim.claim, to, process, out);
    if (answer) oracle_.changed(number, to, *answer);
    oracle_.take(out, number, answer ? &*answer : nullptr);
    if (!answer) {
      EXPECT_EQ(answer.error(), errc::would_deadlock) << oracle_.where;
      EXPECT_TRUE(oracle_.holding(name) > 1 || oracle_.blocked(name)) << oracle_.where;
    }
    oracle_.check(name);
  }

  void revoke(const std::string& name) {
    const auto how = pick(2) == 0 ? spi::revocation::force : spi::revocation::safe;
    oracle_.begin(name);
    effects out;
    const auto taken = book_.revoke(oracle_.now, {"", name}, how, "", out);
    EXPECT_GE(taken.size(), oracle_.holding(name)) << oracle_.where;
    oracle_.take(out);
    oracle_.revoked(out, how);
    oracle_.check(name);
  }

  void finish() {
    while (!oracle_.claims.empty() && !::testing::Test::HasFailure()) {
      const auto [number, claim] = *oracle_.claims.begin();
      leave(number, claim.process);
    }
    EXPECT_TRUE(book_.empty()) << oracle_.where << ": something was left behind";
    oracle_.now += 120s;
    effects out;
    book_.leave(oracle_.now, *make_claim(1), nobody, on_leave::forget, out);
    EXPECT_EQ(book_.tombstones(), 0U) << oracle_.where;
  }

  std::mt19937_64 random_;
  const std::uint64_t seed_;
  const memory::rules rules_{.waiter_lease = std::chrono::seconds(8)};
  ledger_oracle oracle_{rules_};
  memory::ledger book_{rules_, [this](process_id id) { return !oracle_.unreachable.contains(id); }};
  std::uint64_t last_number_ = 0;
  std::vector<std::pair<spi::claim_ptr, spi::server_time>> left_;
};

}  // namespace

class ledger_random : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ledger_random, keeps_its_promises_over_many_random_steps) { world(GetParam()).run(20'000); }

INSTANTIATE_TEST_SUITE_P(seeds, ledger_random, ::testing::Range<std::uint64_t>(1, 11));

}  // namespace holdfast::memory
