// A quorum of five real Redis servers: what two of them may do, and what three may not.
#ifdef HOLDFAST_WITH_REDIS

#include "support/eventually.hpp"
#include "support/redlock_servers.hpp"

#include <holdfast/holdfast.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

client open_client(const std::string& url) {
  auto opened = client::open(url);
  if (!opened) throw lock_error(opened.error());
  return *std::move(opened);
}

class redlock : public testing::Test {
 protected:
  redlock_servers servers{5};
};

TEST_F(redlock, one_holds_and_the_next_comes_after_with_a_greater_fence) {
  // Broken: the quorum does not lock.
  const client a = open_client(servers.url());
  const client b = open_client(servers.url());
  mutex first(a, "stock", {.ttl = 20s});
  mutex second(b, "stock", {.ttl = 20s});
  auto lease = first.acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_EQ(second.acquire({.wait = 0s}).error().code, errc::busy);
  const fence_token fence = lease->fence();
  ASSERT_TRUE(lease->release());
  auto next = second.acquire({.wait = patience});
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_GT(next->fence(), fence);
}

TEST_F(redlock, readers_share_and_keep_a_writer_out) {
  // Broken: shared locks among a majority.
  const client a = open_client(servers.url());
  const client b = open_client(servers.url());
  shared_mutex one(a, "price", {.ttl = 20s});
  shared_mutex other(b, "price", {.ttl = 20s});
  auto reader = one.acquire_shared({.wait = patience});
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_TRUE(other.acquire_shared({.wait = patience}));
  EXPECT_EQ(other.acquire({.wait = 0s}).error().code, errc::busy);
}

TEST_F(redlock, two_of_five_may_be_dead_or_hang) {
  // Broken: the loss of a minority stops everybody, or costs a timeout each time.
  servers[1].kill();
  servers[3].pause();
  const client a = open_client(servers.url());
  mutex stock(a, "stock", {.ttl = 20s});
  for (int round = 0; round < 5; ++round) {
    auto lease = stock.acquire({.wait = patience});
    ASSERT_TRUE(lease) << lease.error().message();
    ASSERT_TRUE(lease->release());
  }
  servers[3].resume();
}

TEST_F(redlock, with_three_of_five_hanging_it_says_unavailable_in_time_and_goes_on_after) {
  // Broken: a minority grants, the caller hangs, or the quorum needs help to continue (H54).
  const client a = open_client(servers.url());
  mutex stock(a, "stock", {.ttl = 20s});
  for (const std::size_t i : {0U, 2U, 4U}) servers[i].pause();
  const auto begin = std::chrono::steady_clock::now();
  const auto refused = stock.acquire({.wait = 1s});
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unavailable) << refused.error().message();
  EXPECT_LT(took, 20s);
  for (const std::size_t i : {0U, 2U, 4U}) servers[i].resume();
  auto lease = stock.acquire({.wait = 2 * patience});
  EXPECT_TRUE(lease) << lease.error().message();
}

TEST_F(redlock, with_three_of_five_dead_it_says_unavailable_in_time_and_goes_on_after) {
  // Broken: as above, where connections are refused instead of silent.
  const client a = open_client(servers.url("longest_ttl=20s&durable=yes"));
  mutex stock(a, "stock", {.ttl = 20s});
  ASSERT_TRUE(stock.acquire({.wait = patience})) << "connected";
  for (const std::size_t i : {0U, 1U, 4U}) servers[i].kill();
  for (const duration wait : {duration(0s), duration(1s)}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto refused = stock.acquire({.wait = wait});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::unavailable) << refused.error().message();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, wait + 20s);
  }
  for (const std::size_t i : {0U, 1U, 4U}) servers[i].start();
  servers.settle();
  const auto lease = stock.acquire({.wait = 2 * patience});
  EXPECT_TRUE(lease) << lease.error().message();
}

