// acquire, renew and release --token: a lock that is held across processes, by the owner of its
// token.
#include "cli/fixture.hpp"

#ifdef HOLDFAST_WITH_ETCD
#include "support/etcd_server.hpp"
#endif

#include <sys/stat.h>

#include <csignal>
#include <regex>

namespace holdfast::cli_test {
namespace {

class token : public command_line {
 protected:
  // Takes the lock; returns the token without its newline.
  std::string taken(const std::string& name, const words& options = {}) {
    words line{"acquire", name, "--wait", "0s"};
    line.insert(line.end(), options.begin(), options.end());
    const answer got = type(line);
    EXPECT_EQ(got.code, 0) << got.err;
    EXPECT_TRUE(std::regex_match(got.out, std::regex("hft1_[A-Za-z0-9_-]+\n"))) << got.out;
    return got.out.substr(0, got.out.find('\n'));
  }
  // What show reports: free, or for how many milliseconds it is held.
  long held_for(const std::string& name) {
    const std::string shown = type({"show", name, "--json"}).out;
    std::smatch found;
    if (!std::regex_search(shown, found, std::regex("\"ttl_ms\":([0-9]+)"))) return -1;
    return std::stol(found[1]);
  }
};

TEST_F(token, keeps_a_lock_between_processes_until_it_is_released) {
  // Broken: the steps of a pipeline have no lock in common.
  const std::string first = taken("deploy", {"--ttl", "10m"});
  EXPECT_GT(held_for("deploy"), 500'000);
  EXPECT_EQ(type({"run", "--wait", "0s", "deploy", "--", "true"}).code, 124);
  EXPECT_EQ(type({"acquire", "deploy", "--wait", "0s", "--busy-exit-code", "7"}).code, 7);
  EXPECT_EQ(type({"renew", "--ttl", "1h", first}).code, 0);
  EXPECT_GT(held_for("deploy"), 3'000'000);
  EXPECT_EQ(type({"renew", first}).code, 0);
  EXPECT_LE(held_for("deploy"), 600'000);
  const answer released = type({"release", "--token", first});
  EXPECT_EQ(released.code, 0);
  EXPECT_EQ(released.out + released.err, "");
  EXPECT_TRUE(is_free("deploy"));
  for (const words& line : {words{"renew", first}, words{"release", "--token", first}}) {
    const answer gone = type(line);
    EXPECT_EQ(gone.code, 123);
    EXPECT_EQ(gone.out, "");
    EXPECT_EQ(lines(gone.err), 1) << gone.err;
    EXPECT_NE(gone.err.find("has ended"), std::string::npos) << gone.err;
  }
}

TEST_F(token, is_shown_nowhere) {
  // Broken: anyone who may view locks may take them.
  const std::string secret = taken("deploy", {"--ttl", "10m"});
  const std::string shown = type({"show", "deploy"}).out + type({"show", "deploy", "--json"}).out +
                            type({"ls", "--json"}).out;
  EXPECT_NE(shown.find("(detached)"), std::string::npos) << shown;
  for (std::size_t at = 5; at + 12 <= secret.size(); at += 4) {
    EXPECT_EQ(shown.find(secret.substr(at, 12)), std::string::npos);
  }
  const answer wrong = type({"renew", "--frob", secret});
  EXPECT_EQ(wrong.err.find(secret.substr(5, 12)), std::string::npos) << wrong.err;
  const answer other = type({"--namespace", "other", "release", "--token", secret});
  EXPECT_EQ(other.err.find(secret.substr(5, 12)), std::string::npos) << other.err;
}

TEST_F(token, in_a_file_is_its_owners_alone) {
  // Broken: other users of the machine read it in the list of processes, or in the file.
  const std::string file = home_ / "token";
  const answer got = type({"acquire", "deploy", "--ttl", "10m", "--token-file", file});
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out, "");
  struct stat made {};
  ASSERT_EQ(::stat(file.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777U, 0600U);
  const std::string before = read_file(file);
  // A busy lock leaves an existing token file unchanged.
  EXPECT_EQ(type({"acquire", "deploy", "--wait", "0s", "--token-file", file}).code, 124);
  EXPECT_EQ(read_file(file), before);
  EXPECT_EQ(type({"renew", "--token-file", file}).code, 0);
  EXPECT_EQ(type({"release", "--token-file", file}).code, 0);
  EXPECT_TRUE(is_free("deploy"));
  EXPECT_EQ(shell_.run({"ls", home_.path()}).out.find("token."), std::string::npos);
  const answer nowhere = type({"acquire", "deploy", "--token-file", home_ / "no/such/folder"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_TRUE(is_free("deploy"));  // not taken for nothing
}

TEST_F(token, as_json_has_the_fencing_token) {
  // Broken: a script cannot protect what it writes.
  const answer got = type({"acquire", "deploy", "--ttl", "10m", "--json"});
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_TRUE(std::regex_match(
      got.out, std::regex("\\{\"name\":\"deploy\",\"fence\":[0-9]+,\"ttl_ms\":600000,"
                          "\"token\":\"hft1_[A-Za-z0-9_-]+\"\\}\n")))
      << got.out;
  const answer filed = type({"acquire", "other", "--json", "--token-file", home_ / "token"});
  EXPECT_EQ(filed.code, 0) << filed.err;
  EXPECT_EQ(filed.out.find("hft1_"), std::string::npos) << filed.out;
}

TEST_F(token, that_is_none_or_of_another_place_is_refused_before_the_engine_is_asked) {
  // Broken: a mistyped token looks like a lock that is gone.
  const std::string secret = taken("deploy", {"--ttl", "10m"});
  const std::string nowhere = "redis://127.0.0.1:1";
  write_file(home_ / "wrong", "no token\n");
  for (const words& line :
       {words{"renew", "x"}, words{"renew"}, words{"renew", secret, secret},
        words{"renew", secret.substr(0, secret.size() - 2)}, words{"release", "--token", "x"},
        words{"release", "--token", ""}, words{"release", "deploy", "--token", secret},
        words{"release", "--token", secret, "--force"},
        words{"release", "--token", secret, "--token-file", home_ / "wrong"},
        words{"renew", "--token-file", home_ / "wrong"},
        words{"renew", "--token-file", home_ / "missing"}, words{"renew", "--ttl", "1ms", secret},
        words{"acquire"}, words{"acquire", "a", "b"},
        words{"--namespace", "other", "renew", secret},
        words{"--url", nowhere, "release", "--token", secret}}) {
    const answer got = type(line);
    EXPECT_EQ(got.code, 2) << got.err;
    EXPECT_EQ(lines(got.err), 1) << got.err;
  }
  EXPECT_GT(held_for("deploy"), 0);
  EXPECT_EQ(type({"release", "--token", secret}).code, 0);
}

TEST_F(token, of_a_shared_lock_or_of_permits_leaves_room_for_others) {
  // Broken: a reader or a permit that is held across processes keeps everybody out.
  const std::string reader = taken("catalogue", {"--shared"});
  EXPECT_EQ(type({"run", "--wait", "0s", "--shared", "catalogue", "--", "true"}).code, 0);
  EXPECT_EQ(type({"run", "--wait", "0s", "catalogue", "--", "true"}).code, 124);
  EXPECT_EQ(type({"release", "--token", reader}).code, 0);
  const std::string permits = taken("gpu", {"--permits", "2", "--max", "3"});
  EXPECT_EQ(type({"run", "--wait", "0s", "--max", "3", "gpu", "--", "true"}).code, 0);
  EXPECT_EQ(type({"run", "--wait", "0s", "--permits", "2", "--max", "3", "gpu", "--", "true"}).code,
            124);
  EXPECT_EQ(type({"release", "--token", permits}).code, 0);
}

TEST_F(token, a_lock_without_a_process_ends_with_its_ttl) {
  // Broken: a pipeline that died keeps the lock.
  const std::string secret = taken("deploy", {"--ttl", "1s"});
  EXPECT_EQ(type({"run", "deploy", "--", "true"}).code, 0);
  EXPECT_EQ(type({"renew", secret}).code, 123);
}

TEST_F(token, a_signal_while_waiting_leaves_nothing) {
  // Broken: an interrupted step blocks the queue, or leaves a draft of its file.
  const process holder = hold("deploy");
  process waits = begin({"acquire", "deploy", "--token-file", home_ / "token"});
  ASSERT_TRUE(waiters("deploy", 1));
  waits.send(SIGTERM);
  EXPECT_EQ(waits.end().code, 128 + SIGTERM);
  EXPECT_TRUE(waiters("deploy", 0));
  EXPECT_EQ(shell_.run({"ls", home_.path()}).out.find("token"), std::string::npos);
}

TEST_F(token, that_cannot_be_printed_is_released) {
  // Broken: a lock that nobody can release, because nobody got its token.
  const answer got =
      shell_.run({"sh", "-c", program_path() + " acquire deploy --ttl 10m >/dev/full"});
  EXPECT_NE(got.code, 0);
  EXPECT_TRUE(is_free("deploy"));
}

#ifdef HOLDFAST_WITH_ETCD
TEST_F(token, is_given_by_etcd_as_the_help_says) {
  // Broken: the reader of the help believes that etcd cannot, and does without.
  const auto server = test::start_etcd();
  shell_.environment["HOLDFAST_URL"] = "etcd://" + server->host();
  taken("deploy");
  EXPECT_EQ(type({"acquire", "--shared", "index"}).code, 122);
  const std::string said = type({"acquire", "--help"}).out;
  EXPECT_NE(said.find("--shared on etcd"), std::string::npos) << said;
  EXPECT_EQ(count(said, "etcd"), 1) << said;
}
#endif

}  // namespace
}  // namespace holdfast::cli_test
