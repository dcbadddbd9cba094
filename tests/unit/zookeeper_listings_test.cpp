// Many flows that need the same list at the same time share it.
#ifdef HOLDFAST_WITH_ZOOKEEPER
#include "stores/flow.hpp"
#include "stores/zookeeper/line.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <deque>
#include <string>
#include <utility>

namespace holdfast::zookeeper {
namespace {

// The lists that were sent, in order, and what continues when one is answered.
struct server {
  struct sent {
    server& at;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> then) const { at.pending.push_back(then); }
    void await_resume() const noexcept {}
  };
  std::deque<std::coroutine_handle<>> pending;
  int lists = 0;

  sent list() {
    ++lists;
    return {*this};
  }
  void answer() {
    const auto next = pending.front();
    pending.pop_front();
    next.resume();
  }
};

struct tally {
  int answered = 0;
  int failed = 0;
};

flow look(listings& all, listings::folder where, server& from, tally& into, bool works = true,
          time_point deadline = {}) {
  const auto others = co_await listings::turn(all, where, deadline);
  if (others) {
    ++(*others ? into.answered : into.failed);
    co_return;
  }
  all.sending(where);
  co_await from.list();
  listings::answer seen = failure(errc::unavailable);
  if (works) seen = std::make_shared<const line>(std::vector<std::string>{});
  all.finished(where, seen);
  ++(works ? into.answered : into.failed);
}

TEST(zookeeper_listings, one_alone_sends_its_own) {
  listings all;
  server from;
  tally seen;
  look(all, {nullptr, "/a"}, from, seen);
  EXPECT_EQ(from.lists, 1);
  from.answer();
  EXPECT_EQ(seen.answered, 1);
  look(all, {nullptr, "/a"}, from, seen);
  EXPECT_EQ(from.lists, 2);
  from.answer();
  EXPECT_EQ(seen.answered, 2);
}

TEST(zookeeper_listings, callers_that_come_during_a_list_share_the_next_one) {
  // Broken: a flow shares a list that was sent before its node was created.
  listings all;
  server from;
  tally seen;
  for (int i = 0; i < 1'000; ++i) look(all, {nullptr, "/a"}, from, seen);
  EXPECT_EQ(from.lists, 1);
  from.answer();
  EXPECT_EQ(seen.answered, 1);
  EXPECT_EQ(from.lists, 2);
  look(all, {nullptr, "/a"}, from, seen);
  from.answer();
  EXPECT_EQ(seen.answered, 1'000);
  EXPECT_EQ(from.lists, 3);
  from.answer();
  EXPECT_EQ(seen.answered, 1'001);
  EXPECT_TRUE(from.pending.empty());
}

TEST(zookeeper_listings, folders_do_not_wait_for_each_other) {
  listings all;
  server from;
  tally seen;
  look(all, {nullptr, "/a"}, from, seen);
  look(all, {nullptr, "/b"}, from, seen);
  EXPECT_EQ(from.lists, 2);
  from.answer();
  from.answer();
  EXPECT_EQ(seen.answered, 2);
}

TEST(zookeeper_listings, a_list_that_fails_fails_for_those_it_was_for) {
  listings all;
  server from;
  tally seen;
  look(all, {nullptr, "/a"}, from, seen);
  look(all, {nullptr, "/a"}, from, seen, false);
  look(all, {nullptr, "/a"}, from, seen);
  from.answer();
  look(all, {nullptr, "/a"}, from, seen);
  from.answer();
  EXPECT_EQ(seen.failed, 2);
  from.answer();
  EXPECT_EQ(seen.answered, 2);
}

TEST(zookeeper_listings, the_one_with_the_most_time_left_sends_for_all) {
  // Broken: a list fails for thousands because the one that sent it had no time left.
  listings all;
  server from;
  tally seen;
  const time_point now{};
  look(all, {nullptr, "/a"}, from, seen);
  look(all, {nullptr, "/a"}, from, seen, false, now + std::chrono::seconds(1));
  look(all, {nullptr, "/a"}, from, seen, true, now + std::chrono::seconds(3));
  look(all, {nullptr, "/a"}, from, seen, false, now + std::chrono::seconds(2));
  from.answer();
  from.answer();
  EXPECT_EQ(seen.answered, 4);
  EXPECT_EQ(seen.failed, 0);
}

TEST(zookeeper_listings, a_list_sent_with_a_request_serves_nobody_else) {
  listings all;
  server from;
  tally seen;
  const listings::folder where{nullptr, "/a"};
  EXPECT_TRUE(all.start(where));
  EXPECT_FALSE(all.start(where));
  look(all, where, from, seen);
  EXPECT_EQ(from.lists, 0);
  all.finished(where, std::make_shared<const line>(std::vector<std::string>{}));
  EXPECT_EQ(seen.answered, 0);
  EXPECT_EQ(from.lists, 1);
  from.answer();
  EXPECT_EQ(seen.answered, 1);
  EXPECT_TRUE(all.start(where));
}

}  // namespace
}  // namespace holdfast::zookeeper
#endif
