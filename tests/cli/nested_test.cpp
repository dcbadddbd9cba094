// holdfast inside holdfast run, with an engine that requires a password: --pass-url passes it to
// the inner one, and nothing else passes it to anybody.
#include "cli/fixture.hpp"

#ifdef HOLDFAST_WITH_REDIS
#include "support/redis_server.hpp"

namespace holdfast::cli_test {
namespace {

class nested : public command_line {
 protected:
  void SetUp() override {
    const std::string program = program_path();
    shell_.environment["PATH"] =
        program.substr(0, program.rfind('/')) + ":" + shell_.environment["PATH"];
  }
  [[nodiscard]] std::string url(const std::string& credentials) const {
    return "redis://" + credentials + "127.0.0.1:" + std::to_string(server_.port());
  }
  // Runs a script under the lock "outer".
  answer under(const words& options, const std::string& script) {
    words line = options;
    line.insert(line.end(), {"outer", "--", "sh", "-c", script});
    return type(line);
  }

  const test::redis_server server_{
      {.arguments = {"--requirepass", "hunter2"}, .admin = {"-a", "hunter2"}}};
};

constexpr const char* both_levels =
    "holdfast show outer --json && holdfast run --pass-url inner -- holdfast show inner --json";

TEST_F(nested, the_password_of_the_url_reaches_the_inner_program) {
  // Broken: a script that is itself run under a lock cannot take another.
  const answer got = under({"--url", url(":hunter2@"), "run", "--pass-url"}, both_levels);
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(lines(got.out), 2) << got.out;
  EXPECT_EQ(got.out.find("\"holders\":[]"), std::string::npos) << got.out;
}

TEST_F(nested, the_password_of_a_variable_or_a_file_does_too) {
  shell_.environment["HOLDFAST_URL"] = url("");
  shell_.environment["HOLDFAST_PASSWORD"] = "hunter2";
  EXPECT_EQ(under({"run", "--pass-url"}, both_levels).code, 0);
  shell_.environment.erase("HOLDFAST_PASSWORD");
  write_file(home_ / "secret", "hunter2\n");
  // The file takes precedence over the URL, inside as well as outside.
  shell_.environment["HOLDFAST_URL"] = url(":wrong@");
  const answer got = under({"--password-file", home_ / "secret", "run", "--pass-url"}, both_levels);
  EXPECT_EQ(got.code, 0) << got.err;
}

TEST_F(nested, a_password_file_that_is_a_pipe_is_read_once) {
  const answer got = shell_.run(
      {"bash", "-c",
       "holdfast --url " + url("") +
           " --password-file <(echo hunter2) run --pass-url outer -- holdfast show outer --json"});
  EXPECT_EQ(got.code, 0) << got.err;
}

TEST_F(nested, the_password_is_in_no_environment_and_no_argument) {
  const answer got =
      under({"--url", url(":hunter2@"), "--namespace", "shop", "run", "--pass-url"},
            "env; tr '\\0' '\\n' </proc/$$/cmdline; tr '\\0' '\\n' </proc/$PPID/cmdline; "
            "tr '\\0' '\\n' </proc/$PPID/environ");
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out.find("hunter2"), std::string::npos) << got.out;
  EXPECT_NE(got.out.find("HOLDFAST_URL=" + url("@")), std::string::npos) << got.out;
  EXPECT_NE(got.out.find("HOLDFAST_NAMESPACE=shop\n"), std::string::npos) << got.out;
}

TEST_F(nested, a_command_of_the_inner_program_gets_nothing_unasked) {
  const answer got = under({"--url", url(":hunter2@"), "run", "--pass-url"},
                           "holdfast run inner -- sh -c 'env; ls -l /proc/self/fd'");
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out.find("HOLDFAST_URL_FD"), std::string::npos) << got.out;
  EXPECT_EQ(got.out.find("memfd"), std::string::npos) << got.out;
}

TEST_F(nested, what_was_passed_is_not_used_for_another_engine) {
  const answer got = under({"--url", url(":hunter2@"), "run", "--pass-url"},
                           "holdfast --url sqlite:other.db show outer --json && "
                           "HOLDFAST_URL=sqlite:other.db holdfast show outer --json");
  EXPECT_EQ(got.code, 0) << got.err;
  const std::string free = "{\"name\":\"outer\",\"holders\":[],\"waiters\":[]}\n";
  EXPECT_EQ(got.out, free + free);
}

TEST_F(nested, without_it_the_error_says_what_to_do) {
  // Broken: "give user and password in the URL", which has it.
  shell_.environment["HOLDFAST_URL"] = url(":hunter2@");
  const answer got = under({"run"}, "holdfast show outer");
  EXPECT_EQ(got.code, 122);
  EXPECT_NE(got.err.find("--pass-url"), std::string::npos) << got.err;
  EXPECT_NE(got.err.find("--password-file"), std::string::npos) << got.err;
  shell_.environment["HOLDFAST_URL"] = url("default:hunter2@");
  const answer with_user = under({"run"}, "holdfast show outer");
  EXPECT_NE(with_user.err.find("--pass-url"), std::string::npos) << with_user.err;
  // Outside a run there is nothing to pass.
  shell_.environment["HOLDFAST_URL"] = url("");
  const answer outside = type({"show", "x"});
  EXPECT_EQ(outside.code, 122);
  EXPECT_EQ(outside.err.find("--pass-url"), std::string::npos) << outside.err;
  EXPECT_NE(outside.err.find("--password-file"), std::string::npos) << outside.err;
}

TEST_F(nested, a_descriptor_that_was_closed_on_the_way_is_said_to_be_closed) {
  // Broken: another file that got the same number is sent to the server as a password.
  const answer got = under({"--url", url(":hunter2@"), "run", "--pass-url"},
                           "echo other >other; eval \"exec $HOLDFAST_URL_FD<other\"; "
                           "holdfast show outer");
  EXPECT_EQ(got.code, 122);
  EXPECT_NE(got.err.find("closed the descriptor"), std::string::npos) << got.err;
}

}  // namespace
}  // namespace holdfast::cli_test
#endif
