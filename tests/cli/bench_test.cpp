// holdfast bench: its figures are true, and it does not report what it cannot measure.
#include "cli/fixture.hpp"

#ifdef HOLDFAST_WITH_REDIS
#include "support/redis_server.hpp"
#endif

#include <nlohmann/json.hpp>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>
#include <regex>

namespace holdfast::cli_test {
namespace {

using nlohmann::json;

class bench : public command_line {
 protected:
  using judge = std::function<bool(const json&)>;
  static judge at_least(int grants) {
    return [grants](const json& got) { return got.at("grants").get<int>() >= grants; };
  }
  // If the machine is paused for the whole measurement, it shows nothing: then it measures for
  // longer, until that is enough.
  json measure(const words& options, const words& global = {}, const judge& enough = at_least(1)) {
    json measured;
    for (const char* duration : {"500ms", "2s", "8s"}) {
      words line = global;
      line.insert(line.end(), {"bench", "--json", "--duration", duration});
      line.insert(line.end(), options.begin(), options.end());
      const answer got = type(line);
      EXPECT_EQ(got.code, 0) << got.err;
      EXPECT_EQ(got.err, "");
      EXPECT_EQ(lines(got.out), 1) << got.out;
      measured = json::parse(got.out);
      if (enough(measured)) break;
    }
    return measured;
  }
  // Processes that the program started.
  static std::vector<std::string> children_of(pid_t parent) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string text = read_file(entry.path().string() + "/stat");
      const auto name_ends = text.rfind(')');
      if (name_ends == std::string::npos) continue;
      std::istringstream rest(text.substr(name_ends + 1));
      std::string state;
      pid_t of = 0;
      rest >> state >> of;
      if (of == parent && state != "Z") found.push_back(entry.path().string());
    }
    return found;
  }
  // A table of times: counts add up, and a percentile is where the counts say.
  static void expect_consistent(const json& times) {
    ASSERT_FALSE(times.is_null());
    std::uint64_t seen = 0;
    double median = -1;
    const auto count = times.at("count").get<std::uint64_t>();
    for (const json& cell : times.at("histogram")) {
      seen += cell.at(1).get<std::uint64_t>();
      if (median < 0 && 2 * seen >= count) median = cell.at(0);
    }
    EXPECT_EQ(seen, count);
    EXPECT_DOUBLE_EQ(times.at("p50").get<double>(),
                     std::min(median, times.at("max").get<double>()));
    double last = 0;
    for (const char* each : {"p50", "p90", "p99", "p99.9", "max"}) {
      EXPECT_GE(times.at(each).get<double>(), last) << each;
      last = times.at(each).get<double>();
    }
    EXPECT_LE(times.at("mean").get<double>(), last);
  }
};

TEST_F(bench, its_figures_agree_with_each_other) {
  const json got = measure({"--threads", "3"});
  const auto grants = got.at("grants_by_thread").get<std::vector<double>>();
  ASSERT_EQ(grants.size(), 3U);
  const double all = std::accumulate(grants.begin(), grants.end(), 0.0);
  EXPECT_GT(all, 0);
  EXPECT_EQ(got.at("grants").get<double>(), all);
  const double counted = got.at("counted_ms").get<double>() / 1000;
  EXPECT_GE(counted, got.at("duration_ms").get<double>() / 1000 * 0.8) << "all but a warm-up";
  EXPECT_NEAR(got.at("grants_per_second").get<double>(), all / counted, 0.01);
  const double squares = std::inner_product(grants.begin(), grants.end(), grants.begin(), 0.0);
  EXPECT_NEAR(got.at("fairness").get<double>(), all * all / (3 * squares), 1e-9);
  expect_consistent(got.at("acquire_us"));
  expect_consistent(got.at("release_us"));
  EXPECT_GT(got.at("client").at("cpu_us_per_grant").get<double>(), 0);
  EXPECT_GT(got.at("client").at("memory_bytes").get<double>(), 1e6);
}

