// Leases that move between processes: detached here, continued there, by a token.
#include "contract/contract.hpp"
#include "core/lease_token.hpp"
#include "support/task.hpp"

#include <future>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(detached_lease);

// Longer than a test takes, even on a machine that pauses.
constexpr lock_options long_lease{.ttl = 60s};

// If leases cannot move, that is reported, and the lease continues; the test then ends.
[[nodiscard]] bool detaches(const client& from) {
  if (from.caps().supports_detach) return true;
  auto held = mutex(from, "stock/42").acquire();
  EXPECT_THAT(held, succeeds());
  EXPECT_THAT(held->detach(), fails_with(errc::unsupported));
  EXPECT_TRUE(held->valid());
  core::lease_token token;
  token.engine = from.caps().engine;
  token.resource = {"", "stock/42"};
  token.ttl = 10s;
  EXPECT_THAT(from.adopt(to_text(token)), fails_with(errc::unsupported));
  EXPECT_THAT(from.renew(to_text(token)), fails_with(errc::unsupported));
  EXPECT_THAT(from.release(to_text(token)), fails_with(errc::unsupported));
  EXPECT_THAT(held->release(), succeeds());
  return false;
}

// The token of stock/42, acquired and detached by this client.
std::string detached_stock(const client& by) {
  return mutex(by, "stock/42", long_lease).acquire().value().detach().value();
}

TEST_P(detached_lease, is_continued_by_another_client_with_the_same_fence) {
  // Broken: a pipeline's next step works under another fence, or under none.
  const client a = open({.payload = "first"});
  const client b = open({.payload = "second"});
  if (!detaches(a)) return;
  auto held = mutex(a, "stock/42", long_lease).acquire();
  ASSERT_THAT(held, succeeds());
  const fence_token fence = held->fence();
  const std::string claim = held->claim();
  const auto lost = held->lost();
  const auto token = held->detach();
  ASSERT_THAT(token, succeeds());
  EXPECT_FALSE(*held);
  EXPECT_FALSE(held->valid());
  EXPECT_THAT(held->release(), fails_with(errc::not_held));
  const auto between = b.inspect("stock/42");
  ASSERT_THAT(between, succeeds());
  ASSERT_EQ(between->holders.size(), 1U);
  EXPECT_EQ(between->holders[0].payload, "first (detached)");
  EXPECT_EQ(between->holders[0].fence, fence);
  EXPECT_NE(between->holders[0].claim, claim);
  EXPECT_EQ(token->find(between->holders[0].claim), std::string::npos);
  const auto adopted = b.adopt(*token);
  ASSERT_THAT(adopted, succeeds());
  EXPECT_EQ(adopted->fence(), fence);
  EXPECT_TRUE(adopted->valid());
  EXPECT_EQ(adopted->name(), "stock/42");
  const auto after = a.inspect("stock/42");
  ASSERT_THAT(after, succeeds());
  ASSERT_EQ(after->holders.size(), 1U);
  EXPECT_EQ(after->holders[0].payload, "second");
  EXPECT_EQ(after->holders[0].fence, fence);
  EXPECT_FALSE(lost.stop_requested());
}

TEST_P(detached_lease, lets_no_waiter_in_and_the_next_one_when_it_is_released) {
  // Broken: a waiter gets the lock between two steps of a pipeline, or never.
  const client a = open();
  const client b = open();
  const client c = open();
  if (!detaches(a)) return;
  auto held = mutex(a, "stock/42", long_lease).acquire();
  ASSERT_THAT(held, succeeds());
  mutex other(c, "stock/42", long_lease);
  reply<lease> waits;
  other.async_acquire({}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(b, "stock/42", 1));
  const auto token = held->detach();
  ASSERT_THAT(token, succeeds());
  EXPECT_EQ(waiters(b, "stock/42"), 1U);
  auto adopted = b.adopt(*token);
  ASSERT_THAT(adopted, succeeds());
  EXPECT_EQ(waiters(b, "stock/42"), 1U);
  EXPECT_EQ(waits.future.wait_for(0s), std::future_status::timeout);
  EXPECT_TRUE(adopted->wanted().stop_requested() ||
              eventually([&] { return adopted->wanted().stop_requested(); }));
  const fence_token fence = adopted->fence();
  EXPECT_THAT(adopted->release(), succeeds());
  const auto next = waits.future.get();
  ASSERT_THAT(next, succeeds());
  EXPECT_GT(next->fence(), fence);
}

