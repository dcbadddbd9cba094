// Signals: forwarded while the command runs, fatal while we wait; and which processes die together.
#include "cli/fixture.hpp"

#include <signal.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace holdfast::cli_test {
namespace {

class signals : public command_line {};

constexpr int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

TEST_F(signals, are_passed_on_to_the_command) {
  for (const int number : forwarded) {
    const std::string n = std::to_string(number);
    process job = begin(
        {"run", "x", "--", "sh", "-c",
         "trap 'echo got " + n + "; exit 9' " + n + "; echo ready; while :; do sleep 0.05; done"});
    ASSERT_TRUE(job.says("ready"));
    job.send(number);
    const answer got = job.end();
    EXPECT_EQ(got.code, 9) << "signal " << number;
    EXPECT_NE(got.out.find("got " + n), std::string::npos);
  }
}

TEST_F(signals, end_a_wait_with_128_and_their_number_and_leave_no_claim) {
  process holder = hold("x");
  for (const int number : forwarded) {
    process waiter = begin({"run", "x", "--", "true"});
    ASSERT_TRUE(waiters("x", 1));
    waiter.send(number);
    const answer got = waiter.end();
    EXPECT_EQ(got.code, 128 + number);
    EXPECT_EQ(lines(got.err), 1) << got.err;
    EXPECT_TRUE(waiters("x", 0));
  }
}

TEST_F(signals, end_a_wait_in_an_election_and_for_several_locks) {
  process holder = hold("x");
  for (const words& line :
       {words{"elect", "x", "--", "true"}, words{"multi", "run", "free", "x", "--", "true"}}) {
    process waiter = begin(line);
    ASSERT_TRUE(waiters("x", 1));
    waiter.send(SIGTERM);
    EXPECT_EQ(waiter.end().code, 128 + SIGTERM);
    EXPECT_TRUE(waiters("x", 0));
    EXPECT_TRUE(is_free("free"));
  }
}

TEST_F(signals, are_obeyed_although_nobody_reads_stderr) {
  // Broken: with a full pipe on stderr neither the command nor a wait can be ended by SIGTERM.
  const std::string fill =
      "mkfifo full; exec 3<>full; for size in 4096 1; do dd if=/dev/zero of=full bs=$size "
      "count=9999 "
      "oflag=nonblock conv=notrunc 2>/dev/null; done; exec 2>&3; exec ";
  process job = shell_.start({"sh", "-c",
                              fill + program_path() +
                                  " run --log-level debug x -- sh -c "
                                  "'echo ready; exec sleep 1000'"});
  ASSERT_TRUE(job.says("ready"));
  job.send(SIGTERM);
  EXPECT_EQ(job.end().code, 128 + SIGTERM);
  EXPECT_TRUE(is_free("x"));
}

TEST_F(signals, that_were_ignored_at_the_start_end_no_wait) {
  // As nohup starts it: a closed terminal must not end the wait.
  process holder = hold("x");
  process waiter =
      shell_.start({"sh", "-c", "trap '' HUP; exec " + program_path() + " run x -- echo done"});
  ASSERT_TRUE(waiters("x", 1));
  waiter.send(SIGHUP);
  holder.send(SIGTERM);
  const answer got = waiter.end();
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out, "done\n");
}

TEST_F(signals, a_command_that_ignores_them_is_waited_for) {
  process job =
      begin({"run", "x", "--", "sh", "-c",
             "trap '' TERM; echo ready; while [ ! -e stop ]; do sleep 0.05; done; exit 4"});
  ASSERT_TRUE(job.says("ready"));
  job.send(SIGTERM);
  EXPECT_EQ(type({"run", "--wait", "100ms", "x", "--", "true"}).code, 124);
  write_file(home_ / "stop", "");
  EXPECT_EQ(job.end().code, 4);
}

TEST_F(signals, those_that_end_go_to_grandchildren_too) {
  // Broken: the shell would die, and what it started would continue without the lock.
  process job = begin({"run", "x", "--", "sh", "-c", "sleep 1000 & echo child $!; wait"});
  ASSERT_TRUE(job.says("child"));
  const pid_t grandchild = pid_after("child", job.out());
  job.send(SIGTERM);
  EXPECT_EQ(job.end().code, 128 + SIGTERM);
  EXPECT_TRUE(eventually([&] { return !alive(grandchild); }));
}

