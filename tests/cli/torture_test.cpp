// holdfast torture: short runs on every engine that it can start, with a fixed seed; its exit
// codes; and what it leaves behind.
#include "cli/fixture.hpp"

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

namespace holdfast::cli_test {
namespace {

class torture : public command_line {
 protected:
  torture() {
    shell_.environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin";
    // PostgreSQL refuses root and becomes another user, which must be able to enter its folder.
    std::filesystem::permissions(home_.path(), std::filesystem::perms::others_exec,
                                 std::filesystem::perm_options::add);
  }

  answer run(words options) {
    options.insert(options.begin(), "torture");
    return type(options);
  }
  // If the machine is paused for as long as a run lasts, the run shows little, and says so: then a
  // longer one decides.
  answer run_for(int seconds, const words& options, const words& global = {}) {
    answer got;
    for (const int times : {1, 3, 9}) {
      words line = global;
      line.insert(line.end(), {"torture", "--duration", std::to_string(seconds * times) + "s"});
      line.insert(line.end(), options.begin(), options.end());
      got = type(line);
      constexpr int inconclusive = 3;
      if (got.code != inconclusive) break;
    }
    return got;
  }
  // Clean, and every check was made.
  void expect_clean(const answer& got) {
    // What is wrong is listed after the table, and logs may truncate long messages.
    const std::size_t verdict = got.out.rfind("violations");
    EXPECT_EQ(got.code, 0) << got.err << got.out.substr(verdict == std::string::npos ? 0 : verdict)
                           << got.out;
    EXPECT_NE(got.out.find("at most one valid holder"), std::string::npos) << got.out;
    EXPECT_TRUE(std::regex_search(got.out, std::regex("violations +0"))) << got.out;
  }
  // A rare finding is not to be found again.
  void keep(const std::string& file, const std::string& engine) {
    const auto kept = std::filesystem::current_path() / ("torture-" + engine + ".json");
    std::error_code why;
    std::filesystem::copy_file(file, kept, std::filesystem::copy_options::overwrite_existing, why);
    ADD_FAILURE() << "the history: " << kept << ' ' << why.message();
  }
  std::string leftovers() {
    return shell_.run({"sh", "-c", "ls -d holdfast-test-* 2>/dev/null"}).out;
  }
};

struct trial {
  std::string engine;
  int seconds;
  std::string faults;
};
std::ostream& operator<<(std::ostream& out, const trial& one) { return out << one.engine; }

class torture_of : public torture, public ::testing::WithParamInterface<trial> {};

TEST_P(torture_of, an_engine_finds_nothing_broken) {
  const trial& one = GetParam();
  const answer got = run_for(one.seconds, {"--start", one.engine, "--clients", "4", "--seed", "7",
                                           "--faults", one.faults, "--json", home_ / "run.json"});
  expect_clean(got);
  for (const char* fault : {"pause-client", "kill-client"}) {
    EXPECT_TRUE(std::regex_search(got.out, std::regex(fault + std::string(" [1-9]")))) << got.out;
  }
  EXPECT_EQ(leftovers(), "");
  EXPECT_EQ(run({"check", home_ / "run.json"}).code, 0) << "the stored history is another";
  if (HasFailure()) keep(home_ / "run.json", one.engine);
}

std::string trial_name(const ::testing::TestParamInfo<trial>& info) {
  // Not the whole word: tests with that name run together, on one server.
  const std::string name = std::regex_replace(info.param.engine, std::regex("redis-|ql|db"), "");
  return std::regex_replace(name, std::regex("-"), "_");
}
INSTANTIATE_TEST_SUITE_P(
    engines, torture_of,
    ::testing::Values(
        trial{"embedded", 6,
              "pause-client,kill-client,disk-full,clock-jump,stop-at-call,kill-at-call,"
              "pause-others,kill-others"},
        trial{"redis", 5,
              "pause-client,kill-client,pause-server,kill-server,partition,delay,cut,script-flush,"
              "truncate,garble"},
        trial{"redis-sentinel", 4, "pause-client,kill-client,failover,script-flush"},
        trial{"redis-cluster", 4, "pause-client,kill-client,failover,script-flush"},
        trial{"redlock", 4, "pause-client,kill-client,pause-server,kill-server,partition,cut"},
        trial{"zookeeper", 6,
              "pause-client,kill-client,pause-server,partition,delay,cut,truncate,garble"},
        trial{"etcd", 6,
              "pause-client,kill-client,pause-server,partition,delay,cut,truncate,garble"},
        trial{"postgresql", 8,
              "pause-client,kill-client,pause-server,kill-server,delay,cut,truncate,garble"},
        trial{"postgresql-session", 4, "pause-client,kill-client,kill-server,delay,cut"},
        trial{"postgresql-row", 4, "pause-client,kill-client,kill-server,delay,cut"},
        trial{"mariadb", 10,
              "pause-client,kill-client,pause-server,kill-server,delay,cut,truncate,garble"},
        trial{"mariadb-session", 4, "pause-client,kill-client,kill-server,delay,cut"},
        trial{"mariadb-row", 4, "pause-client,kill-client,kill-server,delay,cut"}),
    trial_name);

TEST_F(torture, a_violation_is_exit_1_and_shows_the_shortest_part_of_the_history) {
  // Broken: a run that broke exclusion goes unreported. Two clients hold valid leases at 20 ms.
  ASSERT_EQ(run_for(1, {"--clients", "1", "--faults", "none", "--workload", "mutex", "--json",
                        home_ / "run.json"})
                .code,
            0);
  std::string history = read_file(home_ / "run.json");
  const std::size_t records = history.find("\"records\":[");
  ASSERT_NE(records, std::string::npos);
  history.resize(records);
  write_file(home_ / "bad.json", history + R"("records":[
[10000000,0,1,0,1,0,1,0,0,0,1],
[11000000,1,1,0,1,5,0,0,0,0,1],
[19000000,0,2,0,2,0,1,0,0,0,1],
[20000000,1,2,0,2,6,0,0,0,0,1],
[30000000,5,1,0,1,5,0,0,0,0,1],
[31000000,5,2,0,2,6,0,0,0,0,1]
]})");
  const answer got = run({"check", home_ / "bad.json", "--report", home_ / "bad.html"});
  EXPECT_EQ(got.code, 1) << got.out << got.err;
  EXPECT_NE(got.out.find("VIOLATION at most one valid holder"), std::string::npos) << got.out;
  EXPECT_NE(got.out.find("hold 2 is granted, fence 6"), std::string::npos) << got.out;
  EXPECT_NE(read_file(home_ / "bad.html").find("at most one valid holder"), std::string::npos);
}