TEST_F(redlock, members_that_restarted_empty_do_not_give_a_held_lock_away) {
  // Broken: three servers forget, and a second client holds beside the first (H55).
  const client a = open_client(servers.url());
  const client b = open_client(servers.url());
  mutex first(a, "stock", {.ttl = 20s});
  mutex second(b, "stock", {.ttl = 20s});
  auto lease = first.acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  for (const std::size_t i : {0U, 2U, 4U}) {
    servers[i].kill();
    servers[i].start();
  }
  const auto refused = second.acquire({.wait = 0s});
  // Decided by the first answers: members that remember say busy, those that forgot do not count.
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().code, testing::AnyOf(errc::busy, errc::unavailable));
}

TEST_F(redlock, new_members_say_how_long_they_do_not_count) {
  // Broken: nobody knows why a fresh quorum grants nothing.
  for (std::size_t i = 0; i < servers.size(); ++i) servers[i].cli({"FLUSHALL"});
  const client a = open_client(servers.url());
  mutex stock(a, "stock", {.ttl = 20s});
  const auto refused = stock.acquire({.wait = 0s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unavailable) << refused.error().message();
  EXPECT_THAT(refused.error().detail, testing::HasSubstr("lost their state"));
}

TEST_F(redlock, the_doctor_says_whose_vote_does_not_count_yet) {
  // Broken: every member is fine, and nothing is granted for a minute.
  const auto votes = [](const client& asked, health_check::status state) {
    const auto checks = asked.probe();
    EXPECT_TRUE(checks) << checks.error().message();
    return std::count_if(checks->begin(), checks->end(), [&](const health_check& each) {
      return each.name.ends_with(": vote") && each.state == state;
    });
  };
  const client a = open_client(servers.url());
  EXPECT_EQ(votes(a, health_check::status::ok), 5);
  for (const std::size_t i : {1U, 3U}) servers[i].cli({"FLUSHALL"});
  EXPECT_EQ(votes(a, health_check::status::warn), 2);
  EXPECT_EQ(votes(a, health_check::status::ok), 3);
  // Its time counts from there.
  EXPECT_NE(servers[1].cli({"GET", "holdfast:born"}), "");
}

TEST_F(redlock, members_that_answer_and_do_not_count_are_no_outage) {
  // Broken: a quorum that is too young is taken for unreachable, and locks that exclude nobody are given
  // out beside leases that its members have forgotten.
  for (std::size_t i = 0; i < servers.size(); ++i) servers[i].cli({"FLUSHALL"});
  const client a = open_client(servers.url("longest_ttl=30s&degrade=local&breaker=1"));
  mutex stock(a, "stock", {.ttl = 20s});
  for (int i = 0; i < 10; ++i) {
    const auto refused = stock.acquire({.wait = 0s});
    ASSERT_FALSE(refused);
    ASSERT_EQ(refused.error().code, errc::unavailable) << refused.error().message();
    EXPECT_THAT(refused.error().detail, testing::HasSubstr("lost their state"));
  }
}

TEST_F(redlock, members_that_were_flushed_do_not_give_a_held_lock_away) {
  // Broken: the run id does not change on FLUSHALL, so a mark by run id alone is blind to it.
  const client a = open_client(servers.url());
  const client b = open_client(servers.url());
  mutex first(a, "stock", {.ttl = 20s});
  mutex second(b, "stock", {.ttl = 20s});
  auto lease = first.acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  for (const std::size_t i : {0U, 2U, 4U}) servers[i].cli({"FLUSHALL"});
  const auto refused = second.acquire({.wait = 0s});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().code, testing::AnyOf(errc::busy, errc::unavailable));
}

TEST_F(redlock, a_lock_that_is_taken_away_notifies_its_holder_at_once) {
  // Broken: two holders run until the next renewal although every server could notify them (A9).
  const client a = open_client(servers.url());
  client b = open_client(servers.url());
  for (const auto how : {revocation::force, revocation::safe}) {
    mutex stock(a, how == revocation::force ? "forced" : "revoked", {.ttl = 30s});
    auto lease = stock.acquire({.wait = patience});
    ASSERT_TRUE(lease) << lease.error().message();
    flag told;
    const std::stop_callback on_lost(lease->lost(), [&] { told.raise(); });
    const auto taken = b.revoke(lease->name(), how);
    ASSERT_TRUE(taken) << taken.error().message();
    EXPECT_TRUE(told.wait(7s)) << "the next renewal is after more than 8 s";
    EXPECT_EQ(b.inspect(lease->name()).value().holders.size(), how == revocation::force ? 0U : 1U);
  }
}

