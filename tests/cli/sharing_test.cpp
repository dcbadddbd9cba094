// Users who share a file as docs/operating.md describes, and users who do not.
#include "cli/fixture.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace holdfast::cli_test {
namespace {

class sharing : public command_line {
 protected:
  // The commands that the manual gives, with a folder and a group of the test's own.
  [[nodiscard]] std::string recipe() const {
    const char* root = std::getenv("HOLDFAST_SOURCE_DIR");
    const std::string page =
        read_file(std::string(root == nullptr ? "." : root) + "/docs/operating.md");
    const auto begin = page.find("install -d -m 2770");
    const auto end = page.find("```", begin);
    if (begin == std::string::npos || end == std::string::npos) return "false";
    std::string commands = page.substr(begin, end - begin);
    replace_all(commands, "/var/lib/holdfast", place_);
    replace_all(commands, "-g shop", "-g " + group());
    return commands + "printf %s \"$HOLDFAST_URL\"";
  }
  // A test that does not run as root can only be its own user.
  static std::string group() { return std::to_string(::geteuid() == 0 ? common : ::getegid()); }
  // With a group of its own, a member of the common one, and nobody else may read what it makes.
  static words as_user(int number, const words& arguments) {
    words line{"sh", "-c", "umask 077; exec \"$@\"", "sh"};
    if (::geteuid() == 0) {
      const std::string user = std::to_string(number);
      line.insert(line.end(),
                  {"setpriv", "--reuid=" + user, "--regid=" + user, "--groups=" + group(), "--"});
    }
    line.insert(line.end(), arguments.begin(), arguments.end());
    return line;
  }

  static constexpr gid_t common = 54'321;
  const std::string place_ = home_ / "shared";

 private:
  static void replace_all(std::string& text, const std::string& what, const std::string& by) {
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
      text.replace(at, what.size(), by);
    }
  }
};

TEST_F(sharing, the_manuals_recipe_lets_two_users_exclude_and_wake_each_other) {
  // Broken: the second user is denied the writer lock, the log or the sockets of the first.
  ASSERT_EQ(::chmod(home_.path().c_str(), 0755), 0);
  const answer made = shell_.run({"sh", "-ec", recipe()});
  ASSERT_EQ(made.code, 0) << made.err;
  ASSERT_EQ(made.out, "sqlite:" + place_ + "/locks.db");
  shell_.environment["HOLDFAST_URL"] = made.out;
  ASSERT_EQ(shell_.run({"mkfifo", "-m", "666", home_ / "fifo"}).code, 0);
  process first = shell_.start(as_user(2001, {program_path(), "run", "nightly", "--", "sh", "-c",
                                              "echo held; read -r line < \"$0\"", home_ / "fifo"}));
  ASSERT_TRUE(first.says("held")) << first.err();
  EXPECT_EQ(
      shell_.run(as_user(2002, {program_path(), "run", "--wait", "0s", "nightly", "--", "true"}))
          .code,
      124);
  process second =
      shell_.start(as_user(2002, {program_path(), "run", "nightly", "--", "echo", "next"}));
  ASSERT_TRUE(waiters("nightly", 1));
  write_file(home_ / "fifo", "go on\n");
  EXPECT_EQ(second.end().code, 0);
  EXPECT_EQ(first.end().code, 0);
}

}  // namespace
}  // namespace holdfast::cli_test
