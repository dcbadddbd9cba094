// A password appears nowhere: not in ps, not in errors, not in the command's environment.
#include "cli/fixture.hpp"

#include <signal.h>

namespace holdfast::cli_test {
namespace {

class secrets : public command_line {
 protected:
  // What any user of the machine, or a child, can read of a process.
  static std::string visible(pid_t pid) {
    const std::string base = "/proc/" + std::to_string(pid);
    return read_file(base + "/cmdline") + read_file(base + "/environ");
  }
};

TEST_F(secrets, are_gone_from_arguments_and_environment_of_a_running_program) {
  shell_.environment["HOLDFAST_URL"] = "redis://user:hunter1@localhost/1?password=hunter3";
  shell_.environment["HOLDFAST_PASSWORD"] = "hunter2";
  process job = begin({"--url", "sqlite:" + (home_ / "x.db"), "run", "x", "--", "sh", "-c",
                       "env; echo held; exec sleep 1000"});
  ASSERT_TRUE(job.says("held"));
  EXPECT_EQ(visible(job.pid()).find("hunter"), std::string::npos);
  job.send(SIGTERM);
  const answer got = job.end();
  EXPECT_EQ(got.out.find("hunter"), std::string::npos) << got.out;
  EXPECT_EQ(got.out.find("HOLDFAST_PASSWORD"), std::string::npos) << got.out;
  EXPECT_NE(got.out.find("HOLDFAST_URL=redis://user@localhost/1?password=\n"), std::string::npos)
      << got.out;
}

TEST_F(secrets, in_a_url_on_the_command_line_are_not_shown_by_ps) {
  // The store has no use for credentials, but ps would still show them.
  process holder = hold("x", {"--url", "sqlite:" + (home_ / "x.db")});
  const std::string shown = visible(holder.pid());
  EXPECT_NE(shown.find("--url"), std::string::npos);
  // An engine that does not answer keeps the program busy while we look.
  process lost = begin(
      {"--url", "redis://user:hunter2@192.0.2.1:6379?password=hunter3", "run", "x", "--", "true"});
  ASSERT_TRUE(eventually([&] {
    const std::string text = visible(lost.pid());
    return !lost.running() || (text.find("redis://user") != std::string::npos &&
                               text.find("hunter") == std::string::npos);
  }));
  lost.send(SIGKILL);
  EXPECT_EQ(lost.err().find("hunter"), std::string::npos) << lost.err();
}

TEST_F(secrets, behind_two_hyphens_are_not_shown_by_ps) {
  // Broken: the token of `renew -- TOKEN`, and what a command wipes from its own arguments.
  process job = begin({"run", "x", "--", "sh", "-c", "echo held; exec sleep 1000", "hft1_hunter1",
                       "redis://user:hunter2@host"});
  ASSERT_TRUE(job.says("held"));
  const std::string shown = visible(job.pid());
  EXPECT_NE(shown.find("redis://user"), std::string::npos);
  EXPECT_EQ(shown.find("hunter"), std::string::npos) << shown;
}

TEST_F(secrets, of_an_engine_that_cannot_be_reached_are_not_in_its_error) {
  write_file(home_ / "secret", "hunter2\n");
  const answer got = type({"--url", "redis://user:hunter1@127.0.0.1:1", "--password-file",
                           home_ / "secret", "run", "--wait", "100ms", "x", "--", "true"});
  EXPECT_EQ(got.code, 122) << got.err;
  EXPECT_EQ(lines(got.err), 1) << got.err;
  EXPECT_EQ((got.out + got.err).find("hunter"), std::string::npos) << got.err;
}

TEST_F(secrets, of_the_commands_own_arguments_are_its_own) {
  // Only our own are removed: the command must get what was typed.
  EXPECT_EQ(type({"run", "x", "--", "echo", "redis://user:password@host"}).out,
            "redis://user:password@host\n");
}

TEST_F(secrets, a_password_file_must_have_a_password) {
  write_file(home_ / "empty", "");
  EXPECT_EQ(type({"--password-file", home_ / "empty", "ls"}).code, 2);
  EXPECT_EQ(type({"--password-file", home_.path(), "ls"}).code, 2);
  EXPECT_EQ(type({"--password-file", "/dev/zero", "ls"}).code, 2);  // and it ends
  write_file(home_ / "longest", std::string(4096, 'x') + "\r\n");
  EXPECT_EQ(type({"--password-file", home_ / "longest", "ls"}).code, 0);
  write_file(home_ / "long", std::string(4097, 'x'));
  EXPECT_NE(type({"--password-file", home_ / "long", "ls"}).err.find("too long"),
            std::string::npos);
  write_file(home_ / "fine", "secret\nmore\n");
  EXPECT_EQ(type({"--password-file", home_ / "fine", "ls"}).code, 0);
}

}  // namespace
}  // namespace holdfast::cli_test
