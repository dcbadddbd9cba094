// How many renewals go to an SQL server in one call.
#include "stores/sql/renewal_batch.hpp"
#include "support/times.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

TEST(renewal_pace, slow_calls_become_smaller_but_never_tiny) {
  // Broken: a call takes so long that the server is taken for dead.
  sql::renewal_pace pace;
  EXPECT_EQ(pace.per_call(), sql::renewal_pace::first);
  pace.took(600ms, 64, 1s);
  EXPECT_EQ(pace.per_call(), 32U);
  for (int i = 0; i < 10; ++i) pace.took(600ms, pace.per_call(), 1s);
  EXPECT_EQ(pace.per_call(), sql::renewal_pace::fewest);
}

TEST(renewal_pace, fast_calls_become_larger) {
  // Broken: each handful of renewals costs a transaction of its own.
  sql::renewal_pace pace;
  pace.took(100ms, 64, 1s);
  EXPECT_EQ(pace.per_call(), 128U);
  pace.took(100ms, 10, 1s);  // says nothing about 128
  EXPECT_EQ(pace.per_call(), 128U);
  pace.took(200ms, 128, 1s);  // neither slow nor fast
  EXPECT_EQ(pace.per_call(), 128U);
  for (int i = 0; i < 10; ++i) pace.took(1ms, pace.per_call(), 1s);
  EXPECT_EQ(pace.per_call(), sql::renewal_pace::most);
}

TEST(renewal_pace, a_slow_call_from_before_does_not_make_them_larger) {
  // Broken: the answer to a large call that was sent earlier undoes what was learned since.
  sql::renewal_pace pace;
  pace.took(900ms, 32, 1s);
  EXPECT_EQ(pace.per_call(), sql::renewal_pace::fewest);
  pace.took(900ms, 1'000, 1s);
  EXPECT_EQ(pace.per_call(), sql::renewal_pace::fewest);
}

}  // namespace
}  // namespace holdfast::test
