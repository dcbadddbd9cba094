// What a person, and what cron, sees of a wait: on a terminal who holds the lock and for how long,
// elsewhere nothing before the end, and with --quiet nothing at all.
#include "cli/fixture.hpp"
#include "cli/terminal_process.hpp"

#include <signal.h>
#include <unistd.h>

#include <regex>

namespace holdfast::cli_test {
namespace {

class waiting : public command_line {
 protected:
  terminal_process sit(const words& arguments) {
    words line{program_path()};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return {line, shell_.environment, home_.path()};
  }
};

TEST_F(waiting, on_a_terminal_names_the_holder_and_when_it_gives_up) {
  // Broken: a person looks at an empty screen, and cannot tell waiting from hanging.
  process holder = hold("nightly");
  terminal_process waiter = sit({"run", "--wait", "5m", "nightly", "--", "echo", "done"});
  ASSERT_TRUE(waiter.shows("waiting for nightly, held by "));
  ASSERT_TRUE(waiter.shows("; giving up in "));
  // The payload names the process that holds the lock: holdfast, under the name of its command.
  const std::regex line("waiting for nightly, held by [^ ]+:" + std::to_string(holder.pid()) +
                        ":sh for [0-9]+ s; giving up in [0-9] min [0-9]+ s");
  EXPECT_TRUE(std::regex_search(waiter.screen(), line)) << waiter.screen();
  EXPECT_TRUE(waiter.shows("giving up in 4 min 5"));  // it counts down
  holder.send(SIGTERM);
  EXPECT_EQ(waiter.end(), 0) << waiter.screen();
  // The line is gone before the command writes.
  EXPECT_NE(waiter.screen().find("\r\x1b[Kdone"), std::string::npos) << waiter.screen();
}

TEST_F(waiting, a_wait_without_a_limit_does_not_say_when_it_gives_up) {
  process holder = hold("x");
  terminal_process waiter = sit({"run", "x", "--", "true"});
  ASSERT_TRUE(waiter.shows("waiting for x, held by "));
  waiter.types("\x03");
  EXPECT_EQ(waiter.end(), 130);
  EXPECT_EQ(waiter.screen().find("giving up"), std::string::npos) << waiter.screen();
}

TEST_F(waiting, for_several_locks_names_the_one_that_is_held) {
  process holder = hold("b");
  terminal_process waiter = sit({"multi", "run", "a", "b", "c", "--", "true"});
  EXPECT_TRUE(waiter.shows("waiting for b, held by "));
}

TEST_F(waiting, for_a_permit_counts_the_other_holders) {
  process one = hold("gpu", {"--max", "2"});
  process two = hold("gpu", {"--max", "2"});
  terminal_process waiter = sit({"run", "--max", "2", "gpu", "--", "true"});
  EXPECT_TRUE(waiter.shows(" and 1 other"));
}

TEST_F(waiting, a_stopped_terminal_does_not_keep_the_command_from_starting) {
  // Broken: after ^S the lock is held for a command that does not begin until somebody presses ^Q.
  process holder = hold("x");
  terminal_process waiter = sit({"run", "x", "--", "touch", "began"});
  ASSERT_TRUE(waiter.shows("waiting for x, held by "));
  waiter.types("\x13");
  holder.send(SIGTERM);
  EXPECT_TRUE(eventually([&] { return ::access((home_ / "began").c_str(), F_OK) == 0; }));
  waiter.types("\x11");
  EXPECT_EQ(waiter.end(), 0) << waiter.screen();
}

TEST_F(waiting, without_a_terminal_is_silent_until_it_ends) {
  // Broken: a log file gets a line per second.
  process holder = hold("x");
  const answer got = type({"run", "--wait", "2500ms", "x", "--", "true"});
  EXPECT_EQ(got.code, 124);
  EXPECT_EQ(lines(got.err), 1) << got.err;
  EXPECT_EQ(got.err.find("waiting"), std::string::npos) << got.err;
}

TEST_F(waiting, quietly_says_nothing_when_the_lock_is_busy) {
  // Broken: cron sends a mail each time that the last run is still busy.
  process holder = hold("x");
  for (const char* wait : {"0s", "200ms"}) {
    for (const words& command : {words{"run"}, words{"multi", "run"}, words{"elect"}}) {
      words line = command;
      line.insert(line.end(),
                  {"--wait", wait, "--quiet", "--busy-exit-code", "0", "x", "--", "true"});
      const answer got = type(line);
      EXPECT_EQ(got.code, 0) << wait;
      EXPECT_EQ(got.out + got.err, "") << wait;
    }
  }
  EXPECT_EQ(type({"run", "--wait", "0s", "--quiet", "x", "--", "true"}).code, 124);
  // The exit code alone does not make it silent: somebody may read the message.
  EXPECT_EQ(lines(type({"run", "--wait", "0s", "--busy-exit-code", "0", "x", "--", "true"}).err),
            1);
}

TEST_F(waiting, quietly_still_reports_trouble) {
  // Broken: a lock that never works is not noticed for weeks.
  const answer got = type({"--url", "sqlite:" + home_.path(), "run", "--wait", "0s", "--quiet",
                           "--busy-exit-code", "0", "x", "--", "true"});
  EXPECT_EQ(got.code, 122);
  EXPECT_EQ(lines(got.err), 1) << got.err;
}

TEST_F(waiting, quietly_shows_nothing_on_a_terminal) {
  process holder = hold("x");
  terminal_process waiter = sit({"run", "--wait", "2500ms", "--quiet", "x", "--", "true"});
  EXPECT_EQ(waiter.end(), 124);
  EXPECT_EQ(waiter.screen(), "");
}

}  // namespace
}  // namespace holdfast::cli_test