TEST_F(redlock, one_server_that_takes_it_away_ends_nothing) {
  // Broken: anyone who reaches one server takes locks from everybody.
  const client a = open_client(servers.url());
  mutex stock(a, "stock", {.ttl = 15s});
  auto lease = stock.acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  for (const std::size_t i : {1U, 3U}) {
    auto one = client::open("redis://127.0.0.1:" + std::to_string(servers[i].port())).value();
    ASSERT_TRUE(eventually(
        [&] { return one.inspect("stock").value_or(resource_state{}).holders.size() == 1; }));
    ASSERT_EQ(one.revoke("stock", revocation::force).value().size(), 1U);
    EXPECT_TRUE(eventually([&] {
      return one.inspect("stock").value_or(resource_state{}).holders.size() == 1;
    })) << "given to it again by a renewal";
  }
  EXPECT_TRUE(lease->valid());
  EXPECT_TRUE(lease->release());
}

TEST_F(redlock, a_user_that_may_not_listen_learns_with_the_next_renewal) {
  // Broken: a user without rights to channels cannot lock, or never learns that it was taken away.
  for (std::size_t i = 0; i < servers.size(); ++i) {
    servers[i].cli(
        {"ACL", "SETUSER", "deaf", "on", ">word", "~holdfast:*", "resetchannels", "+@all"});
  }
  const std::string scheme = "redlock://";
  const client a = open_client(scheme + "deaf:word@" + servers.url().substr(scheme.size()));
  client b = open_client(servers.url());
  mutex stock(a, "stock", {.ttl = 2s});
  auto lease = stock.acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  ASSERT_TRUE(b.revoke("stock", revocation::force));
  EXPECT_TRUE(eventually([&] { return !lease->valid(); }));
  EXPECT_TRUE(stock.acquire({.wait = patience}));
}

TEST_F(redlock, a_server_under_two_names_is_found_by_its_run_id) {
  // Broken: one server has two votes (H54).
  const std::string port = std::to_string(servers[0].port());
  const client a = open_client("redlock://127.0.0.1:" + port + ",localhost:" + port);
  mutex stock(a, "stock", {.ttl = 20s});
  const auto refused = stock.acquire({.wait = 0s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::invalid) << refused.error().message();
  EXPECT_EQ(client::open("redlock://127.0.0.1:" + port + ",127.0.0.1:" + port).error().code,
            errc::invalid);
}

TEST_F(redlock, what_it_does_not_have_it_refuses) {
  // Broken: a semaphore by majority lets in more than there are permits.
  const client a = open_client(servers.url());
  semaphore places(a, "places", {.max = 2});
  EXPECT_EQ(places.acquire({.wait = 0s}).error().code, errc::unsupported);
  mutex fair(a, "stock", {.fair = true});
  EXPECT_EQ(fair.acquire({.wait = 0s}).error().code, errc::unsupported);
  mutex too_long(a, "stock", {.ttl = 31s});
  EXPECT_EQ(too_long.acquire({.wait = 0s}).error().code, errc::invalid);
}

TEST_F(redlock, a_member_that_came_back_holds_the_lock_again) {
  // Broken: a lease by exactly a majority is not topped up and dies with the next member (H56).
  const client a = open_client(servers.url());
  mutex stock(a, "stock", {.ttl = 12s});
  servers[1].kill();
  auto lease = stock.acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  servers[1].start();
  EXPECT_TRUE(eventually([&] {
    return !servers[1].cli({"--scan", "--pattern", "holdfast:*s:*"}).empty();
  })) << "asked again with a renewal";
  EXPECT_TRUE(lease->valid());
}

}  // namespace
}  // namespace holdfast::test

#endif