TEST_F(signals, the_users_own_go_to_the_command_alone) {
  // Broken: a server's USR2 would kill its workers, which do not handle it.
  process job =
      begin({"run", "x", "--", "sh", "-c",
             "trap 'echo told' USR2; sleep 1000 & echo child $!; while :; do wait; done"});
  ASSERT_TRUE(job.says("child"));
  const pid_t grandchild = pid_after("child", job.out());
  job.send(SIGUSR2);
  EXPECT_TRUE(job.says("told"));
  EXPECT_TRUE(alive(grandchild));
}

TEST_F(signals, killing_holdfast_kills_its_command) {
  // Better killed than running without the lock.
  process job = hold("x");
  const pid_t command = pid_after("held", job.out());
  ASSERT_TRUE(alive(command));
  job.send(SIGKILL);
  EXPECT_EQ(job.end().signal, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !alive(command); }));
  EXPECT_EQ(type({"run", "x", "--", "true"}).code, 0);
}

TEST_F(signals, a_grandchild_that_survives_keeps_the_embedded_lock) {
  // The parent-death signal reaches the command only; the sign of life covers the rest.
  process job = begin({"run", "x", "--", "sh", "-c",
                       "sh -c 'while [ ! -e stop ]; do sleep 0.05; done' & echo child $!; wait"});
  ASSERT_TRUE(job.says("child"));
  const pid_t grandchild = pid_after("child", job.out());
  job.send(SIGKILL);
  job.end();
  ASSERT_TRUE(alive(grandchild));
  EXPECT_EQ(type({"run", "--wait", "500ms", "x", "--", "true"}).code, 124);
  write_file(home_ / "stop", "");
  EXPECT_EQ(type({"run", "x", "--", "true"}).code, 0);
  EXPECT_FALSE(alive(grandchild));
}

TEST_F(signals, kill_9_of_holders_never_lets_two_commands_run) {
  // The kernel's own lock is the witness: it fails if another command runs at the same time.
  const std::string script = "flock -n witness sleep 0.02 || echo two >>overlaps";
  for (int round = 0; round < 10; ++round) {
    std::vector<process> all;
    for (int i = 0; i < 5; ++i) all.push_back(begin({"run", "x", "--", "sh", "-c", script}));
    const auto victim = static_cast<std::size_t>(round % 5);
    if (round % 2 == 0) {
      EXPECT_TRUE(eventually([&] {
        return type({"show", "x"}).out.find(":" + std::to_string(all[victim].pid()) + ":sh") !=
                   std::string::npos ||
               !all[victim].running();
      }));
    }
    all[victim].send(SIGKILL);
    for (process& one : all) one.end();
  }
  EXPECT_EQ(read_file(home_ / "overlaps"), "");
  EXPECT_TRUE(is_free("x"));
}

TEST_F(signals, the_command_is_in_a_group_of_its_own) {
  process job =
      begin({"run", "x", "--", "sh", "-c", "ps -o pgid= -p $$; echo held $$; exec sleep 1000"});
  ASSERT_TRUE(job.says("held"));
  EXPECT_EQ(std::stoi(job.out()), pid_after("held", job.out()));
}

// Signals 32 and 33 belong to the C library, which uses them in every program with threads: their
// earlier dispositions cannot be passed on.
std::vector<std::uint64_t> masks_without_the_librarys_own(const std::string& status) {
  constexpr std::uint64_t librarys_own = 3ULL << 31U;
  std::vector<std::uint64_t> masks;
  std::istringstream lines(status);
  for (std::string name, mask; lines >> name >> mask;) {
    masks.push_back(std::stoull(mask, nullptr, 16) & ~librarys_own);
  }
  return masks;
}

TEST_F(signals, the_commands_own_signal_settings_are_those_we_were_started_with) {
  // Broken: a pipe's writer that never learns that its reader has gone.
  const std::string script = "grep -E 'Sig(Blk|Ign)' /proc/self/status";
  const auto ours =
      masks_without_the_librarys_own(type({"run", "x", "--", "sh", "-c", script}).out);
  const auto plain = masks_without_the_librarys_own(shell_.run({"sh", "-c", script}).out);
  ASSERT_EQ(plain.size(), 2U);
  EXPECT_EQ(ours, plain);
}

}  // namespace
}  // namespace holdfast::cli_test
