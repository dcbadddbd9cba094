// The move-only callable: its target is created once, moved, called and destroyed once.
#include <holdfast/spi/function.hpp>

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::test {
namespace {

using spi::function;

// Counts live instances.
struct counted {
  explicit counted(int& living) : living_(&living) { ++living; }
  counted(counted&& other) noexcept : living_(other.living_), calls_(other.calls_) { ++*living_; }
  counted(const counted&) = delete;
  ~counted() { --*living_; }
  int operator()(int add) { return calls_ += add; }

 private:
  int* living_;
  int calls_ = 0;
};

// The same, too large for the inline buffer.
struct large_counted : counted {
  using counted::counted;
  std::array<char, 200> ballast{};
};

template <class Callable>
void lives_once() {
  int living = 0;
  {
    function<int(int)> first = Callable(living);
    EXPECT_EQ(living, 1);
    EXPECT_EQ(first(2), 2);
    function<int(int)> second = std::move(first);
    EXPECT_EQ(living, 1);
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(second(3), 5);
    first = std::move(second);
    EXPECT_EQ(living, 1);
    EXPECT_EQ(first(1), 6);
    first = nullptr;
    EXPECT_EQ(living, 0);
    EXPECT_FALSE(first);
    first = Callable(living);
    second = Callable(living);
    EXPECT_EQ(living, 2);
    second = std::move(first);
    EXPECT_EQ(living, 1);
  }
  EXPECT_EQ(living, 0);
}

TEST(function, a_small_callable_lives_once_whatever_is_moved) {
  // Broken: a completion runs its captures' destructors twice, or never.
  lives_once<counted>();
}

TEST(function, a_large_callable_lives_once_whatever_is_moved) {
  // Broken: the same on the heap.
  lives_once<large_counted>();
}

TEST(function, captures_that_cannot_be_copied_are_fine) {
  // Broken: completions cannot own what they complete.
  auto owned = std::make_unique<int>(41);
  function<int()> call = [owned = std::move(owned)] { return *owned + 1; };
  EXPECT_EQ(call(), 42);
}

TEST(function, arguments_are_forwarded_not_copied) {
  // Broken: a move-only answer cannot be delivered.
  function<std::size_t(std::unique_ptr<std::string>)> call = [](std::unique_ptr<std::string> text) {
    return text->size();
  };
  EXPECT_EQ(call(std::make_unique<std::string>("four")), 4U);
  std::string changed;
  function<void(std::string&)> change = [](std::string& text) { text = "changed"; };
  change(changed);
  EXPECT_EQ(changed, "changed");
}

TEST(function, an_empty_one_is_false_and_may_be_moved) {
  // Broken: a default-constructed completion crashes when it is moved or destroyed.
  function<void()> nothing;
  EXPECT_FALSE(nothing);
  function<void()> moved = std::move(nothing);
  EXPECT_FALSE(moved);
  moved = nullptr;
  EXPECT_FALSE(moved);
}

TEST(function, moving_onto_itself_changes_nothing) {
  // Broken: a swap accidentally destroys the callable.
  int living = 0;
  function<int(int)> call = counted(living);
  auto& same = call;
  call = std::move(same);
  EXPECT_TRUE(call);
  EXPECT_EQ(living, 1);
}

TEST(function, a_callable_that_may_throw_when_moved_is_not_moved) {
  // Broken: a vector of completions that grows could lose one half-way.
  struct throwing {
    throwing() = default;
    throwing(throwing&&) noexcept(false) { throw 1; }
    int operator()() { return 5; }
  };
  static_assert(!std::is_nothrow_move_constructible_v<throwing>);
  static_assert(std::is_nothrow_move_constructible_v<function<int()>>);
}

}  // namespace
}  // namespace holdfast::test
