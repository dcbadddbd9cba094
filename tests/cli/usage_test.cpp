// Bad input of every kind: exit 2, one line on stderr that says what is wrong, nothing on stdout,
// and never a repetition of what might be a password.
#include "cli/program.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::cli_test {
namespace {

using typed_line = words;

class bad_input : public ::testing::TestWithParam<typed_line> {
 protected:
  folder home_;
  shell shell_{home_};
};

TEST_P(bad_input, is_reported_in_one_line_and_exits_with_2) {
  // Broken: a script could not tell its own mistake from a busy lock.
  const answer got = shell_.holdfast(GetParam());
  EXPECT_EQ(got.code, 2) << got.err;
  EXPECT_EQ(got.out, "");
  EXPECT_TRUE(got.err.starts_with("holdfast: ")) << got.err;
  EXPECT_EQ(std::count(got.err.begin(), got.err.end(), '\n'), 1) << got.err;
}

const std::vector<typed_line> structure{
    {},
    {"frob"},
    {""},
    {"--frob"},
    {"-x"},
    {"run"},
    {"run", "x"},
    {"run", "x", "true"},
    {"run", "--", "true"},
    {"run", "x", "--"},
    {"run", "x", "y", "--", "true"},
    {"run", "--frob", "x", "--", "true"},
    {"run", "--wait", "--", "true"},
    {"run", "--wait", "1s", "--wait", "2s", "x", "--", "true"},
    {"multi"},
    {"multi", "frob"},
    {"multi", "run", "--", "true"},
    {"multi", "run", "a", "a", "--", "true"},
    {"multi", "run", "--shared", "a", "--", "true"},
    {"elect", "x"},
    {"elect", "--id", "", "x", "--", "true"},
    {"elect", "--id", "two\nlines", "x", "--", "true"},
    {"elect", "--id", std::string(257, 'x'), "x", "--", "true"},
    {"bench", "x"},
    {"bench", "--threads", "0"},
    {"bench", "--threads", "1025"},
    {"bench", "--processes", "65"},
    {"bench", "--locks", "mine"},
    {"bench", "--mode", "mutex:2"},
    {"bench", "--mode", "rw:101"},
    {"bench", "--mode", "semaphore:0"},
    {"bench", "--mode", "barrier"},
    {"bench", "--hold", "2m"},
    {"bench", "--duration", "10ms"},
    {"bench", "worker"},
    {"--url", "memory:", "bench", "--processes", "2"},
    {"latch"},
    {"latch", "x"},
    {"latch", "x", "frob"},
    {"latch", "x", "set"},
    {"latch", "x", "set", "0"},
    {"latch", "x", "set", "1000001"},
    {"latch", "x", "set", "-1"},
    {"latch", "x", "set", "1.5"},
    {"latch", "x", "set", "one"},
    {"latch", "x", "set", "1", "2"},
    {"latch", "x", "down", "0"},
    {"latch", "x", "count", "1"},
    {"latch", "x", "count", "--wait", "1s"},
    {"latch", "x", "set", "1", "--id", "a"},
    {"latch", "x", "wait", "--wait", "1"},
    {"ls", "a", "b"},
    {"ls", "--json", "--names"},
    {"show"},
    {"show", "a", "b"},
    {"show", "a", "--frob"},
    {"release", "x"},
    {"release", "--force", "--yes"},
    {"release", "x", "--force"},  // no terminal to ask on
    {"release", "x", "--force", "--yes", "--claim", ""},
    {"revoke"},
    {"watch", "a", "b"},
    {"doctor", "x"},
    {"redis-library", "x"},
    {"demo"},
    {"demo", "frob"},
    {"demo", "flash-sale", "x"},
    {"demo", "flash-sale", "--buyers", "0"},
    {"demo", "flash-sale", "--processes", "65"},
    {"demo", "flash-sale", "--lock", "none,frob"},
    {"demo", "flash-sale", "--lock", ""},
    {"demo", "flash-sale", "--lock", "mutex,mutex"},
    {"torture", "x"},
    {"torture", "check"},
    {"torture", "replay", "a", "b"},
    {"torture", "--start", "frob"},
    {"torture", "--start", "redis", "--url", "redis://localhost"},
    {"torture", "--clients", "0"},
    {"torture", "--clients", "201"},
    {"torture", "--duration", "10"},
    {"torture", "--duration", "999ms"},
    {"torture", "--ttl", "1ms"},
    {"torture", "--seed", "x"},
    {"torture", "--seed", "-1"},
    {"torture", "--workload", "frob"},
    {"torture", "--workload", "mutex,mutex"},
    {"torture", "--faults", ""},
    {"torture", "--faults", "none,cut"},
    {"torture", "--start", "embedded", "--faults", "cut"},
    {"--url", "memory:", "torture"},
};
INSTANTIATE_TEST_SUITE_P(structure, bad_input, ::testing::ValuesIn(structure));

std::vector<typed_line> options() {
  std::vector<typed_line> all;
  const auto add = [&](const words& given) {
    typed_line line{"run"};
    line.insert(line.end(), given.begin(), given.end());
    line.insert(line.end(), {"x", "--", "true"});
    all.push_back(line);
  };
  for (const char* text : {"",           "1",
                           "0",          "s",
                           "-1s",        "+1s",
                           "1.5s",       "1,5s",
                           "1 s",        " 1s",
                           "1s ",        "1S",
                           "1sec",       "1us",
                           "1d",         "1s1s",
                           "1s1m",       "1ms1s",
                           "1m1h",       "1h30",
                           "0x1s",       "99999999999999999999s",
                           "999999999h", "1e3s",
                           "infinity",   "1s-1ms"}) {
    add({"--wait=" + std::string(text)});
    add({"--ttl=" + std::string(text)});
  }
  add({"--wait", "5205050m5205050s"});  // each part would do
  add({"--ttl", "99ms"});
  add({"--ttl", "24h1ms"});
  add({"--ttl", "0s"});
  add({"--grace", "15s"});
  add({"--ttl", "1s", "--grace", "500ms"});
  add({"--lock-delay", "24h1s"});
  add({"--at-least", "soon"});
  add({"--at-most", "soon"});
  add({"--at-most", "999ms"});
  add({"--at-most", "10s", "--grace", "5s"});
  add({"--at-most", "10s", "--at-least", "11s"});
  add({"--permits", "1"});
  add({"--permits", "3", "--max", "2"});
  add({"--permits", "0", "--max", "2"});
  add({"--max", "0"});
  add({"--max", "1000001"});
  add({"--shared", "--max", "2"});
  add({"--busy-exit-code", "256"});
  add({"--busy-exit-code", "-1"});
  add({"--busy-exit-code", "x"});
  add({"--log-level", "loud"});
  add({"--namespace", "a b"});
  add({"--namespace", "a/b"});
  add({"--namespace", std::string(65, 'n')});
  add({"--password-file", "/nowhere/at/all"});
  return all;
}
INSTANTIATE_TEST_SUITE_P(options, bad_input, ::testing::ValuesIn(options()));

std::vector<typed_line> names() {
  std::vector<typed_line> all;
  for (const std::string& name :
       {std::string(), std::string(513, 'n'), std::string("two\nlines"), std::string("tab\there"),
        std::string("bell\a"), std::string("\x7f"), std::string("\xc2\x85"), std::string("\xff"),
        std::string("\xc0\xaf"), std::string("\xed\xa0\x80"), std::string("cut \xe2\x82"),
        std::string("\xf5\x80\x80\x80")}) {
    all.push_back({"run", name, "--", "true"});
    all.push_back({"elect", name, "--", "true"});
    all.push_back({"multi", "run", "fine", name, "--", "true"});
    all.push_back({"latch", name, "count"});
    all.push_back({"show", name});
    all.push_back({"release", name, "--force", "--yes"});
    all.push_back({"revoke", name});
    all.push_back({"watch", name});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(names, bad_input, ::testing::ValuesIn(names()));

std::vector<typed_line> urls() {
  std::vector<typed_line> all;
  for (const char* url :
       {"", "x", "frob://host", "frob:", "sqlite", "sqlite:", "redis:/", "redis://", "redis://u:p@",
        "redis://h:x", "redis://h:0", "redis://h:65536", "sqlite:/a%zz", "sqlite:/a#b",
        "memory:", "sqlite:/a?frob=1", "sqlite:/a?frob", "://", ":"}) {
    all.push_back({"--url", url, "run", "x", "--", "true"});
  }
  all.push_back({"--url", "redis://h?degrade=local", "run", "x", "--", "true"});
  for (const words& tail :
       {words{"elect", "x", "--", "true"}, words{"multi", "run", "x", "--", "true"},
        words{"latch", "x", "count"}, words{"ls"}, words{"show", "x"}, words{"watch"},
        words{"revoke", "x"}, words{"release", "x", "--force", "--yes"},
        words{"demo", "flash-sale"}}) {
    // Would exclude nobody.
    typed_line line{"--url", "memory:"};
    line.insert(line.end(), tail.begin(), tail.end());
    all.push_back(line);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(urls, bad_input, ::testing::ValuesIn(urls()));

class usage : public ::testing::Test {
 protected:
  folder home_;
  shell shell_{home_};
};

TEST_F(usage, without_a_home_the_error_names_the_way_out) {
  // Broken: in a container without HOME the user would search for a file that cannot exist.
  shell_.environment.erase("HOME");
  const answer got = shell_.holdfast({"run", "x", "--", "true"});
  EXPECT_EQ(got.code, 2);
  EXPECT_NE(got.err.find("--url"), std::string::npos) << got.err;
}

TEST_F(usage, a_relative_home_is_called_so) {
  // Broken: "HOME is not set", to somebody who sees that it is.
  shell_.environment["HOME"] = "relative";
  shell_.environment.erase("XDG_STATE_HOME");
  const answer got = shell_.holdfast({"run", "x", "--", "true"});
  EXPECT_EQ(got.code, 2);
  EXPECT_NE(got.err.find("HOME is not an absolute path"), std::string::npos) << got.err;
}

TEST_F(usage, what_is_wrong_is_said_in_words_that_help) {
  // Broken: the user learns that something is wrong, and has to guess what.
  const std::vector<std::pair<words, std::string>> cases{
      {{"latch", "x", "set", "-1"}, "from 1 to 1000000"},
      {{"run", "--fair=maybe", "x", "--", "true"}, "takes no value"},
      {{"run", "x\ny", "--", "true"}, "byte 2 "},
      {{"--url", "locks.db", "ls"}, "must begin with a scheme"},
      {{"run", "--wait", "5", "x", "--", "true"}, "needs a unit"},
      {{"run", std::string(10'000, 'x'), "--", "true"}, "at most 512 bytes, this one 10000"},
      {{"run", "--wait", "-5s", "x", "--", "true"}, "must not have a sign"},
      {{"--url", "sqlite:locks.db?frob=1", "ls"}, "unknown option 'frob'"},
      {{"--url", "sqlite:locks.db?frob=1", "ls"}, "breaker, breaker_pause, degrade"},
      {{"--url", "postgresql://h/d?frob=1", "ls"}, "connect_timeout"},
      {{"--url", "mariadb://u@h/d?frob=1", "ls"}, "breaker, breaker_pause, degrade"},
      {{"demo"}, "run holdfast demo flash-sale"},
      {{"multi", "a", "b"}, "multi run NAME NAME"},
      {{"show", "a", "b"}, "show needs one NAME"},
      {{"doctor", "x"}, "doctor takes no name"},
      {{"demo", "flash-sale", "x"}, "demo flash-sale takes no name"},
      {{"release", "--token", "hft1_cut"}, "the token is malformed or incomplete"},
      {{"bench", "--threads", "0"}, "--threads must be a whole number from 1 to 1024"},
      {{"bench", "--mode", "mutex:2"}, "--mode: only rw and semaphore take a number"},
      {{"--log-level", "loud", "ls"}, "--log-level must be off, error, warn, info or debug"},
      {{"serve", "--listen", "localhost:99999"}, "--listen must have a port from 0 to 65535"},
  };
  for (const auto& [line, told] : cases) {
    const answer got = shell_.holdfast(line);
    EXPECT_EQ(got.code, 2);
    EXPECT_NE(got.err.find(told), std::string::npos) << got.err;
  }
}

TEST_F(usage, a_slip_of_the_finger_is_answered_with_what_was_meant) {
  // Broken: "unknown option --wiat" leaves the user to compare letters.
  const std::vector<std::pair<words, std::string>> cases{
      {{"rnu", "x", "--", "true"}, "unknown command rnu; did you mean run? ("},
      {{"revok", "x"}, "; did you mean revoke? ("},
      {{"run", "--wiat", "1s", "x", "--", "true"}, "--wiat; did you mean --wait? ("},
      {{"run", "--busyexit-code=1", "x", "--", "true"}, "; did you mean --busy-exit-code? ("},
      {{"ls", "--namspace", "n"}, "; did you mean --namespace? ("},
      {{"doctor", "--jsno"}, "; did you mean --json? ("},
      // Nothing near, or only in another command: no guess.
      {{"doctor", "--wait", "1s"}, "unknown option --wait ("},
      {{"frobnicate"}, "unknown command frobnicate ("},
      {{"ab"}, "unknown command ab ("},
  };
  for (const auto& [line, told] : cases) {
    const answer got = shell_.holdfast(line);
    EXPECT_EQ(got.code, 2);
    EXPECT_NE(got.err.find(told), std::string::npos) << got.err;
  }
}

TEST_F(usage, a_value_in_the_wrong_place_is_never_repeated) {
  // Broken: a password typed as an option that does not exist would appear in a log.
  for (const words& line :
       {words{"--password", "hunter2", "run", "x", "--", "true"}, words{"--hunter2=hunter2"},
        words{"redis://u:hunter2@h", "run"}, words{"run", "--url=redis://u:hunter2@h:x", "x", "--"},
        words{"--url", "redis://u:hunter2@h:99999", "ls"}, words{"ls", "--foo=hunter2"},
        words{"run", "--wait", "hunter2", "x", "--", "true"}}) {
    const answer got = shell_.holdfast(line);
    EXPECT_EQ(got.code, 2);
    EXPECT_EQ((got.out + got.err).find("hunter2"), std::string::npos) << got.err;
  }
}

}  // namespace
}  // namespace holdfast::cli_test
