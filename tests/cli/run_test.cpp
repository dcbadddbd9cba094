// holdfast run: exit codes, what the command is given, and the kinds of locks.
#include "cli/fixture.hpp"

#include <signal.h>

#include <regex>

namespace holdfast::cli_test {
namespace {

class run : public command_line {};

TEST_F(run, the_commands_own_exit_code_is_ours) {
  // Broken: scripts could not see how their command ended.
  for (const int code : {0, 1, 2, 7, 122, 123, 124, 255}) {
    const answer got = type({"run", "x", "--", "sh", "-c", "exit " + std::to_string(code)});
    EXPECT_EQ(got.code, code);
    EXPECT_EQ(got.err, "");
  }
}

TEST_F(run, a_command_that_dies_of_a_signal_is_128_and_its_number) {
  for (const int number : {SIGTERM, SIGKILL, SIGINT, SIGSEGV, SIGUSR1}) {
    const answer got =
        type({"run", "x", "--", "sh", "-c", "kill -" + std::to_string(number) + " $$"});
    EXPECT_EQ(got.code, 128 + number);
    EXPECT_EQ(lines(got.err), 1) << got.err;
  }
}

TEST_F(run, a_command_that_is_not_there_is_127_and_takes_no_lock) {
  process holder = hold("x");
  // The lock is busy: if it were requested, we would wait.
  for (const char* command : {"no-such-command", "/no/such/command", "./no-such", ""}) {
    const answer got = type({"run", "x", "--", command});
    EXPECT_EQ(got.code, 127) << command;
    EXPECT_EQ(lines(got.err), 1);
  }
}

TEST_F(run, a_command_that_cannot_be_executed_is_126_and_takes_no_lock) {
  process holder = hold("x");
  write_file(home_ / "plain", "text");
  for (const std::string& command : {home_ / "plain", std::string("/etc"), home_.path()}) {
    EXPECT_EQ(type({"run", "x", "--", command}).code, 126) << command;
  }
}

TEST_F(run, a_command_whose_interpreter_is_missing_is_127_and_leaves_no_lock) {
  // Found only by exec(), when the lock is already held.
  const std::string script = home_ / "script";
  write_file(script, "#!/no/such/interpreter\n");
  ASSERT_EQ(shell_.run({"chmod", "755", script}).code, 0);
  const answer got = type({"run", "x", "--", script});
  EXPECT_EQ(got.code, 127);
  EXPECT_EQ(lines(got.err), 1) << got.err;
  EXPECT_TRUE(is_free("x"));
}

TEST_F(run, a_script_without_an_interpreter_line_runs_as_in_a_shell) {
  const std::string script = home_ / "script";
  write_file(script, "echo \"$1 $2\"\n");
  ASSERT_EQ(shell_.run({"chmod", "755", script}).code, 0);
  EXPECT_EQ(type({"run", "x", "--", script, "one", "two words"}).out, "one two words\n");
}

TEST_F(run, a_command_is_found_by_the_path) {
  ASSERT_EQ(shell_.run({"sh", "-c", "mkdir bin && ln -s /bin/echo bin/my-echo"}).code, 0);
  shell_.environment["PATH"] = "/nowhere::" + (home_ / "bin") + ":/bin";
  EXPECT_EQ(type({"run", "x", "--", "my-echo", "hello"}).out, "hello\n");
}

TEST_F(run, arguments_pass_through_untouched) {
  const answer got = type({"run", "x", "--", "printf", "[%s]", "", "a b", "--", "-x", "*", "é"});
  EXPECT_EQ(got.out, "[][a b][--][-x][*][é]");
}

TEST_F(run, standard_input_passes_through) {
  shell_.input = "line one\nline two\n";
  EXPECT_EQ(type({"run", "x", "--", "cat"}).out, shell_.input);
}

TEST_F(run, the_command_is_given_name_fence_and_claim) {
  const std::string script = "printf '%s|%s|%s' \"$HOLDFAST_NAME\" $HOLDFAST_FENCE $HOLDFAST_CLAIM";
  const std::string first = type({"run", "a name, ü", "--", "sh", "-c", script}).out;
  const std::string second = type({"run", "a name, ü", "--", "sh", "-c", script}).out;
  const std::regex form("a name, ü\\|([0-9]+)\\|([0-9a-f]{16})");
  std::smatch one;
  std::smatch two;
  ASSERT_TRUE(std::regex_match(first, one, form)) << first;
  ASSERT_TRUE(std::regex_match(second, two, form)) << second;
  EXPECT_GT(std::stoull(two[1]), std::stoull(one[1]));
  EXPECT_NE(two[2], one[2]);
}

TEST_F(run, a_nested_run_overrides_what_it_inherits) {
  // Broken in etcdctl: the inner command saw the outer lock.
  shell_.environment["HOLDFAST_NAME"] = "stale";
  shell_.environment["HOLDFAST_FENCE"] = "stale";
  shell_.environment["HOLDFAST_CLAIM"] = "stale";
  const answer got = type({"run", "outer", "--", program_path(), "run", "inner", "--", "sh", "-c",
                           "env | grep -c '^HOLDFAST_[NFC]'; echo $HOLDFAST_NAME"});
  EXPECT_EQ(got.out, "3\ninner\n");
}

TEST_F(run, only_the_standard_files_are_inherited) {
  // Broken: the command would hold the engine's connections, or the caller's files.
  // On the embedded store there is one more, intentionally: the sign of life.
  const answer got = shell_.run(
      {"sh", "-c",
       "exec 7</dev/null; exec " + program_path() + " run x -- sh -c 'ls -l /proc/$$/fd'"});
  int beyond = 0;
  std::istringstream all(got.out);
  for (std::string line; std::getline(all, line);) {
    const std::regex entry(".* ([0-9]+) -> (.*)");
    std::smatch found;
    if (!std::regex_match(line, found, entry) || std::stoi(found[1]) <= 2) continue;
    ++beyond;
    EXPECT_NE(std::stoi(found[1]), 7) << line;
    EXPECT_EQ(found[2].str().find(".db"), std::string::npos) << line;
  }
  EXPECT_LE(beyond, 1) << got.out;
}

TEST_F(run, closed_standard_files_are_not_filled_with_ours) {
  // Broken: the command's output would go into the database.
  const answer got =
      shell_.run({"sh", "-c", program_path() + " run x -- ls -l /proc/self/fd <&- >out 2>&-"});
  const std::string files = read_file(home_ / "out");
  EXPECT_EQ(got.code, 0);
  EXPECT_NE(files.find("0 -> /dev/null"), std::string::npos) << files;
  EXPECT_NE(files.find("2 -> /dev/null"), std::string::npos) << files;
}

TEST_F(run, without_patience_a_busy_lock_is_124_at_once) {
  process holder = hold("x");
  const answer got = type({"run", "--wait", "0s", "x", "--", "touch", home_ / "ran"});
  EXPECT_EQ(got.code, 124);
  EXPECT_EQ(lines(got.err), 1) << got.err;
  EXPECT_NE(got.err.find("sh"), std::string::npos) << "says who: " << got.err;
  EXPECT_NE(shell_.run({"test", "-e", home_ / "ran"}).code, 0);
}

TEST_F(run, a_wait_that_ends_is_124_and_leaves_no_claim) {
  process holder = hold("x");
  EXPECT_EQ(type({"run", "--wait", "100ms", "x", "--", "true"}).code, 124);
  EXPECT_TRUE(waiters("x", 0));
}

TEST_F(run, the_busy_exit_code_can_be_chosen) {
  process holder = hold("x");
  for (const int code : {0, 75, 255}) {
    EXPECT_EQ(
        type({"run", "--wait", "0s", "--busy-exit-code", std::to_string(code), "x", "--", "true"})
            .code,
        code);
  }
}

TEST_F(run, a_waiting_command_runs_when_the_lock_is_released) {
  process holder = hold("x");
  process next = begin({"run", "x", "--", "echo", "next"});
  ASSERT_TRUE(waiters("x", 1));
  holder.send(SIGTERM);
  EXPECT_EQ(holder.end().code, 128 + SIGTERM);
  const answer got = next.end();
  EXPECT_EQ(got.code, 0);
  EXPECT_EQ(got.out, "next\n");
  EXPECT_TRUE(is_free("x"));
}

TEST_F(run, readers_share_and_keep_writers_out) {
  process reader = hold("x", {"--shared"});
  EXPECT_EQ(type({"run", "--shared", "--wait", "0s", "x", "--", "true"}).code, 0);
  EXPECT_EQ(type({"run", "--wait", "0s", "x", "--", "true"}).code, 124);
}

TEST_F(run, permits_are_counted) {
  process two = hold("x", {"--permits", "2", "--max", "3"});
  EXPECT_EQ(type({"run", "--max", "3", "--wait", "0s", "x", "--", "true"}).code, 0);
  EXPECT_EQ(type({"run", "--permits", "2", "--max", "3", "--wait", "0s", "x", "--", "true"}).code,
            124);
}

TEST_F(run, another_max_and_another_kind_are_the_engines_refusal) {
  process one = hold("x", {"--max", "3"});
  const answer max = type({"run", "--max", "4", "--wait", "0s", "x", "--", "true"});
  EXPECT_EQ(max.code, 122);
  EXPECT_NE(max.err.find('3'), std::string::npos) << max.err;
  EXPECT_NE(max.err.find('4'), std::string::npos) << max.err;
  EXPECT_EQ(type({"run", "--wait", "0s", "x", "--", "true"}).code, 122);
}

TEST_F(run, fair_waiters_come_in_order) {
  process holder = hold("x");
  process first = begin({"run", "--fair", "x", "--", "sh", "-c", "echo first >>order"});
  ASSERT_TRUE(waiters("x", 1));
  process second = begin({"run", "--fair", "x", "--", "sh", "-c", "echo second >>order"});
  ASSERT_TRUE(waiters("x", 2));
  holder.send(SIGTERM);
  EXPECT_EQ(first.end().code, 0);
  EXPECT_EQ(second.end().code, 0);
  EXPECT_EQ(read_file(home_ / "order"), "first\nsecond\n");
}

TEST_F(run, at_least_keeps_the_lock_after_a_short_command) {
  // Broken: a 50 ms cron job on three hosts would run three times.
  process job = begin({"run", "--at-least", "1h", "x", "--", "sh", "-c", "echo done; exit 3"});
  ASSERT_TRUE(job.says("done"));
  EXPECT_EQ(type({"run", "--wait", "200ms", "x", "--", "true"}).code, 124);
  job.send(SIGTERM);
  EXPECT_EQ(job.end().code, 3);
  EXPECT_TRUE(is_free("x"));
}

TEST_F(run, at_least_ends_by_itself) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(type({"run", "--at-least", "300ms", "x", "--", "true"}).code, 0);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(300));
}