TEST_P(detached_lease, is_adopted_once) {
  // Broken: two processes that know a token hold the same lock.
  const client a = open();
  const client b = open();
  const client c = open();
  if (!detaches(a)) return;
  const std::string token = detached_stock(a);
  auto adopted = b.adopt(token);
  ASSERT_THAT(adopted, succeeds());
  EXPECT_THAT(c.adopt(token), fails_with(errc::lost));
  EXPECT_THAT(b.adopt(token), fails_with(errc::lost));
  EXPECT_THAT(c.renew(token), fails_with(errc::lost));
  EXPECT_THAT(c.release(token), fails_with(errc::lost));
  EXPECT_TRUE(adopted->valid());
  EXPECT_THAT(mutex(c, "stock/42").acquire({.wait = 0s}), fails_with(errc::busy));
  // And again: a lease moves as often as necessary.
  const auto again = adopted->detach();
  ASSERT_THAT(again, succeeds());
  EXPECT_NE(*again, token);
  EXPECT_THAT(b.adopt(token), fails_with(errc::lost));
  EXPECT_THAT(c.adopt(*again), succeeds());
}

TEST_P(detached_lease, ends_with_its_ttl_and_not_with_its_process) {
  // Broken: a pipeline that was killed keeps the lock, or loses it before its time.
  const client b = open();
  if (!detaches(b)) return;
  std::string token;
  {
    client a = open();
    auto held = mutex(a, "stock/42", {.ttl = 3s}).acquire();
    ASSERT_THAT(held, succeeds());
    auto given = held->detach();
    ASSERT_THAT(given, succeeds());
    token = *given;
    EXPECT_TRUE(a.close().empty());
  }
  const auto seen = b.inspect("stock/42");
  ASSERT_THAT(seen, succeeds());
  ASSERT_EQ(seen->holders.size(), 1U);
  ASSERT_TRUE(seen->holders[0].remaining);
  EXPECT_LE(*seen->holders[0].remaining, 3s);
  const auto next = mutex(b, "stock/42").acquire({.wait = 60s});
  ASSERT_THAT(next, succeeds());
  EXPECT_THAT(open().adopt(token), fails_with(errc::lost));
  EXPECT_THAT(open().renew(token), fails_with(errc::lost));
  EXPECT_THAT(open().release(token), fails_with(errc::lost));
  EXPECT_TRUE(next->valid());
}

TEST_P(detached_lease, is_renewed_by_its_token) {
  // Broken: a step that takes longer than the ttl cannot keep the lock.
  const client a = open();
  const client b = open();
  if (!detaches(a)) return;
  const std::string token = detached_stock(a);
  EXPECT_THAT(b.renew(token, 600s), succeeds());
  auto seen = b.inspect("stock/42");
  ASSERT_THAT(seen, succeeds());
  ASSERT_EQ(seen->holders.size(), 1U);
  ASSERT_TRUE(seen->holders[0].remaining);
  EXPECT_GT(*seen->holders[0].remaining, 300s);
  EXPECT_THAT(b.renew(token), succeeds());  // for the ttl of its acquisition
  seen = b.inspect("stock/42");
  ASSERT_THAT(seen, succeeds());
  ASSERT_EQ(seen->holders.size(), 1U);
  EXPECT_LE(*seen->holders[0].remaining, 60s);
  EXPECT_THAT(b.renew(token, 1ms), fails_with(errc::invalid));
  const auto adopted = b.adopt(token);
  ASSERT_THAT(adopted, succeeds());
  EXPECT_EQ(adopted->fence(), *seen->holders[0].fence);
}