TEST_F(bench, what_an_engine_without_a_server_does_not_know_is_null) {
  // Broken: a zero that looks like a measurement.
  const json got = measure({});
  EXPECT_TRUE(got.at("hand_off_us").is_null()) << "nobody ever waited";
  for (const char* part : {"server", "network"}) {
    for (const auto& [key, value] : got.at(part).items()) EXPECT_TRUE(value.is_null()) << key;
  }
  const answer text = type({"bench", "--duration", "2s"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(std::regex_search(text.out, std::regex("\nhand-off( +-){5}\n"))) << text.out;
  EXPECT_NE(text.out.find('#'), std::string::npos) << "no bars in " << text.out;
}

TEST_F(bench, threads_of_several_processes_share_a_fair_lock_and_hand_it_on) {
  const json got =
      measure({"--threads", "2", "--processes", "3", "--locks", "same", "--mode", "fair"}, {},
              at_least(1'000));
  ASSERT_EQ(got.at("grants_by_thread").size(), 6U);
  for (const json& each : got.at("grants_by_thread")) EXPECT_GT(each.get<int>(), 0);
  EXPECT_GT(got.at("fairness").get<double>(), 0.7);
  expect_consistent(got.at("hand_off_us"));
  // A waiter of a hand-off had asked before it began.
  EXPECT_LE(got.at("hand_off_us").at("max").get<double>(),
            got.at("acquire_us").at("max").get<double>());
}

TEST_F(bench, a_lock_that_is_held_is_granted_no_more_often_than_that_allows) {
  // Broken: the lock, or the figures.
  const json got = measure({"--threads", "4", "--locks", "same", "--hold", "20ms"});
  EXPECT_LE(got.at("grants").get<int>(), got.at("counted_ms").get<int>() / 20 + 1);
  const json two =
      measure({"--threads", "4", "--locks", "same", "--hold", "20ms", "--mode", "semaphore:2"});
  EXPECT_LE(two.at("grants").get<int>(), 2 * (two.at("counted_ms").get<int>() / 20 + 1));
}

TEST_F(bench, every_mode_and_choice_of_locks_works) {
  for (const char* mode : {"mutex", "fair", "rw:90", "rw:0", "semaphore:2"}) {
    const json got = measure({"--threads", "3", "--locks", "zipf", "--mode", mode});
    EXPECT_EQ(got.at("mode").get<std::string>(), mode);
    EXPECT_GT(got.at("grants").get<int>(), 0) << mode;
  }
  EXPECT_GT(measure({"--threads", "2"}, {"--url", "memory:"}).at("grants").get<int>(), 0);
}

TEST_F(bench, an_engine_that_fails_is_122_and_has_no_figures) {
  const answer got = type({"--url", "sqlite:" + home_.path(), "bench", "--processes", "2"});
  EXPECT_EQ(got.code, 122);
  EXPECT_EQ(got.out, "");
  EXPECT_EQ(lines(got.err), 1) << got.err;
}

TEST_F(bench, interrupted_it_leaves_no_claim_and_no_process) {
  process run = begin({"bench", "--threads", "4", "--processes", "2", "--locks", "same", "--hold",
                       "10ms", "--duration", "10m"});
  ASSERT_TRUE(eventually([&] { return type({"ls", "--json"}).out != "[]\n"; }));
  std::vector<std::string> workers;
  EXPECT_TRUE(eventually([&] { return (workers = children_of(run.pid())).size() == 2; }));
  run.send(SIGTERM);
  EXPECT_EQ(run.end().code, 128 + SIGTERM);
  for (const std::string& each : workers) EXPECT_FALSE(std::filesystem::exists(each)) << each;
  EXPECT_EQ(type({"ls", "--json"}).out, "[]\n");
}

#ifdef HOLDFAST_WITH_REDIS

TEST_F(bench, a_server_of_this_machine_is_measured_too) {
  const test::redis_server server;
  const words global{"--url", "redis://127.0.0.1:" + std::to_string(server.port())};
  // Late reads on a busy machine matter less in a longer run, and the kernel counts a server's time
  // in steps of 10 ms.
  const json got = measure({}, global, [](const json& made) {
    const auto& sent = made.at("network").at("segments_sent_per_grant");
    const auto& spent = made.at("server").at("cpu_us_per_grant");
    return sent.is_number() && std::abs(sent.get<double>() - 2) < 0.3 && spent.is_number() &&
           spent.get<double>() > 0;
  });
  EXPECT_GT(got.at("server").at("cpu_us_per_grant").get<double>(), 0);
  EXPECT_GT(got.at("server").at("memory_bytes").get<double>(), 1e6);
  // One to take it, one to give it back.
  EXPECT_NEAR(got.at("network").at("segments_sent_per_grant").get<double>(), 2, 0.3);
  EXPECT_GT(got.at("network").at("bytes_sent_per_grant").get<double>(), 50);
  EXPECT_GT(got.at("network").at("bytes_received_per_grant").get<double>(), 10);
}

TEST_F(bench, nobody_sees_the_password_of_its_processes) {
  const test::redis_server server(
      {.arguments = {"--requirepass", "quiet-please"}, .admin = {"-a", "quiet-please"}});
  process run = begin({"--url", "redis://:quiet-please@127.0.0.1:" + std::to_string(server.port()),
                       "bench", "--processes", "2", "--locks", "same", "--duration", "10m"});
  ASSERT_TRUE(eventually([&] { return server.info("total_commands_processed") > 1'000; }));
  std::vector<std::string> workers;
  ASSERT_TRUE(eventually([&] { return (workers = children_of(run.pid())).size() == 2; }))
      << run.err();
  for (const std::string& each : workers) {
    EXPECT_EQ(read_file(each + "/cmdline").find("quiet"), std::string::npos);
    EXPECT_EQ(read_file(each + "/environ").find("quiet"), std::string::npos);
  }
  run.send(SIGINT);
  EXPECT_EQ(run.end().code, 128 + SIGINT);
}

TEST_F(bench, a_server_that_dies_meanwhile_ends_it_with_122) {
  test::redis_server server;
  process run = begin({"--url", "redis://127.0.0.1:" + std::to_string(server.port()), "bench",
                       "--threads", "2", "--duration", "20s"});
  ASSERT_TRUE(eventually([&] { return server.info("total_commands_processed") > 1'000; }));
  server.kill();
  const answer got = run.end();
  EXPECT_EQ(got.code, 122);
  EXPECT_EQ(got.out, "");
  EXPECT_EQ(lines(got.err), 1) << got.err;
}

#endif

}  // namespace
}  // namespace holdfast::cli_test
