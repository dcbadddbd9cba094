// What an uncontended lock allocates. The figures are in docs/performance.md; more than that must
// be a deliberate change.
//
// Not with sanitizers, which have an operator new of their own.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#include <holdfast/holdfast.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t allocations = 0;  // of this thread

}  // namespace

// Replaced in the whole test program: counting is all that they add.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* made = std::malloc(size)) return made;
  throw std::bad_alloc();
}
void operator delete(void* gone) noexcept { std::free(gone); }
void operator delete(void* gone, std::size_t) noexcept { std::free(gone); }

namespace holdfast::test {
namespace {

constexpr std::size_t allowed_for_a_pair = 14;
constexpr std::size_t rounds = 1'000;

// Allocations of this thread in each of many rounds, after everything lasting has been created.
template <class Round>
std::size_t allocations_of(Round&& round) {
  for (std::size_t i = 0; i < rounds; ++i) round();
  const std::size_t before = allocations;
  for (std::size_t i = 0; i < rounds; ++i) round();
  return (allocations - before + rounds - 1) / rounds;
}

client open() { return client::open("memory:").value(); }

TEST(allocations, of_an_uncontended_acquire_and_release_are_a_stated_few) {
  // Broken: a lock that nobody else wants costs more memory traffic than docs/performance.md says.
  const client shop = open();
  mutex stock(shop, "stock/42");
  const std::size_t counted = allocations_of([&] { EXPECT_TRUE(stock.acquire()); });
  EXPECT_LE(counted, allowed_for_a_pair);
  EXPECT_GT(counted, 0U);  // else nothing is counted
}

TEST(allocations, of_the_std_face_are_no_more_than_those_of_the_value_face) {
  // Broken: std::scoped_lock costs more memory traffic than acquire().
  const client shop = open();
  mutex stock(shop, "stock/42");
  EXPECT_LE(allocations_of([&] {
              stock.lock();
              stock.unlock();
            }),
            allowed_for_a_pair);
}

TEST(allocations, of_entering_again_are_not_made) {
  // Broken: re-entrance, a local count, has become more than that.
  const client shop = open();
  recursive_mutex tree(shop, "tree");
  tree.lock();
  EXPECT_EQ(allocations_of([&] {
              tree.lock();
              tree.unlock();
            }),
            0U);
  tree.unlock();
}

}  // namespace
}  // namespace holdfast::test
#endif
