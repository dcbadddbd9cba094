// Completions for bash, zsh and fish, in the shells themselves: they load, and offer what exists.
#include "cli/fixture.hpp"

#include <unistd.h>

#include <cstdlib>

namespace holdfast::cli_test {
namespace {

class completion : public command_line {
 protected:
  void SetUp() override {
    const std::string program = program_path();
    shell_.environment["PATH"] =
        program.substr(0, program.rfind('/')) + ":" + shell_.environment["PATH"];
  }

  // The path of a completion file.
  static std::string file(const std::string& name) {
    const char* root = std::getenv("HOLDFAST_SOURCE_DIR");
    return std::string(root == nullptr ? "." : root) + "/completions/" + name;
  }

  // What each shell offers after the words; the last of them is the beginning of the next word.
  std::string bash(const std::string& typed) {
    return offers({"bash", "--norc", "--noprofile", "-c",
                   "source " + file("holdfast.bash") + "; COMP_WORDS=(" + typed +
                       "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _holdfast; " +
                       "printf '<%s>\\n' \"${COMPREPLY[@]}\""});
  }
  std::string fish(const std::string& typed) {
    return offers({"fish", "--no-config", "-c",
                   "source " + file("holdfast.fish") + "; complete -C '" + typed + "'"});
  }
  // Without its line editor zsh has no completion: the names are the arguments of the builtin that
  // takes them.
  std::string zsh_names() {
    return offers({"zsh", "-f", "-c",
                   "_arguments() { }; compadd() { print -rl -- $names }; source " +
                       file("_holdfast") + "; _holdfast_names"});
  }

 private:
  std::string offers(const words& line) {
    const answer got = shell_.run(line);
    EXPECT_EQ(got.code, 0);
    EXPECT_EQ(got.err, "");
    return got.out;
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(completion, names_are_never_run) {
  // Broken: anyone who may take a lock can run commands as any user who presses Tab.
  const std::string trap = "$(touch " + home_ / "sprung" + ")`touch " + home_ / "sprung" + "`";
  const process one = hold(trap);
  const process two = hold("two words 1  2");
  const std::string in_bash = bash("holdfast show ''");
  EXPECT_TRUE(has(in_bash, "<\\$\\(touch")) << in_bash;
  EXPECT_TRUE(has(in_bash, "<two\\ words\\ 1\\ \\ 2>\n")) << in_bash;
  const std::string in_fish = fish("holdfast show ");
  EXPECT_TRUE(has(in_fish, trap + "\t")) << in_fish;
  EXPECT_TRUE(has(in_fish, "two words 1  2\t")) << in_fish;
  EXPECT_EQ(zsh_names(), trap + "\ntwo words 1  2\n");
  EXPECT_NE(::access((home_ / "sprung").c_str(), F_OK), 0);
}

TEST_F(completion, what_was_begun_is_completed_and_nothing_else_offered) {
  // Broken: the shell replaces what the user has typed with something that does not continue it.
  const process one = hold("shop/1");
  const process other = hold("stock");
  EXPECT_EQ(bash("holdfast show sh"), "<shop/1>\n");
  EXPECT_EQ(bash("holdfast sh"), "<show>\n");
  EXPECT_EQ(bash("holdfast run --w"), "<--wait>\n");
  EXPECT_EQ(bash("holdfast demo ''"), "<flash-sale>\n");
  EXPECT_FALSE(has(fish("holdfast show sh"), "stock"));
  EXPECT_TRUE(has(fish("holdfast demo "), "flash-sale"));
  EXPECT_TRUE(has(fish("holdfast run --w"), "--wait"));
}

TEST_F(completion, every_engine_is_offered) {
  for (const char* scheme :
       {"redis://", "zookeeper://", "etcd://", "postgresql://", "mariadb://"}) {
    EXPECT_TRUE(has(bash("holdfast --url ''"), std::string("<") + scheme)) << scheme;
    EXPECT_TRUE(has(fish("holdfast --url "), scheme)) << scheme;
  }
}

TEST_F(completion, names_come_from_the_engine_that_was_named) {
  // Broken: the names of another engine, or none.
  const std::string url = "sqlite:" + home_ / "other.db";
  const process here = hold("default");
  const process there = begin({"--url", url, "run", "elsewhere", "--", "sleep", "1000"});
  ASSERT_TRUE(eventually([&] {
    return type({"--url", url, "ls", "--names"}).out == "elsewhere\n";
  }));
  EXPECT_EQ(bash("holdfast --url " + url + " show ''"), "<elsewhere>\n");
  EXPECT_TRUE(has(fish("holdfast --url " + url + " show "), "elsewhere\t"));
  EXPECT_FALSE(has(fish("holdfast --url " + url + " show "), "default"));
}

}  // namespace
}  // namespace holdfast::cli_test
