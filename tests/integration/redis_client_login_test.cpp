// Who we are to the server: users, passwords, permissions, roles. A refusal is reported at once,
// with what to grant and without a secret.
#ifdef HOLDFAST_WITH_REDIS

#include "redis_client_harness.hpp"
#include "stores/redis/client/reply.hpp"
#include "support/redis_server.hpp"

#include <string_view>

namespace holdfast::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* secret_word = "dontprintme";

redis::server_options as(const redis_server& server, std::string user, std::string password) {
  auto options = options_for(server.port());
  options.user = std::move(user);
  options.password = spi::secret(std::move(password));
  return options;
}

TEST(redis_login, the_right_password_lets_us_in) {
  // Broken: servers with a password could not be used.
  const redis_server server(
      {.tls = false, .arguments = {"--requirepass", secret_word}, .admin = {"-a", secret_word}});
  client_side client;
  const auto line = client.connect(as(server, "", secret_word));
  EXPECT_EQ(words(client.call(line, {"PING"})), "PONG");
}

TEST(redis_login, a_wrong_or_missing_password_is_denied_at_once_and_never_printed) {
  // Broken: the user waits for a deadline, or finds the password in a log.
  const redis_server server(
      {.tls = false, .arguments = {"--requirepass", "another"}, .admin = {"-a", "another"}});
  client_side client;
  const auto wrong = client.call(client.connect(as(server, "", secret_word)), {"PING"});
  ASSERT_EQ(code(wrong), errc::denied);
  EXPECT_THAT(wrong.error().message(), HasSubstr("wrong user or password"));
  EXPECT_THAT(wrong.error().message(), Not(HasSubstr(secret_word)));

  const auto missing = client.call(client.connect(server.port()), {"PING"});
  ASSERT_EQ(code(missing), errc::denied);
  EXPECT_THAT(missing.error().message(), HasSubstr("give the password by --password-file"));
}

TEST(redis_login, nobody_goes_on_as_the_default_user) {
  // Broken (H84 l): with an open default user a wrong password would go unnoticed, and the locks
  // would be taken with somebody else's rights.
  const redis_server server;
  client_side client;
  const auto stranger = client.connect(as(server, "stranger", secret_word));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(code(client.call(stranger, {"SET", "key", "value"})), errc::denied);
  }
  const auto needless = client.call(client.connect(as(server, "", secret_word)), {"PING"});
  ASSERT_EQ(code(needless), errc::denied) << "a password where there is none is a mistake";
  EXPECT_THAT(needless.error().message(), Not(HasSubstr(secret_word)));
  EXPECT_EQ(server.cli({"EXISTS", "key"}), "0");
}

TEST(redis_login, a_user_with_few_rights_connects_and_learns_what_is_missing) {
  // Broken: the minimal privileges that we document would not suffice, or a refusal would not say
  // why.
  const redis_server server;
  server.cli({"ACL", "SETUSER", "few", "on", std::string(">") + secret_word, "-@all", "+ping",
              "+get", "+eval", "+subscribe", "~holdfast:*", "resetchannels", "&holdfast:*"});
  client_side client;
  auto options = as(server, "few", secret_word);
  options.name = "few";
  const auto line = client.connect(options);
  EXPECT_EQ(words(client.call(line, {"PING"})), "PONG");
  EXPECT_EQ(line->server()->part, redis::server_info::role::master);
  EXPECT_GE(line->server()->version, redis::oldest_version);

  const redis::grants wanted{"~holdfast:*", "&holdfast:*"};
  const auto refusal = [&](const command& what) {
    const auto answer = client.call(line, what);
    return answer ? to_error(*answer, what.verb(), "redis", wanted) : answer.error();
  };
  EXPECT_EQ(refusal({"SET", "holdfast:x", "1"}), errc::denied);
  EXPECT_THAT(refusal({"SET", "holdfast:x", "1"}).detail, HasSubstr("+set"));
  EXPECT_THAT(refusal({"GET", "other"}).detail, HasSubstr("~holdfast:*"));
  EXPECT_THAT(refusal({"SUBSCRIBE", "other"}).detail, HasSubstr("&holdfast:*"));
  const auto inside =
      refusal({"EVAL", "return redis.call('SET', KEYS[1], '1')", "1", "holdfast:x"});
  EXPECT_EQ(inside, errc::denied);
  EXPECT_THAT(inside.detail, HasSubstr("grant"));
}

