// Which commands are sent as one, and which answer belongs to which.
#ifdef HOLDFAST_WITH_REDIS

#include "stores/redis/client/batch.hpp"
#include "stores/redis/client/command.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

namespace holdfast::test {
namespace {

using redis::batch_answers;
using redis::batch_limit;
using redis::batch_size;
using redis::command;
using redis::make_call;
using redis::pending_ptr;
using redis::pending_queue;
using redis::reply;
using redis::script;
using redis::take_batch;

constexpr time_point start{};

struct redis_batches : testing::Test {
  std::shared_ptr<const script> both = std::make_shared<script>("both");
  script take{"take", script::gives::nothing, {both, 'a'}};
  script give{"give", script::gives::nothing, {both, 'l'}};
  script other{"other"};
  pending_queue held;

  void hold(const script& what, const std::string& key, std::vector<std::string_view> arguments,
            duration deadline = std::chrono::seconds(1)) {
    held.push_back(make_call(what,
                             what.call(std::array<std::string_view, 2>{key, "mark"}, arguments),
                             start + deadline, [](const result<reply>&) {}));
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

TEST_F(redis_batches, calls_that_follow_each_other_are_one_call) {
  // Broken: an argument would go to another name's script.
  hold(take, "one", {"a\r\n1"}, std::chrono::seconds(3));
  hold(give, "two", {"b"}, std::chrono::seconds(2));
  const pending_ptr whole = take_batch(held, batch_size(held));
  EXPECT_TRUE(held.empty());
  EXPECT_EQ(whole->what.bytes(), (command{"EVALSHA", both->hash(), "4", "one", "mark", "two",
                                          "mark", "al", "a\r\n1", "b"}
                                      .bytes()));
  EXPECT_EQ(whole->runs, both.get());
  EXPECT_EQ(whole->members.size(), 2U);
  EXPECT_EQ(whole->size(), 2U);
  EXPECT_EQ(whole->until.deadline, start + std::chrono::seconds(2)) << "the earliest";
  EXPECT_GT(whole->reloads, 0) << "goes once more if the server does not know it";
}

TEST_F(redis_batches, one_alone_stays_what_it_is) {
  hold(1);
  const pending_ptr one = take_batch(held, batch_size(held));
  EXPECT_EQ(one->runs, &take);
  EXPECT_TRUE(one->members.empty());
}

TEST_F(redis_batches, what_cannot_go_with_others_ends_a_batch) {
  // Broken: commands would overtake each other, or be sent with an argument too few.
  hold(2);
  hold(other, "k", {"x"});
  hold(2);
  hold(give, "k", {"x", "1"});
  hold(1);
  EXPECT_EQ(take_batch(held, batch_size(held))->size(), 2U);
  EXPECT_EQ(take_batch(held, batch_size(held))->runs, &other);
  EXPECT_EQ(take_batch(held, batch_size(held))->size(), 2U);
  EXPECT_EQ(take_batch(held, batch_size(held))->runs, &give);
  EXPECT_EQ(take_batch(held, batch_size(held))->runs, &take);
  EXPECT_TRUE(held.empty());
}

TEST_F(redis_batches, a_batch_has_a_limit) {
  // Broken: the server would do nothing else for a long time.
  hold(batch_limit + 3);
  EXPECT_EQ(take_batch(held, batch_size(held))->size(), batch_limit);
  EXPECT_EQ(take_batch(held, batch_size(held))->size(), 3U);
}

TEST_F(redis_batches, each_gets_its_own_answer) {
  hold(3);
  const pending_ptr whole = take_batch(held, batch_size(held));
  reply answer = of(reply::type::array);
  answer.elements = {of(reply::type::integer, 7), of(reply::type::nil),
                     of(reply::type::integer, 9)};
  const auto answers = batch_answers(*whole, answer);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].integer, 7);
  EXPECT_TRUE(answers[1].is(reply::type::nil));
  EXPECT_EQ(answers[2].integer, 9);
}

TEST_F(redis_batches, without_memory_each_goes_alone) {
  // Broken: releases could fail because of the attempts that were sent with them.
  hold(2);
  const pending_ptr whole = take_batch(held, batch_size(held));
  reply answer = of(reply::type::error);
  answer.text = "OOM command not allowed";
  for (const reply& each : batch_answers(*whole, answer)) EXPECT_TRUE(each.is(reply::type::nil));
}

TEST_F(redis_batches, an_error_is_everybodys) {
  hold(2);
  const pending_ptr whole = take_batch(held, batch_size(held));
  reply answer = of(reply::type::error);
  answer.text = "LOADING";
  for (const reply& each : batch_answers(*whole, answer)) EXPECT_TRUE(each.is_error("LOADING"));
}

TEST_F(redis_batches, an_answer_of_another_size_is_nobodys) {
  // Broken: a caller would take another's answer for its own, or wait forever.
  hold(3);
  const pending_ptr whole = take_batch(held, batch_size(held));
  reply answer = of(reply::type::array);
  answer.elements = {of(reply::type::integer, 7), of(reply::type::integer, 8)};
  const auto answers = batch_answers(*whole, answer);
  ASSERT_EQ(answers.size(), 3U);
  for (const reply& each : answers) EXPECT_TRUE(each.is_error());
  for (const reply& each : batch_answers(*whole, of(reply::type::integer, 3))) {
    EXPECT_TRUE(each.is_error());
  }
}

}  // namespace
}  // namespace holdfast::test

#endif
