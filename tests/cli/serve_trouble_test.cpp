// holdfast serve: clients that want too much, engines that go away and come back.
#include "cli/serving.hpp"

#ifdef HOLDFAST_WITH_REDIS
#include "support/redis_server.hpp"
#endif

#include <signal.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::cli_test {
namespace {

using nlohmann::json;

TEST_F(serve, more_streams_than_there_is_room_for_are_refused_and_the_rest_works) {
  // Broken: a browser with many tabs keeps Prometheus out.
  process server = serve_at({file_});
  std::vector<process> streams;
  for (int i = 0; i < 32; ++i) streams.push_back(shell_.start(curl("/api/events")));
  for (const process& one : streams) ASSERT_TRUE(one.says("event: stats")) << one.out();
  const web_answer more = get("/api/events");
  EXPECT_EQ(more.status, 503) << more.body;
  EXPECT_NE(more.head.find("Retry-After"), std::string::npos);
  EXPECT_EQ(metric("holdfast_serve_streams"), "32");
  streams.front().send(SIGTERM);
  streams.front().end();
  EXPECT_TRUE(eventually([&] { return metric("holdfast_serve_streams") == "31"; }));
  // It ends cleanly although streams are open.
  server.send(SIGTERM);
  EXPECT_EQ(server.end().code, 0);
}

TEST_F(serve, clients_that_say_nothing_are_bounded_and_end) {
  // Broken: idle connections use up descriptors and threads until nothing is answered.
  process server = serve_at({file_});
  const std::string port = address_.substr(address_.rfind(':') + 1);
  const answer got = shell_.run(
      {"python3", "-c",
       "import socket, sys\n"
       "all = [socket.create_connection(('127.0.0.1', int(sys.argv[1])), 120) for _ in range(64)]\n"
       "late = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 120)\n"
       "print(late.recv(100).split(b'\\r\\n')[0].decode())\n"
       "print([one.recv(100) for one in all[:8]].count(b''))\n",
       port});
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_NE(got.out.find("503"), std::string::npos) << got.out;
  EXPECT_TRUE(eventually([&] { return status("/healthz") == 200; }));
  server.send(SIGINT);
  EXPECT_EQ(server.end().code, 0);
}

TEST_F(serve, an_answer_is_not_repeated_for_every_range_that_is_asked_for) {
  // Broken: a request of 8 KiB costs hundreds of megabytes.
  const process server = serve_at({file_});
  const auto length = [](const web_answer& of) {
    const auto at = of.head.find("Content-Length: ");
    return at == std::string::npos ? 0 : std::stol(of.head.substr(at + 16));
  };
  std::string ranges = "bytes=-";
  for (int i = 0; i < 4000; ++i) ranges += ",-";
  const long plain = length(get("/"));
  ASSERT_GT(plain, 0);
  for (const char* name : {"Range", "RANGE", "range"}) {
    const web_answer got = get("/", {"--header", name + (": " + ranges)});
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(length(got), plain);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // these want to be loaded first
TEST_F(serve, goes_on_when_the_system_could_not_accept_a_connection) {
  // Broken: it answers nobody any more, and the watchdog is told that it is well.
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  shell_.environment["LD_PRELOAD"] = folder / "failing_calls.so";
  shell_.environment["HOLDFAST_FAULT"] = "accept4:1:" + std::to_string(ENFILE) + ":once:armed";
  const process server = serve_at({file_});
  shell_.environment.erase("LD_PRELOAD");
  EXPECT_EQ(status("/healthz"), 200);
}
#endif

TEST_F(serve, a_busy_name_keeps_no_more_than_its_share) {
  // Broken: memory grows with every event.
  const process server = serve_at({file_});
  ASSERT_TRUE(eventually([&] { return metric("holdfast_engine_up{engine=\"sqlite\"}") == "1"; }));
  ASSERT_EQ(type({"--url", file_, "bench", "--locks", "same", "--duration", "500ms"}).code, 0);
  ASSERT_TRUE(eventually([&] {
    const std::string seen =
        metric("holdfast_engine_events_total{engine=\"sqlite\",event=\"released\"}");
    return !seen.empty() && std::stol(seen) > 50;
  }));
  EXPECT_EQ(metric("holdfast_serve_past_events"), "50");
}

#ifdef HOLDFAST_WITH_REDIS
TEST_F(serve, engines_that_are_silent_delay_no_answer) {
  // Broken: Prometheus gives up after 10 s, without the numbers of the engines that answer.
  test::redis_server redis;
  const std::string url = "redis://127.0.0.1:" + std::to_string(redis.port());
  redis.pause();
  const process server = serve_at({"one=" + url, "two=" + url, "fine=" + file_});
  ASSERT_TRUE(server.complains("engine one does not answer"));
  ASSERT_TRUE(server.complains("engine two does not answer"));
  // If each of them waited for an engine, all of them would take longer than any limit here.
  const process scrapes = shell_.start(curl("/metrics?[1-200]"));
  for (const char* line : {"engine_up{engine=\"one\"} 0\n", "engine_up{engine=\"two\"} 0\n",
                           "engine_held{engine=\"fine\"} 0\n"}) {
    EXPECT_TRUE(eventually([&] { return count(scrapes.out(), line) == 200; })) << line;
  }
}

TEST_F(serve, an_engine_that_is_away_is_reported_and_seen_again_when_it_is_back) {
  // Broken: old numbers for an engine that does not answer, or none after it does again.
  test::redis_server redis(
      {.arguments = {"--requirepass", "secret-word"}, .admin = {"-a", "secret-word"}});
  const std::string url = "redis://:secret-word@127.0.0.1:" + std::to_string(redis.port());
  redis.kill();
  const process server = serve_at({"main=" + url});
  ASSERT_TRUE(server.complains("engine main does not answer"));
  EXPECT_EQ(status("/healthz"), 200) << "it serves";
  EXPECT_EQ(metric("holdfast_engine_up{engine=\"main\"}"), "0");
  EXPECT_EQ(metric("holdfast_engine_held{engine=\"main\"}"), "")
      << "no number rather than a wrong one";
  EXPECT_EQ(status("/api/locks/x"), 503);
  const json away = document("/api/locks");
  EXPECT_EQ(away["engines"][0]["up"], false);
  EXPECT_NE(away["engines"][0]["trouble"], "");
  redis.start();
  ASSERT_TRUE(server.complains("engine main answers again"));
  const process holder = hold("x", {"--url", url});
  ASSERT_TRUE(listed("x"));
  // Once it listens again: what happened before that is not seen.
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(type({"--url", url, "run", "y", "--", "true"}).code, 0);
    return metric("holdfast_engine_events_total{engine=\"main\",event=\"granted\"}") != "0";
  })) << "events, too";
  const std::string shown = get("/api/engines").body + get("/metrics").body + server.err();
  EXPECT_EQ(shown.find("secret-word"), std::string::npos) << shown;
}

TEST_F(serve, an_engine_that_comes_back_during_a_scrape_is_counted_by_it) {
  // Broken: it waits as long as it may, and says that the engine is up, without its numbers.
  test::redis_server slow;
  test::redis_server away;
  slow.kill();
  away.kill();
  const process server = serve_at({"slow=redis://127.0.0.1:" + std::to_string(slow.port()),
                                   "away=redis://127.0.0.1:" + std::to_string(away.port())});
  ASSERT_TRUE(server.complains("engine away does not answer"));
  ASSERT_TRUE(server.complains("engine slow does not answer"));
  slow.start();
  ASSERT_TRUE(server.complains("engine slow answers again"));  // and was not listed yet
  slow.pause();
  const process scrape = shell_.start(curl("/metrics"));
  away.start();
  ASSERT_TRUE(server.complains("engine away answers again"));
  slow.resume();
  ASSERT_TRUE(scrape.says("\nprocess_resident_memory_bytes ")) << scrape.out();
  EXPECT_EQ(count(scrape.out(), "engine_held{engine=\"away\"} 0\n"),
            count(scrape.out(), "engine_up{engine=\"away\"} 1\n"))
      << scrape.out();
}
#endif

}  // namespace
}  // namespace holdfast::cli_test
