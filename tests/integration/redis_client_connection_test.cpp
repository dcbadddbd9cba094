// The command connection on a sound network: answers go to the caller that asked, however many ask.
#ifdef HOLDFAST_WITH_REDIS

#include "redis_client_harness.hpp"
#include "support/redis_server.hpp"

#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

// Runs the work on this many threads at once.
template <class Work>
void on_threads(int count, Work&& work) {
  std::vector<std::jthread> all;
  for (int i = 0; i < count; ++i) all.emplace_back([&work, i] { work(i); });
}

TEST(redis_connection, a_lone_command_is_answered) {
  // Broken: nothing works at all.
  const redis_server server;
  client_side client;
  const auto line = client.connect(server.port());
  EXPECT_EQ(words(client.call(line, {"PING"})), "PONG");
  EXPECT_EQ(words(client.call(line, {"SET", "key", "value"})), "OK");
  EXPECT_EQ(words(client.call(line, {"GET", "key"})), "value");
  EXPECT_EQ(words(client.call(line, {"INCR", "count"})), "1");
}

TEST(redis_connection, any_bytes_are_carried_as_they_are) {
  // Broken: a name or value with line ends or zeros would be torn, or inject commands.
  const redis_server server;
  client_side client;
  const auto line = client.connect(server.port());
  const std::string value("\r\n*1\r\n$4\r\nPING\r\n\0\xff", 18);
  EXPECT_EQ(words(client.call(line, {"SET", value, value})), "OK");
  EXPECT_EQ(words(client.call(line, {"GET", value})), value);
  EXPECT_EQ(words(client.call(line, {"ECHO", ""})), "");
}

