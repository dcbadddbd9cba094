// Scripts and functions: known or not, flushed or not, they are executed exactly once, and in order.
#ifdef HOLDFAST_WITH_REDIS

#include "redis_client_harness.hpp"
#include "stores/redis/client/command.hpp"
#include "support/redis_server.hpp"

#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using redis::script;

struct redis_script : testing::Test {
  redis_server server;
  client_side client;
  std::shared_ptr<connection> line = client.connect(server.port());
  const script increment{"return redis.call('INCRBY', KEYS[1], ARGV[1])"};

  awaited run(const script& what, std::vector<std::string_view> keys,
              std::vector<std::string_view> arguments) {
    awaited answer(client.reactor());
    line->send(redis::make_call(what, what.call(keys, arguments), clock::now() + ample,
                                answer.completion()));
    return answer;
  }
};

TEST_F(redis_script, the_hash_is_the_servers) {
  // Broken: every call would be sent in full, or fail.
  EXPECT_EQ(words(client.call(line, {"SCRIPT", "LOAD", increment.text()})), increment.hash());
}

TEST_F(redis_script, it_is_sent_in_full_only_where_it_is_not_known) {
  // Broken (H32): after SCRIPT FLUSH or a restart no lock could be taken; or every call would carry
  // the whole text.
  const auto sent_in_full = [&] {
    return server.cli({"INFO", "commandstats"}).find("cmdstat_eval:calls=1,") != std::string::npos;
  };
  for (const char* count : {"1", "2", "3"}) {
    EXPECT_EQ(words(run(increment, {"count"}, {"1"}).get()), count);
  }
  EXPECT_TRUE(sent_in_full());
  server.cli({"SCRIPT", "FLUSH"});
  server.cli({"CONFIG", "RESETSTAT"});
  for (const char* count : {"4", "5", "6"}) {
    EXPECT_EQ(words(run(increment, {"count"}, {"1"}).get()), count);
  }
  EXPECT_TRUE(sent_in_full());
}

TEST_F(redis_script, one_that_the_server_knows_does_not_overtake_one_that_it_does_not) {
  // Broken: a client's first release was carried out after the try that followed it, which was
  // refused.
  const script set("return redis.call('SET', KEYS[1], ARGV[1])");
  const script get("return redis.call('GET', KEYS[1])");
  for (const char* value : {"1", "2"}) {
    server.cli({"SCRIPT", "FLUSH"});
    line = client.connect(server.port());
    ASSERT_EQ(words(client.call(line, {"SCRIPT", "LOAD", get.text()})), get.hash());
    const awaited first = run(set, {"value"}, {value});
    const awaited second = run(get, {"value"}, {});
    EXPECT_EQ(words(second.get()), value);
    EXPECT_EQ(words(first.get()), "OK");
  }
}

TEST_F(redis_script, keys_and_arguments_are_the_same_the_second_time) {
  // Broken: the fallback would use another key than the call.
  const script echo("return {KEYS[1], KEYS[2], ARGV[1], ARGV[2]}");
  const std::string odd("a\r\n$3\r\n\0b", 9);
  for (int i = 0; i < 2; ++i) {
    const auto answer = run(echo, {odd, "key"}, {"", odd}).get();
    ASSERT_TRUE(answer && answer->elements.size() == 4);
    EXPECT_EQ(answer->elements[0].text, odd);
    EXPECT_EQ(answer->elements[1].text, "key");
    EXPECT_EQ(answer->elements[2].text, "");
    EXPECT_EQ(answer->elements[3].text, odd);
  }
}

// A function that counts, in a library; and as a script.
script counting() {
  const auto library = std::make_shared<const redis::library>(
      redis::library{"#!lua name=counting\n"
                     "redis.register_function('count', function(keys, args)\n"
                     "  return redis.call('INCRBY', keys[1], args[1])\nend)\n"});
  return script("return redis.call('INCRBY', KEYS[1], ARGV[1])", script::gives::nothing, {},
                {library, "count"});
}

