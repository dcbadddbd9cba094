// The breaker alone: how many failures in a row, and what closes it.
#include "stores/degraded/breaker_store.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

TEST(breaker, doubts_with_the_last_of_so_many_failures_and_says_so_once) {
  // Broken: off by one, or a look for every failure.
  degraded::breaker breaker(3);
  EXPECT_FALSE(breaker.failed());
  EXPECT_FALSE(breaker.failed());
  EXPECT_TRUE(breaker.closed());
  EXPECT_TRUE(breaker.failed());
  EXPECT_FALSE(breaker.closed());
  EXPECT_FALSE(breaker.failed());
}

TEST(breaker, opens_when_it_doubts_and_a_look_fails) {
  // Broken: requests that an engine answers with a failure are taken for silence.
  degraded::breaker breaker(1);
  EXPECT_FALSE(breaker.looked_in_vain()) << "nobody doubted";
  EXPECT_TRUE(breaker.failed());
  EXPECT_FALSE(breaker.open());
  EXPECT_TRUE(breaker.answered());
  EXPECT_FALSE(breaker.closes()) << "it was not open";
  EXPECT_FALSE(breaker.looked_in_vain()) << "there was an answer meanwhile";
  EXPECT_TRUE(breaker.failed());
  EXPECT_TRUE(breaker.looked_in_vain());
  EXPECT_TRUE(breaker.open());
  EXPECT_FALSE(breaker.looked_in_vain());
  EXPECT_FALSE(breaker.failed());
  EXPECT_TRUE(breaker.open());
}

TEST(breaker, counts_failures_in_a_row) {
  // Broken: three failures in a year open it.
  degraded::breaker breaker(2);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(breaker.failed());
    EXPECT_FALSE(breaker.answered());
  }
  EXPECT_FALSE(breaker.open());
}

TEST(breaker, closes_with_the_first_answer_and_counts_from_zero) {
  // Broken: it stays open, or opens again with one failure.
  degraded::breaker breaker(2);
  breaker.failed();
  breaker.failed();
  breaker.looked_in_vain();
  EXPECT_TRUE(breaker.answered());
  EXPECT_TRUE(breaker.closes());
  EXPECT_FALSE(breaker.open());
  EXPECT_FALSE(breaker.answered());
  EXPECT_FALSE(breaker.failed());
  EXPECT_FALSE(breaker.open());
}

}  // namespace
}  // namespace holdfast::test
