// Names, namespaces and kinds: what conflicts and what never does.
#include "contract/contract.hpp"

#include <string>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(naming);

std::vector<std::string> odd_names() {
  return {"a",
          "A",
          "a ",
          " a",
          "a/b",
          "a//b",
          "/a",
          "a/",
          ".",
          "..",
          "../a",
          "a.b",
          "{a}",
          "}{",
          "a:b",
          "a%2Fb",
          "%",
          "%%",
          "'; DROP TABLE claims; --",
          "\"quoted\"",
          "back\\slash",
          "a*b?",
          "[a]",
          "$HOME",
          "`id`",
          "holdfast",
          "-",
          "--",
          "0",
          "null",
          "ä",
          "a\xcc\x88",  // looks the same, but other bytes: another name
          "日本語",
          "🔒",
          "\xe2\x80\xae"
          "abc",  // right-to-left override
          std::string(512, 'x'),
          std::string(511, 'x') + "y",
          std::string(511, 'x')};
}

TEST_P(naming, every_name_is_a_lock_of_its_own) {
  // Broken: two names are one lock, or one cannot be used.
  const client a = open();
  const client b = open();
  std::vector<lease> held;
  for (const std::string& name : odd_names()) {
    auto got = mutex(a, name).acquire({.wait = patience});
    ASSERT_THAT(got, succeeds()) << name;
    EXPECT_EQ(got->name(), name);
    held.push_back(*std::move(got));
  }
  for (const std::string& name : odd_names()) {
    EXPECT_THAT(mutex(b, name).acquire({.wait = 0s}), fails_with(errc::busy)) << name;
  }
  if (!a.caps().supports_listing) return;
  const auto all = b.list();
  ASSERT_THAT(all, succeeds());
  std::vector<std::string> listed;
  for (const auto& each : *all) listed.push_back(each.name);
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(odd_names()));
}

TEST_P(naming, what_is_no_name_is_refused) {
  // Broken: a name that cannot be shown, stored or compared.
  client a = open();
  const std::vector<std::string> bad{"",
                                     std::string(513, 'x'),
                                     "a\nb",
                                     "tab\t",
                                     std::string("nul\0", 4),
                                     "\x1b[31m",
                                     "\x7f",
                                     "\xc2\x85",
                                     "\xff",
                                     "\xc3",
                                     "\xc0\xaf",
                                     "\xed\xa0\x80",
                                     "\xf5\x80\x80\x80"};
  for (const std::string& name : bad) {
    EXPECT_EQ(thrown_by([&] { mutex(a, name); }), "invalid");
    EXPECT_EQ(thrown_by([&] { recursive_mutex(a, name); }), "invalid");
    EXPECT_EQ(thrown_by([&] { shared_mutex(a, name); }), "invalid");
    EXPECT_EQ(thrown_by([&] { semaphore(a, name, {}); }), "invalid");
    EXPECT_EQ(thrown_by([&] { latch(a, name); }), "invalid");
    EXPECT_EQ(thrown_by([&] { election(a, name, "id"); }), "invalid");
    EXPECT_THAT(a.inspect(name), fails_with(errc::invalid));
    EXPECT_THAT(a.revoke(name, revocation::force), fails_with(errc::invalid));
  }
}