TEST(redis_login, a_user_that_is_removed_is_denied_and_one_that_comes_back_is_let_in) {
  // Broken (H84 m): a rotated password would need a restart of every client.
  const redis_server server;
  const auto allow = [&](const std::string& password) {
    server.cli({"ACL", "SETUSER", "one", "reset", "on", ">" + password, "+@all", "~*", "&*"});
  };
  allow(secret_word);
  client_side client;
  auto options = as(server, "one", secret_word);
  options.backoff = {1ms, 10ms};
  const auto line = client.connect(options);
  EXPECT_EQ(words(client.call(line, {"PING"})), "PONG");
  server.cli({"ACL", "DELUSER", "one"});
  EXPECT_TRUE(eventually([&] { return code(client.call(line, {"PING"})) == errc::denied; }));
  allow(secret_word);
  EXPECT_TRUE(eventually([&] { return words(client.call(line, {"PING"})) == "PONG"; }));
}

TEST(redis_login, a_replica_is_not_taken_for_a_master) {
  // Broken: locks would be requested from a server that forgets them.
  const redis_server server(
      {.tls = false, .arguments = {"--replicaof", "127.0.0.1", "1"}, .admin = {}});
  client_side client;
  EXPECT_TRUE(unavailable_for("not a master", 300ms, [&](duration limit) {
    return client.call(client.connect(server.port()), {"PING"}, limit);
  }));
  auto any = options_for(server.port());
  any.wanted = redis::server_options::role::any;
  EXPECT_EQ(words(client.call(client.connect(any), {"PING"})), "PONG");
}

TEST(redis_login, a_master_that_is_demoted_is_left_until_it_is_master_again) {
  // Broken (H45, H49): after a failover the client would talk to the old master forever.
  const redis_server server;
  client_side client;
  auto options = options_for(server.port());
  options.backoff = {1ms, 10ms};
  const auto line = client.connect(options);
  EXPECT_EQ(words(client.call(line, {"SET", "key", "1"})), "OK");
  server.cli({"REPLICAOF", "127.0.0.1", "1"});
  // The server drops its clients, or says READONLY once.
  EXPECT_TRUE(eventually([&] { return !client.call(line, {"SET", "key", "2"}, 100ms); }));
  server.cli({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(eventually([&] {
    return words(client.call(line, {"SET", "key", "3"}, 1s)) == "OK";
  }));
}

TEST(redis_login, a_server_that_is_full_is_named_and_tried_again) {
  // Broken (H40): the reason would be lost, or the refusal taken for a protocol error.
  const redis_server server;
  client_side client;
  server.cli({"CONFIG", "SET", "maxclients", "1"});
  const auto holder = client.connect(server.port());
  EXPECT_EQ(words(client.call(holder, {"PING"})), "PONG");
  auto options = options_for(server.port());
  options.backoff = {1ms, 10ms};
  const auto line = client.connect(options);
  EXPECT_TRUE(unavailable_for("max number of clients", 300ms,
                              [&](duration limit) { return client.call(line, {"PING"}, limit); }));
  EXPECT_EQ(words(client.call(holder, {"CONFIG", "SET", "maxclients", "100"})), "OK");
  EXPECT_EQ(words(client.call(line, {"PING"})), "PONG");
}

TEST(redis_login, a_host_that_cannot_be_resolved_ends_at_the_deadline) {
  // Broken (H29): a dead name server would hold the caller for tens of seconds.
  client_side client;
  auto options = options_for(6379);
  options.where.host = "no-such-host.invalid";
  const time_point start = clock::now();
  const auto answer = client.call(client.connect(options), {"PING"}, 300ms);
  EXPECT_EQ(code(answer), errc::unavailable);
  EXPECT_LT(clock::now() - start, 10s);
}

}  // namespace
}  // namespace holdfast::test

#endif
