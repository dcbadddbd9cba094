// Sentinels and servers with TLS, each with users of their own: all of them are verified, even
// those known only from others; and a refusal says who refuses, and what to grant. All tests share
// one set of them.
#include "contract/contract.hpp"
#include "support/secured_redis.hpp"
#include "support/temporary_folder.hpp"

#include <holdfast/holdfast.hpp>

#include <gtest/gtest.h>

#include <fstream>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

class redis_sentinel_secured : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    files_ = std::make_unique<tls_files>();
    folder_ = std::make_unique<temporary_folder>();
    own_ = files_->signed_for("IP:127.0.0.1");
    other_ = files_->signed_for("DNS:elsewhere");
    servers_ = std::make_unique<redis_sentinels>(secured_sentinels(own_, own_, *files_));
    std::ofstream(folder_->path() / "password") << watcher_password << "\n";
  }
  static void TearDownTestSuite() {
    servers_.reset();
    folder_.reset();
    files_.reset();
  }
  void SetUp() override {
    ASSERT_TRUE(eventually([] { return servers().settled(); }, 4 * patience));
  }

  [[nodiscard]] static redis_sentinels& servers() { return *servers_; }
  [[nodiscard]] static std::string as_watcher() {
    return "&sentinel_user=watcher&sentinel_password_file=" +
           (folder_->path() / "password").string();
  }
  [[nodiscard]] static std::string url(const std::string& more = as_watcher(),
                                       const std::string& ca = files_->authority(),
                                       const std::string& password = shop_password) {
    std::string text = servers().url();
    text.insert(text.find("//") + 2, "shop:" + password + "@");
    return text + "?tls=yes&ca=" + ca + more;
  }
  [[nodiscard]] static result<lease> try_with(const std::string& where, duration wait = patience) {
    const client one = client::open(where).value();
    return mutex(one, "stock").acquire({.wait = wait});
  }
  static void present(redis_server& server, const tls_files::pair& certificate) {
    server.cli(
        {"CONFIG", "SET", "tls-cert-file", certificate.cert, "tls-key-file", certificate.key});
  }

  static inline std::unique_ptr<tls_files> files_;
  static inline std::unique_ptr<temporary_folder> folder_;
  static inline std::unique_ptr<redis_sentinels> servers_;
  static inline tls_files::pair own_;
  static inline tls_files::pair other_;
};

TEST_F(redis_sentinel_secured, a_waiter_is_granted_by_the_next_master) {
  // Broken: what was set up by the first connection (TLS, user) is forgotten for the next master.
  const client holding = client::open(url()).value();
  const client waiting = client::open(url()).value();
  mutex first(holding, "stock", {.ttl = 20s});
  mutex second(waiting, "stock", {.ttl = 20s});
  auto held = first.acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  auto granted = in_thread([&] { return second.acquire({.wait = 6 * patience}); });
  ASSERT_TRUE(has_waiters(holding, "stock", 1));
  const auto before = servers().master().port();
  servers().fail_over();
  EXPECT_NE(servers().master().port(), before);
  const fence_token fence = held->fence();
  static_cast<void>(held->release());
  ASSERT_TRUE(arrives(granted, 4 * patience));
  const auto next = granted.get();
  ASSERT_THAT(next, succeeds());
  EXPECT_GT(next->fence(), fence);
}

TEST_F(redis_sentinel_secured, sentinels_of_another_authority_are_refused) {
  // Broken: anybody could name the master.
  tls_files strangers;
  const auto answer = try_with(url(as_watcher(), strangers.authority()));
  ASSERT_THAT(answer, fails_with(errc::denied));
  EXPECT_THAT(answer.error().detail, HasSubstr("sentinel: "));
  EXPECT_THAT(answer.error().detail, HasSubstr("certificate"));
}

TEST_F(redis_sentinel_secured, a_master_whose_certificate_names_another_is_refused_by_name) {
  // Broken: only the servers in the URL are verified, and those they name are trusted.
  redis_server& master = servers().master();
  present(master, other_);
  const auto answer = try_with(url());
  present(master, own_);
  ASSERT_THAT(answer, fails_with(errc::denied));
  EXPECT_THAT(answer.error().detail, HasSubstr(std::to_string(master.port())));
  EXPECT_THAT(answer.error().detail, HasSubstr("IP address mismatch"));
  EXPECT_THAT(try_with(url()), succeeds());
}

