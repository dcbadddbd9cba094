// A pipeline of processes, killed at any moment: one acquires and detaches, another adopts, and a
// rival wants the lock the whole time.
#include "contract/contract.hpp"
#include "support/forked_process.hpp"
#include "support/rounds.hpp"
#include "support/shared_page.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

constexpr duration step_ttl = 500ms;
// If a lock ends later than its ttl by more than this, it was kept too long; less is a slow
// machine.
constexpr duration slowness = 20s;

struct pipeline_page {
  // What the lock protects: each entrant has the newest fence.
  std::atomic<std::uint64_t> newest{0};
  std::atomic<int> entries{0};  // with that fence
  std::atomic<int> overlaps{0};
  std::atomic<int> too_long{0};
  std::atomic<int> strange{0};  // answers that nothing explains
  std::atomic<std::int64_t> longest_wait{0};
  // What happened.
  std::atomic<int> detached{0};
  std::atomic<int> adopted{0};
  std::atomic<int> gone{0};
  std::atomic<int> rivals{0};
  std::atomic<int> visits{0};
  std::atomic<int> attempts{0};  // of the rival, begun or ended
  // The round.
  std::array<char, 2048> token{};
  std::atomic<bool> token_there{false};
  std::atomic<bool> first_over{false};
  std::atomic<int> asked{0};  // the rival to take the lock, for certain
  std::atomic<int> taken{0};
  std::atomic<bool> over{false};
};

// A visit to what the lock protects. If another one has entered while a holder is inside, and the
// holder's lease is still valid, two holders have met.
class visit {
 public:
  visit(pipeline_page& at, const lease& held, int entry) : at_(at), held_(held), entry_(entry) {
    ++at_.visits;
    const std::uint64_t fence = held.fence().value();
    std::uint64_t seen = at_.newest.load();
    while (seen < fence) {
      if (!at_.newest.compare_exchange_weak(seen, fence)) continue;
      at_.entries = 0;
      break;
    }
    if (at_.newest == fence) ++at_.entries;
    look();
  }
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;
  ~visit() { look(); }

 private:
  void look() {
    const std::uint64_t fence = held_.fence().value();
    const std::uint64_t newest = at_.newest.load();
    const bool others = newest > fence || (newest == fence && at_.entries > entry_);
    if (others && held_.valid()) ++at_.overlaps;
  }

  pipeline_page& at_;
  const lease& held_;
  const int entry_;  // how many have had this fence, this one included
};

client open_patiently(const std::string& url) {
  auto opened = client::open(url);
  if (!opened) throw lock_error(opened.error());
  return *std::move(opened);
}

void first_step(const std::string& url, pipeline_page& page) {
  const client own = open_patiently(url);
  auto held = mutex(own, "pipeline", {.ttl = step_ttl}).acquire({.wait = 60s});
  if (!held) return;
  { const visit here(page, *held, 1); }
  const auto token = held->detach();
  if (!token) {
    if (token.error() != errc::unavailable && token.error() != errc::lost) ++page.strange;
    return;
  }
  ++page.detached;
  std::copy(token->begin(), token->end(), page.token.begin());
  page.token_there = true;
}

void second_step(const std::string& url, pipeline_page& page) {
  const client own = open_patiently(url);
  if (!eventually([&] { return page.token_there.load() || page.first_over.load(); })) return;
  if (!page.token_there) return;
  auto held = own.adopt(page.token.data(), {.ttl = step_ttl});
  if (!held) {
    ++(held.error() == errc::lost ? page.gone : page.strange);
    return;
  }
  ++page.adopted;
  {
    const visit here(page, *held, 2);
    const int before = page.attempts;
    eventually([&] { return page.attempts > before; });  // the rival has tried to come in
  }
  static_cast<void>(held->release());
}

void rival(const std::string& url, pipeline_page& page) {
  const client own = open_patiently(url);
  mutex lock(own, "pipeline", {.ttl = 20s});
  while (!page.over) {
    const int asked = page.asked;
    const bool must = asked > page.taken;
    const time_point before = clock::now();
    ++page.attempts;
    auto held = lock.acquire({.wait = must ? step_ttl + slowness + 60s : 5ms});
    ++page.attempts;
    int visits = 0;
    if (held) {
      ++page.rivals;
      { const visit here(page, *held, 1); }
      visits = page.visits;
      static_cast<void>(held->release());
    }
    if (must) {
      const duration waited = clock::now() - before;
      page.longest_wait = std::max<std::int64_t>(page.longest_wait, waited / 1ms);
      if (!held || waited > step_ttl + slowness) ++page.too_long;
      page.taken = asked;
    } else if (held) {  // not again before somebody else has had it
      eventually([&] { return page.visits > visits || page.asked > asked || page.over; });
    }
  }
}

class adoption : public testing::TestWithParam<store_setup> {};

std::vector<store_setup> adopting_engines() {
  static const std::set<std::string> names{"sqlite", "redis", "postgresql", "etcd", "etcd_cluster"};
  std::vector<store_setup> chosen;
  for (const store_setup& each : store_setups()) {
    if (names.contains(each.name)) chosen.push_back(each);
  }
  return chosen;
}

INSTANTIATE_TEST_SUITE_P(on, adoption, testing::ValuesIn(adopting_engines()), name_of_store);

TEST_P(adoption, of_processes_that_are_killed_at_any_moment_is_by_one_and_in_time) {
  // Broken: two hold the lock of a pipeline, or nobody can have it after its ttl.
  const int last = rounds(10, 500);
  const fresh_engine engine = GetParam().make();
  const shared_page<pipeline_page> page;
  std::mt19937_64 random(std::random_device{}());
  int kills = 0;
  duration usual = 20ms;  // how long a round takes that is left alone
  forked_process other([&] { rival(engine.url, *page); });
  ASSERT_TRUE(eventually([&] { return page->rivals > 0; }));
  for (int round = 1; round <= last; ++round) {
    page->token.fill('\0');
    page->token_there = false;
    page->first_over = false;
    const time_point before = clock::now();
    forked_process first([&] { first_step(engine.url, *page); });
    forked_process second([&] { second_step(engine.url, *page); });
    // Of four rounds one is undisturbed, in one the first is killed, in one the second, in one
    // both.
    const std::uint64_t fate = random() % 4;
    std::this_thread::sleep_for(usual * static_cast<std::int64_t>(random() % 1200) / 1000);
    if ((fate & 1U) != 0) first.kill();
    if ((fate & 2U) != 0) second.kill();
    kills += static_cast<int>(fate & 1U) + static_cast<int>(fate >> 1U);
    first.wait();
    page->first_over = true;
    second.wait();
    if (fate == 0) usual = (usual + (clock::now() - before)) / 2;
    page->asked = round;
    ASSERT_TRUE(eventually([&] { return page->taken == round; }, 120s)) << "round " << round;
  }
  page->over = true;
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(page->overlaps, 0);
  EXPECT_EQ(page->too_long, 0);
  EXPECT_EQ(page->strange, 0);
  EXPECT_GT(page->detached, 0);
  RecordProperty("kills", kills);
  std::cout << last << " rounds, " << kills << " kills, " << page->detached << " detached, "
            << page->adopted << " adopted, " << page->gone << " gone before, " << page->rivals
            << " grants of the rival, longest wait after a round " << page->longest_wait
            << " ms with a ttl of " << step_ttl / 1ms << " ms\n";
}

}  // namespace
}  // namespace holdfast::test
