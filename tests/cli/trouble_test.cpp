// Trouble with the embedded file and with holders, as the user sees it: what is printed, and which
// exit code.
#include "cli/fixture.hpp"
#include "support/free_port.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli_test {
namespace {

class trouble : public command_line {
 protected:
  std::string database() const { return home_ / "own/locks.db"; }
  std::string url() const { return "sqlite:" + database(); }
  void make_folder() const { std::filesystem::create_directory(home_ / "own"); }
  static unsigned mode_of(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) throw std::runtime_error("no " + path);
    return status.st_mode & 07777U;
  }
};

TEST_F(trouble, the_default_file_is_private) {
  // Broken: another user of the machine could see or take locks.
  ASSERT_EQ(type({"run", "x", "--", "true"}).code, 0);
  const std::string state = home_ / ".local/state/holdfast";
  EXPECT_EQ(mode_of(state), 0700U);
  EXPECT_EQ(mode_of(state + "/holdfast.db"), 0600U);
}

#ifdef HOLDFAST_WITH_REDIS
TEST_F(trouble, an_error_names_engine_server_operation_lock_and_cause_once) {
  // Broken: "(rediss, attempt, redis 127.0.0.1:1, acquire 'x', ...)", or no cause at all.
  for (const std::string scheme : {"redis", "rediss", "redis+cluster", "valkey", "valkeys"}) {
    const answer refused =
        type({"--url", scheme + "://127.0.0.1:1", "run", "--wait", "0s", "x", "--", "true"});
    EXPECT_EQ(refused.code, 122);
    EXPECT_NE(refused.err.find("(redis 127.0.0.1:1, acquire 'x', connect 127.0.0.1:1: "),
              std::string::npos)
        << refused.err;
  }
  const answer unsupported = type({"--url", "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "ls"});
  EXPECT_EQ(unsupported.code, 122);
  EXPECT_NE(unsupported.err.find(", list, redlock has no list; ask its members)"),
            std::string::npos)
      << unsupported.err;
  EXPECT_NE(type({"--url", "redis://127.0.0.1:1", "show", "x"}).err.find("cannot inspect 'x' ("),
            std::string::npos);
  const answer latch = type({"--url", "redis://127.0.0.1:1", "latch", "l", "count"});
  EXPECT_NE(latch.err.find("cannot be read (redis 127.0.0.1:1, read 'l', connect 127.0.0.1:1: "),
            std::string::npos)
      << latch.err;
}
#endif

#ifdef HOLDFAST_WITH_POSTGRESQL
TEST_F(trouble, drivers_of_sql_servers_are_loaded_where_they_are_needed_only) {
  // Broken: every `holdfast run` of any engine pays for loading twenty libraries.
  shell_.environment["LD_DEBUG"] = "files";
  const std::string others = type({"run", "x", "--", "/bin/true"}).err;
  EXPECT_NE(others.find("libsqlite3"), std::string::npos);
  for (const char* library :
       {"libpq", "libmariadb", "libssl", "libcrypto", "libhiredis", "libnghttp2"}) {
    EXPECT_EQ(others.find(library), std::string::npos) << library;
  }
}

TEST_F(trouble, a_driver_that_is_not_installed_is_named_with_its_package) {
  // Broken: a crash, or a message that does not say what to install.
  write_file(home_ / "libpq.so.5", "");
  shell_.environment["LD_LIBRARY_PATH"] = home_.path();
  const answer refused =
      type({"--url", "postgresql://tester@127.0.0.1/x", "run", "x", "--", "true"});
  EXPECT_EQ(refused.code, 122);
  EXPECT_NE(refused.err.find("package libpq5"), std::string::npos) << refused.err;
}
#endif

#ifdef HOLDFAST_LOADED_HIREDIS
TEST_F(trouble, a_library_of_redis_that_is_not_installed_is_named_with_its_package) {
  // Broken: a crash, or a message that does not say what to install.
  const std::pair<std::string, std::string> named{HOLDFAST_LOADED_HIREDIS};
  write_file(home_ / named.first, "");
  shell_.environment["LD_LIBRARY_PATH"] = home_.path();
  for (const char* url : {"redis://127.0.0.1:1", "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"}) {
    const answer refused = type({"--url", url, "run", "x", "--", "true"});
    EXPECT_EQ(refused.code, 122);
    EXPECT_NE(refused.err.find("package " + named.second), std::string::npos) << refused.err;
  }
}
#endif

TEST_F(trouble, a_lock_delay_blocks_the_lock_after_a_kill_and_says_so) {
  // Broken: the next holder starts beside what a killed one still has in progress; or the user
  // searches for a holder that does not exist.
  process holder = hold("x", {"--lock-delay", "1h"});
  holder.send(SIGKILL);
  holder.end();
  ASSERT_TRUE(eventually([&] {
    return type({"show", "x"}).out.starts_with("blocked by lock delay for ");
  }));
  EXPECT_NE(type({"ls", "--json"}).out.find("\"waiters\":0,\"blocked_ms\":"), std::string::npos);
  const std::string listed = type({"ls"}).out;
  EXPECT_TRUE(listed.starts_with("NAME")) << listed;
  EXPECT_NE(listed.find("BLOCKED FOR"), std::string::npos) << listed;
  const answer refused = type({"run", "--wait", "0s", "x", "--", "true"});
  EXPECT_EQ(refused.code, 124);
  EXPECT_NE(refused.err.find("lock delay"), std::string::npos) << refused.err;
}

TEST_F(trouble, a_lock_delay_ends_by_itself_and_does_not_follow_a_normal_end) {
  // Broken: every job with a lock delay delays the next one; or the lock stays blocked forever.
  EXPECT_EQ(type({"run", "--lock-delay", "1h", "y", "--", "false"}).code, 1);
  EXPECT_EQ(type({"run", "--wait", "0s", "y", "--", "true"}).code, 0);
  process holder = hold("x", {"--lock-delay", "300ms"});
  holder.send(SIGKILL);
  holder.end();
  EXPECT_EQ(type({"run", "--wait", "1m", "x", "--", "true"}).code, 0);
}

TEST_F(trouble, a_release_that_fails_is_a_warning_and_the_commands_own_code) {
  // Broken: a job that did its work is reported as failed.
  make_folder();
  const answer got = type({"--url", url(), "run", "x", "--", "sh", "-c", "rm -r own; exit 5"});
  EXPECT_EQ(got.code, 5);
  EXPECT_NE(got.err.find("warning: the release of 'x' failed"), std::string::npos) << got.err;
}

TEST_F(trouble, a_file_replaced_under_a_holder_is_a_lost_lock) {
  // Broken: two processes hold the same name, one in the old file and one in the new, and nobody is
  // notified.
  make_folder();
  process job =
      begin({"--url", url(), "run", "x", "--", "sh", "-c", "echo held $$; exec sleep 1000"});
  ASSERT_TRUE(job.says("held"));
  std::filesystem::remove_all(home_ / "own");
  make_folder();
  ASSERT_EQ(type({"--url", url(), "run", "y", "--", "true"}).code, 0);
  const answer got = job.end();
  EXPECT_EQ(got.code, 123);
  EXPECT_NE(got.err.find("its locks are lost"), std::string::npos) << got.err;
  EXPECT_FALSE(alive(pid_after("held", got.out)));
}

TEST_F(trouble, what_the_file_says_is_122_in_one_line) {
  // Broken: a script takes a broken set-up for a busy lock or for its own mistake.
  make_folder();
  write_file(home_ / "text", "not a database, but long enough to be looked at as one\n");
  for (const std::string& path :
       {home_ / "own", home_ / "text", home_ / "nowhere/locks.db", std::string("/dev/null")}) {
    for (const words& tail :
         {words{"run", "x", "--", "true"}, words{"elect", "x", "--", "true"},
          words{"multi", "run", "x", "y", "--", "true"}, words{"latch", "x", "count"}, words{"ls"},
          words{"show", "x", "--json"}, words{"watch"}, words{"revoke", "x"}}) {
      words line{"--url", "sqlite:" + path};
      line.insert(line.end(), tail.begin(), tail.end());
      const answer got = type(line);
      EXPECT_EQ(got.code, 122) << path << ": " << got.err;
      EXPECT_EQ(got.out, "");
      EXPECT_EQ(lines(got.err), 1) << got.err;
    }
  }
  EXPECT_EQ(read_file(home_ / "text"), "not a database, but long enough to be looked at as one\n");
}

TEST_F(trouble, a_file_that_may_not_grow_is_reported_and_does_not_kill) {
  // Broken: under a file size limit holdfast, and with it the command, dies of a signal without a
  // message.
  const answer got =
      shell_.run({"sh", "-c", "ulimit -f 0; exec " + program_path() + " run x -- true"});
  EXPECT_EQ(got.code, 122) << got.signal;
  // The limit also applies to the file behind stderr, so the messages cannot be read there.
}

#ifdef HOLDFAST_WITH_REDIS
TEST_F(trouble, an_engine_that_is_not_there_is_122_and_not_waited_for) {
  // Broken: with a wrong host in the URL a cron job waits forever without a message; with `watch`,
  // silence is taken for inactivity.
  const std::string nowhere = "redis://127.0.0.1:" + std::to_string(test::free_port());
  std::vector<process> all;
  for (const words& line : {words{"run", "x", "--", "true"}, words{"elect", "x", "--", "true"},
                            words{"latch", "x", "wait"}, words{"watch"}, words{"watch", "x"}}) {
    words whole{"--url", nowhere};
    whole.insert(whole.end(), line.begin(), line.end());
    all.push_back(begin(whole));
  }
  for (process& each : all) {
    const answer got = each.end();
    EXPECT_EQ(got.code, 122);
    EXPECT_EQ(lines(got.err), 1) << got.err;
    EXPECT_NE(got.err.find("refused"), std::string::npos) << got.err;
  }
}
#endif

}  // namespace
}  // namespace holdfast::cli_test