TEST(redis_connection, sixteen_threads_share_it_and_each_gets_its_own_answers) {
  // Broken: an answer would go to another's command, and one thread would take another's grant for
  // its own.
  const redis_server server;
  client_side client;
  auto options = options_for(server.port());
  options.name = "shared";
  const auto line = client.connect(std::move(options));
  std::atomic<int> wrong{0};
  on_threads(16, [&](int thread) {
    for (int round = 0; round < 500; ++round) {
      const std::string text = std::to_string(thread) + ":" + std::to_string(round);
      if (words(client.call(line, {"ECHO", text})) != text) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  const std::string list = server.cli({"CLIENT", "LIST"});
  const auto first = list.find("name=shared");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(list.find("name=shared", first + 1), std::string::npos) << "one connection is enough";
}

TEST(redis_connection, commands_of_one_thread_are_executed_in_their_order) {
  // Broken: a release sent behind an acquire could overtake it.
  const redis_server server;
  client_side client;
  const auto line = client.connect(server.port());
  std::vector<awaited> answers;
  for (int i = 0; i < 10'000; ++i) answers.push_back(client.send(line, {"INCR", "count"}));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_EQ(words(answers[i].get()), std::to_string(i + 1));
  }
}

TEST(redis_connection, commands_sent_together_have_nothing_in_between) {
  // Broken: ASKING would apply to another caller's command, WAIT would wait for another's write.
  const redis_server server;
  client_side client;
  const auto line = client.connect(server.port());
  std::atomic<int> wrong{0};
  on_threads(8, [&](int thread) {
    const std::string mine = std::to_string(thread);
    command both{"SET", "key", mine};
    both.then({"GET", "key"});
    for (int round = 0; round < 300; ++round) {
      const auto answer = client.call(line, both);
      if (!answer || answer->elements.size() != 2 || answer->elements[1].text != mine) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(redis_connection, what_is_larger_than_the_socket_takes_at_once_arrives_whole) {
  // Broken: a batch of renewals would stop in the middle, with everything behind it.
  const redis_server server;
  client_side client;
  const auto line = client.connect(server.port());
  std::string large(8'000'000, 'x');
  for (std::size_t i = 0; i < large.size(); i += 997) large[i] = static_cast<char>('a' + i % 26);
  std::vector<awaited> answers;
  for (int i = 0; i < 4; ++i) answers.push_back(client.send(line, {"ECHO", large}));
  const auto small = client.send(line, {"PING"});
  for (const awaited& one : answers) EXPECT_TRUE(words(one.get()) == large);
  EXPECT_EQ(words(small.get()), "PONG");
}

TEST(redis_connection, commands_sent_by_completions_go_out_too) {
  // Broken: asynchronous callers that send the next command from within an answer would hang.
  const redis_server server;
  client_side client;
  const auto line = client.connect(server.port());
  std::atomic<bool> done{false};
  std::atomic<int> count{0};
  spi::function<void()> next;
  next = [&] {
    line->send({"INCR", "count"}, clock::now() + ample, [&](result<redis::reply> answer) {
      count = answer ? static_cast<int>(answer->integer) : -1;
      if (answer && count < 1'000) return next();
      done = true;
      client.reactor()->wake(done);
    });
  };
  next();
  client.reactor()->wait(done);
  EXPECT_EQ(count, 1'000);
}

TEST(redis_connection, names_addresses_and_unix_sockets_lead_to_the_server) {
  // Broken: users of one of these could not connect.
  const redis_server server;
  client_side client;
  for (const char* host : {"127.0.0.1", "::1", "localhost"}) {
    auto options = options_for(server.port());
    options.where.host = host;
    EXPECT_EQ(words(client.call(client.connect(options), {"PING"})), "PONG") << host;
  }
  auto options = options_for(0);
  options.where = {"", 0, server.socket()};
  EXPECT_EQ(words(client.call(client.connect(options), {"PING"})), "PONG");
}

TEST(redis_connection, it_knows_which_server_it_greeted_and_selects_the_database) {
  // Broken: locks would be put into another database than asked; floors could not be checked.
  const redis_server server;
  client_side client;
  auto options = options_for(server.port());
  options.database = 3;
  const auto line = client.connect(options);
  EXPECT_FALSE(line->server());
  EXPECT_EQ(words(client.call(line, {"SET", "here", "yes"})), "OK");
  EXPECT_EQ(server.cli({"-n", "3", "GET", "here"}), "yes");
  const auto greeted = line->server();
  ASSERT_TRUE(greeted);
  EXPECT_GE(greeted->version, redis::oldest_version);
  EXPECT_EQ(greeted->part, redis::server_info::role::master);
  EXPECT_EQ(greeted->mode, "standalone");
  EXPECT_EQ(greeted->run_id.size(), 40U);
}

TEST(redis_connection, a_database_that_is_not_there_is_said_at_once) {
  // Broken: the user would wait for a deadline to learn of a typing error.
  const redis_server server;
  client_side client;
  auto options = options_for(server.port());
  options.database = 99;
  const auto answer = client.call(client.connect(options), {"PING"});
  ASSERT_EQ(code(answer), errc::denied);  // the server's answer, not a malformed URL
  EXPECT_THAT(answer.error().detail, testing::HasSubstr("DB index is out of range"));
}

TEST(redis_connection, closing_answers_everything_and_refuses_the_rest) {
  // Broken: a caller would wait forever for a connection that no longer exists.
  const redis_server server;
  client_side client;
  const auto line = client.connect(server.port());
  EXPECT_EQ(words(client.call(line, {"PING"})), "PONG");
  const auto pending = client.send(line, {"BLPOP", "nothing", "0"});
  line->close();
  ASSERT_TRUE(pending.there()) << "answered before close() returns";
  EXPECT_EQ(code(pending.get()), errc::unavailable);
  EXPECT_EQ(code(client.call(line, {"PING"})), errc::cancelled);
  line->close();
}

TEST(redis_connection, one_that_is_dropped_with_commands_under_way_answers_them) {
  // Broken: the last owner's end would leave callers without an answer, or crash in a callback.
  const redis_server server;
  client_side client;
  auto line = connection::make(client.network(), options_for(server.port()));
  const auto pending = client.send(line, {"PING"});
  line.reset();
  EXPECT_TRUE(words(pending.get()) == "PONG" || code(pending.get()) == errc::unavailable);
}

}  // namespace
}  // namespace holdfast::test

#endif
