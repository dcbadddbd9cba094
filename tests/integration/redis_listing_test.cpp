// Listing the names on a Redis server: idle names do not count, damaged ones do not hide the rest.
#include "integration/redis_store_harness.hpp"

#include <algorithm>
#include <string>

namespace holdfast::test {
namespace {

class redis_listing : public redis_store_test {
 protected:
  // The key of a name that was held and released.
  [[nodiscard]] std::string idle_key(const std::string& name) const {
    mutex lock(past, name);
    EXPECT_TRUE(lock.acquire({.wait = patience}));
    EXPECT_TRUE(is_free(past, name));
    return server.cli({"KEYS", "*:s:*" + name});
  }
};

TEST_F(redis_listing, a_damaged_value_is_named_and_the_others_are_listed) {
  // Broken: one truncated value would hide every lock from an operator.
  mutex lock(past, "sound");
  const auto held = lock.acquire({.wait = patience});
  ASSERT_TRUE(held);
  for (const char* const name : {"idle", "holder"}) {
    const std::string key = idle_key(name);
    mutex again(past, name);
    const auto kept = again.acquire({.wait = patience});
    ASSERT_TRUE(kept);
    const std::size_t end = name == std::string("idle") ? 10 : 60;
    server.cli({"EVAL", "redis.call('SET', KEYS[1], redis.call('GETRANGE', KEYS[1], 0, ARGV[1]))",
                "1", key, std::to_string(end)});
    const auto all = past.list("");
    ASSERT_TRUE(all) << all.error().message();
    const auto found = std::ranges::find(*all, name, &resource_summary::name);
    ASSERT_NE(found, all->end());
    EXPECT_EQ(found->holders + found->waiters, 0U);
    const auto sound = std::ranges::find(*all, "sound", &resource_summary::name);
    ASSERT_NE(sound, all->end());
    EXPECT_EQ(sound->holders, 1U);
  }
}

TEST_F(redis_listing, idle_names_do_not_count_however_many_there_are) {
  // Broken: a server on which many names were used today could not be listed.
  const std::string key = idle_key("model");
  server.cli(
      {"EVAL",
       "local value = redis.call('GET', KEYS[1])\n"
       "for i = 1, 120000 do\n"
       "  redis.call('SET', 'holdfast:{' .. i % 256 .. '}:s:%2fidle' .. i, value, 'EX', 3600)\n"
       "end",
       "1", key});
  mutex lock(past, "busy");
  const auto held = lock.acquire({.wait = patience});
  ASSERT_TRUE(held);
  auto all = past.list("");
  // A busy machine may need longer than one call has.
  ASSERT_TRUE(eventually([&] { return all || (all = past.list("")); })) << all.error().message();
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->front().name, "busy");
}

}  // namespace
}  // namespace holdfast::test
