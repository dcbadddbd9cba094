// result<T>, lock_error and the category: one text for one error, and std's conditions.
#include <holdfast/result.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::test {
namespace {

result<int> refused() {
  return failure(errc::timed_out, "memory, attempt, held by host:17:backup");
}

TEST(result_type, value_on_an_error_throws_the_whole_message) {
  // Broken: "Bad expected access" in a log, and nothing else.
  const std::string whole = "timed out (memory, attempt, held by host:17:backup)";
  try {
    static_cast<void>(refused().value());
    FAIL() << "nothing was thrown";
  } catch (const lock_error& thrown) {
    EXPECT_EQ(thrown.what(), whole);
    EXPECT_EQ(thrown.cause().message(), whole);
    EXPECT_EQ(thrown.cause(), errc::timed_out);
    EXPECT_EQ(thrown.code(), errc::timed_out);
    const lock_error copy = thrown;
    EXPECT_EQ(copy.what(), whole);
  }
  const result<void> nothing = failure(errc::busy);
  EXPECT_THROW(nothing.value(), lock_error);
  EXPECT_NO_THROW(result<void>{}.value());
  EXPECT_EQ(result<std::string>("text").value(), "text");
}

TEST(result_type, a_copy_is_the_value_also_where_a_bool_could_be_made_of_it) {
  // Broken: a copy of result<bool>(false) is true, since a result can be asked whether it has a value.
  result<bool> no = false;
  const result<bool> copy(no);
  EXPECT_FALSE(*copy);
  const auto captured = [no] { return *no; };
  EXPECT_FALSE(captured());
  EXPECT_EQ(no, copy);
  EXPECT_NE(no, result<bool>(failure(errc::busy)));
}

TEST(result_type, codes_are_std_conditions_where_std_has_them) {
  // Broken: a program that handles std::errc::timed_out everywhere does not see ours.
  const auto is = [](errc code, std::errc same) { return make_error_code(code) == same; };
  EXPECT_TRUE(is(errc::busy, std::errc::device_or_resource_busy));
  EXPECT_TRUE(is(errc::timed_out, std::errc::timed_out));
  EXPECT_TRUE(is(errc::cancelled, std::errc::operation_canceled));
  EXPECT_TRUE(is(errc::not_held, std::errc::operation_not_permitted));
  EXPECT_TRUE(is(errc::would_deadlock, std::errc::resource_deadlock_would_occur));
  EXPECT_TRUE(is(errc::unavailable, std::errc::io_error));
  EXPECT_TRUE(is(errc::denied, std::errc::permission_denied));
  EXPECT_TRUE(is(errc::overloaded, std::errc::resource_unavailable_try_again));
  EXPECT_TRUE(is(errc::unsupported, std::errc::not_supported));
  EXPECT_TRUE(is(errc::invalid, std::errc::invalid_argument));
  for (const errc own : {errc::lost, errc::conflict, errc::name_conflict}) {
    EXPECT_EQ(make_error_code(own).default_error_condition().category(), error_category());
  }
}

}  // namespace
}  // namespace holdfast::test
