// --help teaches by example; the man page and the completions know every command and option.
#include "cli/fixture.hpp"

#include <cstdlib>
#include <regex>
#include <set>

namespace holdfast::cli_test {
namespace {

const std::vector<words> commands{
    {},        {"run"},     {"elect"},         {"multi"},   {"multi", "run"},
    {"latch"}, {"ls"},      {"show"},          {"release"}, {"revoke"},
    {"watch"}, {"doctor"},  {"redis-library"}, {"demo"},    {"demo", "flash-sale"},
    {"bench"}, {"torture"}, {"serve"},         {"renew"}};

class help : public command_line {
 protected:
  std::string about(words command) {
    command.push_back("--help");
    const answer got = type(command);
    EXPECT_EQ(got.code, 0);
    EXPECT_EQ(got.err, "");
    return got.out;
  }
  static std::set<std::string> options_in(const std::string& text) {
    std::set<std::string> found;
    const std::regex option("--[a-z][a-z-]+");
    for (std::sregex_iterator at(text.begin(), text.end(), option), end; at != end; ++at) {
      found.insert(at->str());
    }
    return found;
  }
  static std::string source(const std::string& path) {
    const char* root = std::getenv("HOLDFAST_SOURCE_DIR");
    return read_file(std::string(root == nullptr ? "." : root) + "/" + path);
  }
};

TEST_F(help, of_every_command_has_an_example_that_can_be_typed) {
  // Broken: a user who asks for help gets a grammar and has to guess a line that works.
  for (const words& command : commands) {
    const std::string text = about(command);
    std::string example = "\n  holdfast ";
    if (!command.empty() && command != words{"multi"} && command != words{"demo"}) {
      for (const std::string& word : command) example += word + (word == command.back() ? "" : " ");
    }
    EXPECT_NE(text.find(example), std::string::npos) << text;
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);) EXPECT_LE(line.size(), 90U) << line;
  }
}

TEST_F(help, wins_over_whatever_else_is_on_the_line) {
  // Broken: a line that is wrong somewhere cannot be asked about.
  EXPECT_EQ(type({"run", "x", "--help", "--", "false"}).code, 0);
  EXPECT_EQ(type({"--help", "run"}).out, about({"run"}));
  EXPECT_EQ(type({"run", "-h"}).out, about({"run"}));
}

TEST_F(help, behind_the_dashes_belongs_to_the_command) {
  // Broken: `run x -- make --help` never reaches make.
  EXPECT_EQ(type({"run", "x", "--", "printf", "%s", "--help"}).out, "--help");
}

TEST_F(help, the_version_is_one_line) {
  // Broken: a script that compares versions.
  const answer got = type({"--version"});
  EXPECT_EQ(got.code, 0);
  EXPECT_TRUE(std::regex_match(got.out, std::regex("holdfast [0-9]+\\.[0-9]+\\.[0-9]+\n")))
      << got.out;
}

TEST_F(help, nothing_is_missing_in_the_man_page_and_the_completions) {
  // Broken: an option that nobody finds.
  std::set<std::string> options;
  for (const words& command : commands) options.merge(options_in(about(command)));
  std::string manual = std::regex_replace(source("docs/man/holdfast.1"), std::regex("\\\\-"), "-");
  for (const std::string& file : {manual, source("completions/holdfast.bash"),
                                  source("completions/_holdfast"), source("docs/cli.md")}) {
    for (const std::string& option : options) {
      EXPECT_NE(file.find(option), std::string::npos) << option << " in " << file.substr(0, 60);
    }
  }
  const std::string fish = source("completions/holdfast.fish");
  for (const std::string& option : options) {
    EXPECT_NE(fish.find("-l " + option.substr(2)), std::string::npos) << option;
  }
}

TEST_F(help, the_url_of_every_engine_is_shown) {
  // Broken: a user who has a server and the program has to guess how to bring them together.
  const std::string manual = source("docs/man/holdfast.1");
  for (const char* scheme :
       {"sqlite:/", "redis://", "rediss://", "valkey://", "valkeys://", "redis+sentinel://",
        "redis+cluster://", "redlock://", "zookeeper://", "etcd://", "etcds://", "postgresql://",
        "mariadb://", "mysql://", "memory:"}) {
    EXPECT_NE(about({}).find(scheme), std::string::npos) << scheme;
    EXPECT_NE(manual.find(scheme), std::string::npos) << scheme;
  }
  // An unknown engine is answered with a list: the help must mention everything in it.
  const std::string list = type({"--url", "frob:", "ls"}).err;
  const std::regex scheme("[a-z][a-z+]+:(?=,|\\))");
  int schemes = 0;
  for (std::sregex_iterator at(list.begin(), list.end(), scheme), end; at != end; ++at) {
    EXPECT_NE(about({}).find(at->str()), std::string::npos) << at->str();
    ++schemes;
  }
  EXPECT_GT(schemes, 2) << list;
}

}  // namespace
}  // namespace holdfast::cli_test