TEST_P(naming, names_in_different_namespaces_never_conflict) {
  // Broken: the test environment locks production.
  client_options shop;
  shop.name_space = "shop";
  client_options other;
  other.name_space = "sho";
  const client plain = open();
  const client one = open(shop);
  const client two = open(other);
  const client same = open(shop);
  if (!one.caps().supports_namespaces) {
    EXPECT_THAT(mutex(one, "stock").acquire(), fails_with(errc::unsupported));
    EXPECT_THAT(one.inspect("stock"), fails_with(errc::unsupported));
    return;
  }
  const auto held = mutex(one, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_THAT(mutex(plain, "stock").acquire({.wait = patience}), succeeds());
  EXPECT_THAT(mutex(two, "stock").acquire({.wait = patience}), succeeds());
  EXPECT_THAT(mutex(two, "pstock").acquire({.wait = patience}), succeeds());
  EXPECT_THAT(mutex(plain, "shop/stock").acquire({.wait = patience}), succeeds());
  EXPECT_THAT(mutex(same, "stock").acquire({.wait = 0s}), fails_with(errc::busy));
  // The others were released, but nobody waited for the answer.
  EXPECT_TRUE(eventually([&] { return holders(plain, "stock") == 0U; }));
  EXPECT_EQ(holders(same, "stock"), 1U);
  if (one.caps().supports_listing) {
    EXPECT_EQ(same.list()->size(), 1U);
    EXPECT_TRUE(eventually([&] { return two.list()->empty(); }));
  }
  if (one.caps().latches) {
    EXPECT_THAT(latch(two, "stock").set(1), succeeds());
    EXPECT_EQ(latch(plain, "stock").count().value(), std::nullopt);
  }
}

TEST_P(naming, what_is_no_namespace_is_refused) {
  // Broken: a namespace that breaks out of its own.
  for (const std::string& space :
       {std::string("a/b"), std::string("a b"), std::string("ä"), std::string(65, 'x')}) {
    client_options options;
    options.name_space = space;
    EXPECT_THAT(client::open(url(), options), fails_with(errc::invalid)) << space;
  }
  client_options longest;
  longest.name_space = std::string(64, 'x');
  EXPECT_THAT(client::open(url(), longest), succeeds());
}

TEST_P(naming, a_name_is_of_one_kind_at_a_time) {
  // Broken: a semaphore and a mutex of one name do not see each other.
  const client a = open();
  const client b = open();
  {
    const auto held = mutex(a, "n").acquire();
    ASSERT_THAT(held, succeeds());
    if (a.caps().permits) {
      EXPECT_THAT(semaphore(b, "n", {.max = 2}).acquire({.wait = 0s}),
                  fails_with(errc::name_conflict));
      EXPECT_THAT(semaphore(b, "n", {.max = 2}).available(), fails_with(errc::name_conflict));
    }
    if (a.caps().latches) {
      EXPECT_THAT(latch(b, "n").set(1), fails_with(errc::name_conflict));
      EXPECT_THAT(latch(b, "n").wait({.wait = patience}), fails_with(errc::name_conflict));
    }
  }
  ASSERT_TRUE(becomes_free(a, "n"));
  if (a.caps().permits) {
    const auto permit = semaphore(b, "n", {.max = 2}).acquire({.wait = 0s});
    ASSERT_THAT(permit, succeeds());
    EXPECT_THAT(mutex(a, "n").acquire({.wait = 0s}), fails_with(errc::name_conflict));
  }
  ASSERT_TRUE(becomes_free(a, "n"));
  // A Redisson semaphore keeps its number under the name, and a latch is a number, too.
  if (a.caps().engine == "redis, dialect=redisson") return;
  if (a.caps().latches) {
    ASSERT_THAT(latch(a, "n").set(1), succeeds());
    EXPECT_THAT(mutex(a, "n").acquire({.wait = 0s}), fails_with(errc::name_conflict));
    if (a.caps().permits) {
      EXPECT_THAT(semaphore(b, "n", {.max = 2}).acquire({.wait = 0s}),
                  fails_with(errc::name_conflict));
    }
  }
}

TEST_P(naming, a_url_is_understood_or_refused) {
  // Broken: a typo opens something else.
  EXPECT_THAT(client::open("nonsense://host"), fails_with(errc::invalid));
  EXPECT_THAT(client::open("nonsense://host").error().detail, testing::HasSubstr("memory:"));
  EXPECT_THAT(client::open("no url"), fails_with(errc::invalid));
  EXPECT_THAT(client::open(""), fails_with(errc::invalid));
  EXPECT_THAT(client::open(url() + "?no-such-option=1"), fails_with(errc::invalid));
  EXPECT_THAT(client::open("memory://user:secret@host/"), fails_with(errc::invalid));
  EXPECT_THAT(client::open("memory://user:secret@host/").error().message(),
              testing::Not(testing::HasSubstr("secret")));
  client_options options;
  options.payload = std::string(257, 'x');
  EXPECT_THAT(client::open(url(), options), fails_with(errc::invalid));
  options = {};
  options.close_within = -1s;
  EXPECT_THAT(client::open(url(), options), fails_with(errc::invalid));
}

}  // namespace
}  // namespace holdfast::test
