// The lock is lost while the command runs: the command is ended in time, and the exit code is 123.
#include "cli/fixture.hpp"

#include <signal.h>

namespace holdfast::cli_test {
namespace {

class lost : public command_line {
 protected:
  void take_away(const std::string& name) {
    const answer got = type({"release", name, "--force", "--yes"});
    ASSERT_EQ(got.code, 0) << got.err;
  }
  // A command in `sh` on a lease that is not renewed. On a machine that is paused for the whole
  // grace period it is killed before it is signalled, or ended before it has set its traps: then a
  // longer time decides.
  answer run_out(const std::string& script, const std::string& wanted) {
    answer got;
    for (const auto& [ttl, grace] : {std::pair("2s", "500ms"), {"8s", "2s"}, {"24s", "6s"}}) {
      got = type({"run", "--no-renew", "--ttl", ttl, "--grace", grace, "x", "--", "sh", "-c",
                  script + "; while :; do sleep 0.02; done"});
      EXPECT_EQ(got.code, 123) << got.err;
      if ((got.out + got.err).find(wanted) != std::string::npos) break;
    }
    return got;
  }
};

TEST_F(lost, a_lock_taken_away_ends_the_command_with_123) {
  process job = hold("x");
  take_away("x");
  const answer got = job.end();
  EXPECT_EQ(got.code, 123);
  EXPECT_EQ(lines(got.err), 1) << got.err;
  EXPECT_FALSE(alive(pid_after("held", got.out)));
}

TEST_F(lost, a_command_that_then_succeeds_is_123_all_the_same) {
  // Broken in etcdctl: it exits with 0 although another client held the lock meanwhile.
  process job = begin({"run", "x", "--", "sh", "-c",
                       "trap 'echo told; exit 0' TERM; echo held; while :; do sleep 0.05; done"});
  ASSERT_TRUE(job.says("held"));
  take_away("x");
  const answer got = job.end();
  EXPECT_EQ(got.code, 123);
  EXPECT_NE(got.out.find("told"), std::string::npos);
}

TEST_F(lost, a_command_that_ignores_sigterm_is_killed_after_the_grace) {
  process job = begin({"run", "--grace", "200ms", "x", "--", "sh", "-c",
                       "trap '' TERM; echo held $$; while :; do sleep 0.05; done"});
  ASSERT_TRUE(job.says("held"));
  take_away("x");
  const answer got = job.end();
  EXPECT_EQ(got.code, 123);
  EXPECT_NE(got.err.find("SIGKILL"), std::string::npos) << got.err;
  EXPECT_FALSE(alive(pid_after("held", got.out)));
}

TEST_F(lost, at_most_ends_a_command_that_hangs) {
  // Broken: a job that hangs keeps the lock, and all other hosts out, until somebody notices.
  process job = begin({"run", "--at-most", "2s", "x", "--", "sh", "-c",
                       "echo held $$; while :; do sleep 0.02; done"});
  ASSERT_TRUE(job.says("held"));
  EXPECT_EQ(type({"run", "x", "--", "true"}).code, 0);  // waits for it
  const answer got = job.end();
  EXPECT_EQ(got.code, 123);
  EXPECT_NE(got.err.find("held for its longest time"), std::string::npos) << got.err;
  EXPECT_FALSE(alive(pid_after("held", got.out)));
}

TEST_F(lost, at_most_changes_nothing_for_a_command_that_ends_before) {
  EXPECT_EQ(type({"run", "--at-most", "1h", "x", "--", "sh", "-c", "exit 7"}).code, 7);
  EXPECT_TRUE(is_free("x"));
}

TEST_F(lost, a_command_has_the_grace_to_tidy_up) {
  process job = begin({"run", "--grace", "14s", "x", "--", "sh", "-c",
                       "trap 'sleep 0.5; echo tidied; exit 0' TERM; echo held; "
                       "while :; do sleep 0.05; done"});
  ASSERT_TRUE(job.says("held"));
  take_away("x");
  const answer got = job.end();
  EXPECT_EQ(got.code, 123);
  EXPECT_NE(got.out.find("tidied"), std::string::npos);
  EXPECT_EQ(got.err.find("SIGKILL"), std::string::npos) << got.err;
}

TEST_F(lost, grandchildren_that_ignore_sigterm_are_killed_too) {
  // Broken: the shell ends cleanly, and its child continues beside the next holder.
  process job = begin({"run", "--grace", "300ms", "x", "--", "sh", "-c",
                       "sh -c 'trap \"\" TERM; echo child $$; while :; do sleep 0.05; done' & "
                       "trap 'exit 0' TERM; while :; do wait; done"});
  ASSERT_TRUE(job.says("child"));
  const pid_t grandchild = pid_after("child", job.out());
  take_away("x");
  EXPECT_EQ(job.end().code, 123);
  EXPECT_TRUE(eventually([&] { return !alive(grandchild); }));
}

TEST_F(lost, a_stopped_command_is_ended_too) {
  process job = hold("x");
  const pid_t command = pid_after("held", job.out());
  signal_one(command, SIGSTOP);
  take_away("x");
  EXPECT_EQ(job.end().code, 123);
  EXPECT_FALSE(alive(command));
}

TEST_F(lost, a_lease_that_is_not_renewed_ends_its_command_in_time) {
  const auto start = std::chrono::steady_clock::now();
  const answer got = run_out("trap 'echo told; exit 0' TERM", "told");
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(got.out, "told\n");
  EXPECT_NE(got.err.find("not renewed"), std::string::npos) << got.err;
  EXPECT_GE(took, std::chrono::seconds(1));
}

TEST_F(lost, a_lease_that_is_not_renewed_and_a_command_that_will_not_end) {
  const answer got = run_out("trap '' TERM", "SIGKILL");
  EXPECT_NE(got.err.find("SIGKILL"), std::string::npos) << got.err;
}

TEST_F(lost, a_command_that_ends_in_time_is_not_lost) {
  EXPECT_EQ(type({"run", "--no-renew", "--ttl", "30s", "x", "--", "sh", "-c", "exit 5"}).code, 5);
}

TEST_F(lost, revoking_is_reported_too_and_nobody_comes_between) {
  // Safe: the next holder is granted only when the former is gone.
  process job = begin({"run", "x", "--", "sh", "-c",
                       "trap 'rm running; exit 0' TERM; touch running; echo held; "
                       "while :; do sleep 0.02; done"});
  ASSERT_TRUE(job.says("held"));
  process next = begin({"run", "x", "--", "sh", "-c", "test ! -e running"});
  ASSERT_TRUE(waiters("x", 1));
  const answer revoked = type({"revoke", "x"});
  EXPECT_EQ(revoked.code, 0) << revoked.err;
  EXPECT_EQ(job.end().code, 123);
  EXPECT_EQ(next.end().code, 0) << "the next ran beside the former";
}

TEST_F(lost, one_of_several_locks_is_all_of_them) {
  process job = begin({"multi", "run", "a", "b", "--", "sh", "-c", "echo held; exec sleep 1000"});
  ASSERT_TRUE(job.says("held"));
  take_away("b");
  EXPECT_EQ(job.end().code, 123);
  EXPECT_TRUE(is_free("a"));
}

TEST_F(lost, a_leadership_taken_away_ends_the_command) {
  process job = begin({"elect", "x", "--", "sh", "-c", "echo held; exec sleep 1000"});
  ASSERT_TRUE(job.says("held"));
  take_away("x");
  EXPECT_EQ(job.end().code, 123);
}

}  // namespace
}  // namespace holdfast::cli_test
