// The longest hold, and a payload per lock object: the same on every engine.
#include "contract/flavours.hpp"

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_EXCLUSIVE(longest_hold);

TEST_P(longest_hold, a_lease_that_is_renewed_ends_with_it_and_the_next_is_granted) {
  // Broken: a hung holder keeps the lock as long as its process lives.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  auto held = make(a, "stock/42", {.ttl = 20s, .max_hold = 300ms})->acquire();
  ASSERT_THAT(held, succeeds());
  const fence_token before = held->fence();
  EXPECT_LE(held->valid_for(), 300ms);
  const auto next = make(b)->acquire({.wait = patience});
  ASSERT_THAT(next, succeeds());
  EXPECT_FALSE(held->valid());
  EXPECT_TRUE(held->lost().stop_requested() || held->wait_lost(patience));
  EXPECT_GT(next->fence(), before);
  EXPECT_THAT(held->release(), fails_with(errc::lost));
  EXPECT_TRUE(next->valid());
}

HOLDFAST_ON_EVERY_STORE(payload_of_a_lock);

TEST_P(payload_of_a_lock, appears_beside_the_holder_instead_of_the_clients) {
  // Broken: everybody sees the same text for all locks of a service.
  const client a = open({.payload = "the client's"});
  if (!a.caps().reports_holders) return;  // it shows nothing about holders
  std::string text = "order 4711\n";
  mutex own(a, "own", {.payload = text});
  text = "gone by now";
  const auto held = own.acquire();
  const auto usual = mutex(a, "usual").acquire();
  ASSERT_THAT(held, succeeds());
  ASSERT_THAT(usual, succeeds());
  const auto seen = a.inspect("own");
  ASSERT_THAT(seen, succeeds());
  ASSERT_EQ(seen->holders.size(), 1U);
  EXPECT_EQ(seen->holders[0].payload, "order 4711?");
  const auto other = a.inspect("usual");
  ASSERT_THAT(other, succeeds());
  ASSERT_EQ(other->holders.size(), 1U);
  EXPECT_EQ(other->holders[0].payload, "the client's");
  EXPECT_EQ(thrown_by([&] {
              const std::string long_text(257, 'x');
              mutex(a, "own", {.payload = long_text});
            }),
            describe(errc::invalid));
}

TEST_P(payload_of_a_lock, belongs_to_readers_writers_and_permits_alike) {
  // Broken: only mutexes can be distinguished.
  const client a = open({.payload = "the client's"});
  if (!a.caps().reports_holders) return;
  if (a.caps().shared) {
    shared_mutex catalogue(a, "catalogue", {.payload = "report"});
    const auto reads = catalogue.acquire_shared();
    ASSERT_THAT(reads, succeeds());
    const auto seen = a.inspect("catalogue");
    ASSERT_THAT(seen, succeeds());
    ASSERT_EQ(seen->holders.size(), 1U);
    EXPECT_EQ(seen->holders[0].payload, "report");
  }
  if (a.caps().permits) {
    semaphore gpu(a, "gpu", {.max = 2, .lock = {.payload = "training"}});
    const auto permits = gpu.acquire({}, {}, 2);  // those of another handle inside
    ASSERT_THAT(permits, succeeds());
    const auto seen = a.inspect("gpu");
    ASSERT_THAT(seen, succeeds());
    ASSERT_EQ(seen->holders.size(), 1U);
    EXPECT_EQ(seen->holders[0].payload, "training");
  }
}

}  // namespace
}  // namespace holdfast::test