TEST_F(redis_sentinel_secured, without_tls_nothing_is_said_to_them) {
  // Broken: a password travels in the clear because "tls" was forgotten.
  std::string plain = url();
  plain.replace(plain.find("tls=yes&ca=" + files_->authority()),
                ("tls=yes&ca=" + files_->authority()).size(), "tls=no");
  EXPECT_THAT(try_with(plain, 0s), fails_with(errc::denied));
  std::string wrong = url();
  wrong.replace(wrong.find("tls=yes"), 7, "tls=on");
  EXPECT_THAT(client::open(wrong), fails_with(errc::invalid));
}

TEST_F(redis_sentinel_secured, sentinels_have_users_of_their_own) {
  // Broken: a wrong user looks like an outage; or the servers' password is tried on the sentinels.
  const auto nobody = try_with(url(""));
  ASSERT_THAT(nobody, fails_with(errc::denied));
  EXPECT_THAT(nobody.error().detail, HasSubstr("sentinel_user"));

  const auto same = try_with(url("&sentinel_auth=same"));
  ASSERT_THAT(same, fails_with(errc::denied));
  EXPECT_THAT(same.error().detail, HasSubstr("wrong user or password"));

  const auto wrong = try_with(url("&sentinel_user=watcher&sentinel_password=wrong-word"));
  ASSERT_THAT(wrong, fails_with(errc::denied));
  EXPECT_THAT(wrong.error().detail, HasSubstr("sentinel: "));
  EXPECT_THAT(wrong.error().message(), testing::Not(HasSubstr("wrong-word")));

  EXPECT_THAT(
      try_with(url("&sentinel_user=watcher&sentinel_password=" + std::string(watcher_password))),
      succeeds());
}

TEST_F(redis_sentinel_secured, a_right_that_is_missing_at_the_sentinels_is_named) {
  // Broken: "no sentinel knows the master", and nobody finds out why.
  for (std::size_t i = 0; i < redis_sentinels::sentinel_count; ++i) {
    servers().ask(i, {"ACL", "SETUSER", "blind", "on", ">word", "-@all", "+role", "+info",
                      "+sentinel|get-master-addr-by-name"});
  }
  const auto answer = try_with(url("&sentinel_user=blind&sentinel_password=word"));
  ASSERT_THAT(answer, fails_with(errc::denied));
  EXPECT_THAT(answer.error().detail, HasSubstr("+sentinel|master"));
  EXPECT_THAT(answer.error().detail, HasSubstr("sentinel: redis 127.0.0.1:"));
}

TEST_F(redis_sentinel_secured, a_right_that_is_missing_at_the_master_is_named_with_it) {
  // Broken: rules are not replicated; after a failover nobody knows which server lacks one.
  redis_server& master = servers().master();
  master.cli({"ACL", "SETUSER", "shop", "resetkeys", "~other:*"});
  const auto answer = try_with(url());
  master.cli({"ACL", "SETUSER", "shop", "resetkeys", "~holdfast:*"});
  ASSERT_THAT(answer, fails_with(errc::denied));
  EXPECT_THAT(answer.error().detail, HasSubstr("127.0.0.1:" + std::to_string(master.port())));
  EXPECT_THAT(answer.error().detail, HasSubstr("~holdfast:*"));

  const auto wrong = try_with(url(as_watcher(), files_->authority(), "wrong-word"));
  ASSERT_THAT(wrong, fails_with(errc::denied));
  EXPECT_THAT(wrong.error().detail, HasSubstr("127.0.0.1:" + std::to_string(master.port())));
  EXPECT_THAT(wrong.error().message(), testing::Not(HasSubstr("wrong-word")));
}

TEST(redis_sentinel_url, what_is_wrong_with_the_sentinels_credentials_is_said) {
  // Broken: a typing error leaves sentinels without a user.
  const auto refused = [](const std::string& options) {
    const auto opened = client::open("redis+sentinel://h/stock?" + options);
    return opened ? std::string("opened") : opened.error().message();
  };
  EXPECT_THAT(refused("sentinel_user=watcher"), HasSubstr("without a password"));
  EXPECT_THAT(refused("sentinel_auth=some"), HasSubstr("none or same"));
  EXPECT_THAT(refused("sentinel_auth=same&sentinel_password=x"), HasSubstr("sentinel_auth=same"));
  EXPECT_THAT(refused("sentinel_password_file=/nowhere/word"), HasSubstr("/nowhere/word"));
  EXPECT_THAT(refused("sentinel_password=x&sentinel_password_file=/dev/null"),
              HasSubstr("sentinel_password_file"));
  EXPECT_THAT(refused("sentinel_password_file=/dev/null"), HasSubstr("empty"));
  EXPECT_THAT(refused("sentinel_password_file=/dev/zero"), HasSubstr("too long"));
  EXPECT_THAT(refused("sentinel_password=x"), "opened");
}

}  // namespace
}  // namespace holdfast::test