struct redis_function : redis_script {
  const script count = counting();
  std::size_t loads() {
    const std::string text = server.cli({"INFO", "commandstats"});
    const std::string start = "cmdstat_function|load:calls=";
    const auto at = text.find(start);
    return at == std::string::npos ? 0 : std::stoul(text.substr(at + start.size()));
  }
};

TEST_F(redis_function, its_library_is_loaded_once_where_it_is_not_known) {
  // Broken: no lock could be taken on a new server; or every connection would send the whole library.
  for (const char* each : {"1", "2"}) EXPECT_EQ(words(run(count, {"n"}, {"1"}).get()), each);
  EXPECT_EQ(loads(), 1U);
  line = client.connect(server.port());
  EXPECT_EQ(words(run(count, {"n"}, {"1"}).get()), "3");
  EXPECT_EQ(loads(), 1U);
  server.cli({"FUNCTION", "FLUSH"});
  for (const char* each : {"4", "5"}) EXPECT_EQ(words(run(count, {"n"}, {"1"}).get()), each);
  EXPECT_EQ(loads(), 2U);
}

TEST_F(redis_function, is_a_script_where_functions_are_off) {
  // Broken: a server that has no functions, or denies them to us, could not be used.
  redis::server_options options = options_for(server.port());
  options.functions = false;
  line = client.connect(std::move(options));
  for (const char* each : {"1", "2"}) EXPECT_EQ(words(run(count, {"n"}, {"1"}).get()), each);
  EXPECT_EQ(loads(), 0U);
}

TEST_F(redis_function, what_was_sent_before_the_library_is_known_keeps_its_order) {
  // Broken: a release would be overtaken by the attempt behind it, on a new server or after FUNCTION FLUSH.
  for (int round = 0; round < 30; ++round) {
    server.cli({"FUNCTION", "FLUSH"});
    server.cli({"SET", "n", "0"});
    std::vector<awaited> counts;
    for (int i = 0; i < 50; ++i) {
      counts.push_back(run(count, {"n"}, {"1"}));
      if (i == 30) {
        EXPECT_TRUE(counts.front().get());
      }
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      ASSERT_EQ(words(counts[i].get()), std::to_string(i + 1));
    }
  }
}

TEST_F(redis_function, a_library_that_may_not_be_loaded_is_named_as_the_reason) {
  // Broken: a user without the right would read that a function is not found, and look in the wrong
  // place.
  server.cli({"ACL", "SETUSER", "shop", "on", ">secret", "~*", "&*", "+@all", "-function"});
  redis::server_options options = options_for(server.port());
  options.user = "shop";
  options.password = spi::secret("secret");
  line = client.connect(std::move(options));
  EXPECT_NE(words(run(count, {"n"}, {"1"}).get()).find("function|load"), std::string::npos)
      << words(run(count, {"n"}, {"1"}).get());
  // An operator may load it.
  server.cli({"FUNCTION", "LOAD", count.functions()->text});
  EXPECT_EQ(words(run(count, {"n"}, {"1"}).get()), "1");
}

TEST_F(redis_function, many_threads_while_libraries_and_scripts_are_flushed_count_exactly) {
  // Broken: a call would be executed twice, or not at all, around a flush.
  constexpr int threads = 4;
  constexpr int rounds = 250;
  std::atomic<bool> stop{false};
  std::jthread flusher([&] {
    while (!stop) {
      server.cli({"SCRIPT", "FLUSH"});
      server.cli({"FUNCTION", "FLUSH"});
    }
  });
  {
    std::vector<std::jthread> all;
    for (int thread = 0; thread < threads; ++thread) {
      all.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) {
          const auto answer = run(round % 2 == 0 ? increment : count, {"count"}, {"1"}).get();
          EXPECT_TRUE(answer && !answer->is_error()) << words(answer);
        }
      });
    }
  }
  stop = true;
  flusher.join();
  EXPECT_EQ(words(client.call(line, {"GET", "count"})), std::to_string(threads * rounds));
}

}  // namespace
}  // namespace holdfast::test

#endif