TEST_P(detached_lease, is_released_by_its_token) {
  // Broken: the last step of a pipeline cannot free what its first step took.
  const client a = open();
  const client b = open();
  if (!detaches(a)) return;
  const std::string token = detached_stock(a);
  reply<lease> waits;
  mutex other(b, "stock/42");
  other.async_acquire({}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock/42", 1));
  EXPECT_THAT(b.release(token), succeeds());
  EXPECT_THAT(waits.future.get(), succeeds());
  EXPECT_THAT(b.release(token), fails_with(errc::lost));
  EXPECT_THAT(b.adopt(token), fails_with(errc::lost));
}

TEST_P(detached_lease, of_another_namespace_or_engine_is_refused_before_anything_is_asked) {
  // Broken: a token affects a lock that it does not belong to.
  const client a = open();
  if (!detaches(a)) return;
  const std::string token = detached_stock(a);
  const client other = open({.name_space = "other"});
  EXPECT_THAT(other.adopt(token), fails_with(errc::invalid));
  EXPECT_THAT(other.renew(token), fails_with(errc::invalid));
  EXPECT_THAT(other.release(token), fails_with(errc::invalid));
  auto foreign = core::parse_token(token);
  ASSERT_THAT(foreign, succeeds());
  foreign->engine = "abacus";
  EXPECT_THAT(a.adopt(to_text(*foreign)), fails_with(errc::invalid));
  const std::string cut = token.substr(0, token.size() - 1);
  for (const std::string& text : {std::string(), std::string("hft1_"), cut, token + "A"}) {
    const auto answer = a.adopt(text);
    EXPECT_THAT(answer, fails_with(errc::invalid));
    if (text.size() > 10) {
      EXPECT_EQ(answer.error().message().find(text), std::string::npos);
    }
  }
  auto guessed = core::parse_token(token);
  guessed->id.bytes[0] ^= 1U;  // well-formed, but nobody's
  EXPECT_THAT(a.adopt(to_text(*guessed)), fails_with(errc::lost));
  EXPECT_THAT(a.release(to_text(*guessed)), fails_with(errc::lost));
  EXPECT_THAT(a.adopt(token), succeeds());
}

TEST_P(detached_lease, that_was_revoked_or_taken_away_is_not_continued) {
  // Broken: an operator ends a hold, and its token brings it back.
  const client a = open();
  if (!detaches(a)) return;
  const std::string token = detached_stock(a);
  client by = open();
  EXPECT_THAT(by.revoke("stock/42", revocation::safe), succeeds());
  EXPECT_THAT(a.renew(token), fails_with(errc::lost));
  EXPECT_THAT(a.adopt(token), fails_with(errc::lost));
  EXPECT_EQ(holders(a, "stock/42"), 1U);
  EXPECT_THAT(a.release(token), succeeds());
  const std::string other = detached_stock(a);
  take_away(by, "stock/42");
  EXPECT_THAT(a.adopt(other), fails_with(errc::lost));
  EXPECT_EQ(holders(a, "stock/42"), 0U);
}

TEST_P(detached_lease, of_a_reader_counts_as_a_reader) {
  // Broken: a reader that moves becomes a writer.
  const client a = open();
  const client b = open();
  if (!detaches(a) || !a.caps().shared) return;
  auto reads = shared_mutex(a, "catalogue", long_lease).acquire_shared();
  const auto beside = shared_mutex(b, "catalogue", long_lease).acquire_shared();
  ASSERT_THAT(reads, succeeds());
  ASSERT_THAT(beside, succeeds());
  const auto token = reads->detach();
  if (!a.caps().supports_shared_detach) {
    EXPECT_THAT(token, fails_with(errc::unsupported));
    EXPECT_TRUE(reads->valid());
    return;
  }
  ASSERT_THAT(token, succeeds());
  EXPECT_EQ(holders(a, "catalogue"), 2U);
  const auto adopted = b.adopt(*token);
  ASSERT_THAT(adopted, succeeds());
  EXPECT_TRUE(beside->valid());
  EXPECT_THAT(shared_mutex(a, "catalogue").acquire_shared({.wait = 0s}), succeeds());
  EXPECT_THAT(shared_mutex(a, "catalogue").acquire({.wait = 0s}), fails_with(errc::busy));
}

TEST_P(detached_lease, of_permits_counts_them) {
  // Broken: permits that move are forgotten.
  const client a = open();
  const client b = open();
  if (!detaches(a) || !a.caps().permits) return;
  semaphore gpu(a, "gpu", {.max = 3, .lock = long_lease});
  auto two = gpu.acquire({}, {}, 2);
  ASSERT_THAT(two, succeeds());
  const auto token = two->detach();
  ASSERT_THAT(token, succeeds());
  auto adopted = b.adopt(*token);
  ASSERT_THAT(adopted, succeeds());
  EXPECT_THAT(gpu.acquire({.wait = 0s}, {}, 2), fails_with(errc::busy));
  EXPECT_THAT(gpu.acquire({.wait = 0s}, {}, 1), succeeds());
  EXPECT_THAT(adopted->release(), succeeds());
  EXPECT_THAT(gpu.acquire({.wait = 0s}, {}, 3), succeeds());
}

TEST_P(detached_lease, keeps_the_fence_of_a_hand_over_inside_the_process) {
  // Broken: the adopted lease has the fence of an earlier holder, and its writes are refused.
  const client a = open();
  const client b = open();
  if (!detaches(a)) return;
  auto first = mutex(a, "stock/42", long_lease).acquire();
  ASSERT_THAT(first, succeeds());
  reply<lease> waits;
  mutex second(a, "stock/42", long_lease);
  second.async_acquire({}, {}, waits.callback());
  const fence_token before = first->fence();
  EXPECT_THAT(first->release(), succeeds());
  auto held = waits.future.get();
  ASSERT_THAT(held, succeeds());
  const fence_token fence = held->fence();
  EXPECT_GT(fence, before);
  const auto token = held->detach();
  ASSERT_THAT(token, succeeds());
  auto adopted = b.adopt(*token);
  ASSERT_THAT(adopted, succeeds());
  EXPECT_EQ(adopted->fence(), fence);
  // Broken: the lock is free at once, since the engine's own fence is an earlier one.
  EXPECT_THAT(adopted->detach(), succeeds());
  EXPECT_THAT(second.acquire({.wait = 0s}), fails_with(errc::busy));
}

TEST_P(detached_lease, lets_the_next_thread_of_its_client_queue) {
  // Broken: a client that detached a lock can never acquire it again.
  const client a = open();
  if (!detaches(a)) return;
  auto held = mutex(a, "stock/42", long_lease).acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex other(a, "stock/42", long_lease);
  other.async_acquire({}, {}, waits.callback());
  const auto token = held->detach();
  ASSERT_THAT(token, succeeds());
  auto adopted = a.adopt(*token);  // ahead of this client's waiters
  ASSERT_THAT(adopted, succeeds());
  EXPECT_THAT(adopted->release(), succeeds());
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_P(detached_lease, is_no_leadership) {
  // Broken: a leader's name stays while another one leads.
  const client a = open();
  if (!elects(a)) return;
  auto leads = election(a, "scheduler", "host").campaign();
  ASSERT_THAT(leads, succeeds());
  EXPECT_THAT(leads->detach(), fails_with(errc::unsupported));
  EXPECT_TRUE(leads->valid());
}

task moves_throughout(const client& a, const client& b, std::vector<std::string>& out) {
  mutex stock(a, "stock/42", long_lease);
  auto held = co_await stock.async_acquire({.wait = patience});
  out.push_back(code_of(held->detach()));  // on the client's own thread, where blocking is refused
  const auto token = co_await held->async_detach();
  out.push_back(code_of(token));
  out.push_back(code_of(co_await held->async_detach()));
  out.push_back(code_of(a.renew(*token)));
  out.push_back(code_of(co_await b.async_renew(*token)));
  out.push_back(code_of(co_await b.async_renew(*token, 1ms)));
  auto adopted = co_await b.async_adopt(*token);
  out.push_back(code_of(adopted));
  out.push_back(code_of(co_await b.async_adopt(*token)));
  out.push_back(code_of(co_await b.async_renew(*token)));
  const auto next = co_await adopted->async_detach();
  out.push_back(code_of(b.release(*next)));
  out.push_back(code_of(co_await b.async_release(*next)));
  out.push_back(code_of(co_await b.async_release(*next)));
}

TEST_P(detached_lease, moves_without_blocking) {
  // Broken: a coroutine cannot pass a lease on.
  const client a = open();
  const client b = open();
  if (!detaches(a)) return;
  std::vector<std::string> out;
  const task done = moves_throughout(a, b, out);
  ASSERT_TRUE(done.finishes());
  EXPECT_EQ(out, (std::vector<std::string>{"would deadlock", "ok", "not held", "would deadlock",
                                           "ok", "invalid", "ok", "lost", "lost", "would deadlock",
                                           "ok", "lost"}));
}

}  // namespace
}  // namespace holdfast::test