TEST_F(torture, a_run_that_shows_little_is_exit_3) {
  // Broken: a run in which nothing happened passes as evidence.
  const answer got = run({"--duration", "1s", "--clients", "1", "--faults", "disk-full",
                          "--workload", "latch", "--seed", "3"});
  EXPECT_EQ(got.code, 3) << got.out << got.err;
  EXPECT_NE(got.err.find("inconclusive"), std::string::npos) << got.err;
  EXPECT_EQ(lines(got.err), 1) << got.err;
}

TEST_F(torture, what_cannot_be_held_is_122_in_one_line) {
  shell_.environment["PATH"] = home_.path();
  for (const words& options : {words{"--start", "redis"}, words{"check", home_ / "none"},
                               words{"replay", home_ / "none"}}) {
    const answer got = run(options);
    EXPECT_EQ(got.code, 122) << got.out;
    EXPECT_EQ(lines(got.err), 1) << got.err;
    EXPECT_EQ(got.out, "");
  }
  EXPECT_NE(run({"--start", "redis"}).err.find("redis-server is not in PATH"), std::string::npos);
}

TEST_F(torture, a_file_that_is_no_history_is_refused) {
  for (const char* text : {"", "{}", "[]", "{\"format\":\"holdfast-torture-1\"}", "\xff\xfe"}) {
    write_file(home_ / "x.json", text);
    EXPECT_EQ(run({"check", home_ / "x.json"}).code, 122) << text;
  }
}

TEST_F(torture, a_replay_has_the_same_schedule) {
  constexpr int inconclusive = 3;
  answer got;
  for (const char* duration : {"2s", "6s", "18s"}) {
    const answer first = run({"--duration", duration, "--clients", "3", "--seed", "11",
                              "--workload", "mutex", "--json", home_ / "a.json"});
    got = run({"replay", home_ / "a.json", "--json", home_ / "b.json"});
    if (first.code != inconclusive && got.code != inconclusive) break;
  }
  EXPECT_EQ(got.code, 0) << got.out << got.err;
  const auto plan = [&](const std::string& file) {
    const std::string text = read_file(file);
    const std::size_t at = text.find("\"plan\":");
    return text.substr(at, text.find("\"resources\":") - at);
  };
  EXPECT_EQ(plan(home_ / "a.json"), plan(home_ / "b.json"));
}

TEST_F(torture, a_clients_wall_clock_can_be_set) {
  // Broken: clock-jump is counted as a fault and does nothing.
  const std::string library = program_path() + "_clock.so";
  const std::string shifted = "env LD_PRELOAD=" + library + " HOLDFAST_CLOCK=shift date +%s";
  const answer got = shell_.run({"sh", "-c",
                                 R"(python3 -c 'import sys, struct
sys.stdout.buffer.write(struct.pack("q", 3600 * 10**9))' >shift; a=$(date +%s); b=$()" +
                                     shifted + "); echo $((b - a))"});
  const int shift = std::atoi(got.out.c_str());
  EXPECT_GE(shift, 3600) << got.out << got.err;
  EXPECT_LT(shift, 3700) << got.out << got.err;
}

TEST_F(torture, works_on_an_engine_of_ones_own_and_leaves_it_alone) {
  const std::string url = "sqlite:" + (home_ / "own.db");
  const answer got = run_for(
      2, {"--clients", "3", "--faults", "pause-client,kill-client", "--seed", "5"}, {"--url", url});
  expect_clean(got);
  EXPECT_EQ(type({"--url", url, "ls", "--json"}).out, "[]\n");
}

TEST_F(torture, ends_with_a_signal_and_takes_its_clients_along) {
  process running = begin({"torture", "--duration", "60s", "--start", "embedded"});
  ASSERT_TRUE(eventually([&] {
    return !shell_.run({"sh", "-c", "ls holdfast-test-*/records-5 2>/dev/null"}).out.empty();
  }));
  running.send(SIGTERM);
  EXPECT_EQ(running.end().code, 128 + SIGTERM);
  EXPECT_EQ(leftovers(), "");
}

}  // namespace
}  // namespace holdfast::cli_test
