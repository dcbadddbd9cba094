// Which commands go as one, and which answer is whose.
#ifdef HOLDFAST_WITH_REDIS

#include "stores/redis/client/bundler.hpp"
#include "stores/redis/client/script.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

namespace holdfast::test {
namespace {

using redis::bundler;
using redis::command;
using redis::pending;
using redis::pending_queue;
using redis::reply;
using redis::script;

constexpr time_point start{};

struct redis_bundler : testing::Test {
  std::shared_ptr<const script> both = std::make_shared<script>("both");
  script take{"take", script::gives::nothing, {both, 'a'}};
  script give{"give", script::gives::nothing, {both, 'l'}};
  script other{"other"};
  bundler all;
  pending_queue held;

  void hold(const script& what, const std::string& key, std::vector<std::string_view> arguments,
            duration deadline = std::chrono::seconds(1)) {
    pending one{.until = start + deadline, .in_full = true, .runs = &what};
    one.kept = what.by_hash(std::array<std::string_view, 2>{key, "mark"}, arguments);
    held.push_back(std::move(one));
  }
  void hold(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) hold(take, "k" + std::to_string(i), {"x"});
  }
  static reply of(reply::type kind, std::int64_t number = 0) {
    reply made;
    made.kind = kind;
    made.integer = number;
    return made;
  }
};

TEST_F(redis_bundler, calls_that_follow_each_other_are_one_call) {
  // Broken: an argument would go to another name's script.
  hold(take, "one", {"a\r\n1"}, std::chrono::seconds(3));
  hold(give, "two", {"b"}, std::chrono::seconds(2));
  const pending whole = all.take(held, all.together(held));
  EXPECT_TRUE(held.empty());
  EXPECT_EQ(whole.kept->bytes(), (command{"EVALSHA", both->hash(), "4", "one", "mark", "two",
                                          "mark", "al", "a\r\n1", "b"}
                                      .bytes()));
  EXPECT_EQ(whole.runs, both.get());
  EXPECT_EQ(whole.members.size(), 2U);
  EXPECT_EQ(whole.size(), 2U);
  EXPECT_EQ(whole.until.deadline, start + std::chrono::seconds(2)) << "the earliest";
  EXPECT_TRUE(whole.in_full);
}

TEST_F(redis_bundler, one_alone_stays_what_it_is) {
  hold(1);
  const pending one = all.take(held, all.together(held));
  EXPECT_EQ(one.runs, &take);
  EXPECT_TRUE(one.members.empty());
}

TEST_F(redis_bundler, what_cannot_go_with_others_ends_a_bundle) {
  // Broken: commands would overtake each other, or be asked with an argument too few.
  hold(2);
  hold(other, "k", {"x"});
  hold(2);
  hold(give, "k", {"x", "1"});
  hold(1);
  EXPECT_EQ(all.take(held, all.together(held)).size(), 2U);
  EXPECT_EQ(all.take(held, all.together(held)).runs, &other);
  EXPECT_EQ(all.take(held, all.together(held)).size(), 2U);
  EXPECT_EQ(all.take(held, all.together(held)).runs, &give);
  EXPECT_EQ(all.take(held, all.together(held)).runs, &take);
  EXPECT_TRUE(held.empty());
}

TEST_F(redis_bundler, a_bundle_has_a_limit) {
  // Broken: the server would do nothing else for a long time.
  hold(bundler::at_most + 3);
  EXPECT_EQ(all.take(held, all.together(held)).size(), bundler::at_most);
  EXPECT_EQ(all.take(held, all.together(held)).size(), 3U);
}

TEST_F(redis_bundler, each_gets_its_own_answer) {
  hold(3);
  const pending whole = all.take(held, all.together(held));
  reply answer = of(reply::type::array);
  answer.elements = {of(reply::type::integer, 7), of(reply::type::nil),
                     of(reply::type::integer, 9)};
  const auto answers = all.open(whole, answer);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].integer, 7);
  EXPECT_TRUE(answers[1].is(reply::type::nil));
  EXPECT_EQ(answers[2].integer, 9);
}

TEST_F(redis_bundler, what_is_turned_away_makes_wary) {
  // Broken: on names that many want every command would be asked twice.
  hold(2);
  const pending whole = all.take(held, all.together(held));
  reply answer = of(reply::type::array);
  answer.elements = {of(reply::type::nil), of(reply::type::integer, 1)};
  static_cast<void>(all.open(whole, answer));
  hold(bundler::wary + 5);
  for (std::size_t i = 0; i < bundler::wary; ++i)
    ASSERT_EQ(all.take(held, all.together(held)).size(), 1U) << i;
  EXPECT_EQ(all.take(held, all.together(held)).size(), 5U);
}

TEST_F(redis_bundler, an_error_is_everybodys) {
  hold(2);
  const pending whole = all.take(held, all.together(held));
  reply answer = of(reply::type::error);
  answer.text = "LOADING";
  for (const reply& each : all.open(whole, answer)) EXPECT_TRUE(each.is_error("LOADING"));
}

TEST_F(redis_bundler, an_answer_of_another_size_is_nobodys) {
  // Broken: somebody would take another's answer for its own, or wait for ever.
  hold(3);
  const pending whole = all.take(held, all.together(held));
  reply answer = of(reply::type::array);
  answer.elements = {of(reply::type::integer, 7), of(reply::type::integer, 8)};
  const auto answers = all.open(whole, answer);
  ASSERT_EQ(answers.size(), 3U);
  for (const reply& each : answers) EXPECT_TRUE(each.is_error());
  for (const reply& each : all.open(whole, of(reply::type::integer, 3))) {
    EXPECT_TRUE(each.is_error());
  }
}

}  // namespace
}  // namespace holdfast::test

#endif