TEST_F(run, names_that_look_like_options_or_commands_are_names) {
  for (const words& line :
       {words{"run", "--", "-x", "--", "sh", "-c", "echo $HOLDFAST_NAME"},
        words{"run", "--", "--wait", "--", "sh", "-c", "echo $HOLDFAST_NAME"}}) {
    EXPECT_EQ(type(line).out, line[2] + "\n");
  }
  for (const char* name : {"run", "show", "[a,b]", "a=b", "{x}", "%s", "'", "a/b/../c", " ", "*"}) {
    EXPECT_EQ(type({"run", name, "--", "sh", "-c", "echo \"$HOLDFAST_NAME\""}).out,
              std::string(name) + "\n");
  }
}

TEST_F(run, names_in_different_namespaces_never_conflict) {
  process holder = hold("x", {"--namespace", "one"});
  EXPECT_EQ(type({"--namespace", "two", "run", "--wait", "0s", "x", "--", "true"}).code, 0);
  EXPECT_EQ(type({"run", "--wait", "0s", "x", "--", "true"}).code, 0);
  shell_.environment["HOLDFAST_NAMESPACE"] = "one";
  EXPECT_EQ(type({"run", "--wait", "0s", "x", "--", "true"}).code, 124);
}

TEST_F(run, the_longest_name_fits_and_is_shown_whole) {
  const std::string name = std::string(510, 'n') + "é";
  EXPECT_EQ(type({"run", name, "--", "sh", "-c", "printf %s \"$HOLDFAST_NAME\""}).out, name);
}

TEST_F(run, two_hundred_at_once_count_exactly) {
  // The core test: a counter in a file, read, incremented and written by 200 processes.
  write_file(home_ / "counter", "0");
  std::vector<process> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(
        begin({"run", "counter", "--", "sh", "-c",
               "n=$(cat counter); echo $((n + 1)) >counter.new; mv counter.new counter"}));
  }
  for (process& one : all) {
    const answer got = one.end();
    EXPECT_EQ(got.code, 0) << got.err;
  }
  EXPECT_EQ(std::stoi(read_file(home_ / "counter")), 200);
  EXPECT_TRUE(is_free("counter"));
}

TEST_F(run, the_stored_payload_has_the_program_and_no_arguments) {
  // Broken: a password on the command line would be shown to everybody who may look.
  process holder = begin({"run", "x", "--", "sh", "-c", "echo held; exec sleep 1000", "hunter2"});
  ASSERT_TRUE(holder.says("held"));
  const answer got = type({"show", "x"});
  EXPECT_NE(got.out.find(":" + std::to_string(holder.pid()) + ":sh"), std::string::npos) << got.out;
  EXPECT_EQ(got.out.find("hunter2"), std::string::npos) << got.out;
}

}  // namespace
}  // namespace holdfast::cli_test
