// holdfast doctor: for each broken set-up exactly the matching line fails, and says what to do.
#include "cli/fixture.hpp"

#ifdef HOLDFAST_WITH_REDIS
#include "support/redis_server.hpp"
#endif

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <map>
#include <sstream>
#include <string>

namespace holdfast::cli_test {
namespace {

using nlohmann::json;

class doctor : public command_line {
 protected:
  words with(const words& arguments) const {
    words line{"--url", "sqlite:" + file_};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return line;
  }
  // The checks that are not ok, by name.
  std::map<std::string, std::string> findings() {
    const answer got = type(with({"doctor", "--json"}));
    std::map<std::string, std::string> found;
    bool failed = false;
    for (const json& check : json::parse(got.out)) {
      if (check["status"] == "ok") continue;
      failed = failed || check["status"] == "fail";
      found[check["check"]] = check["status"];
      EXPECT_NE(check["remedy"], "") << check;
      EXPECT_NE(check["detail"], "") << check;
    }
    EXPECT_EQ(got.code, failed ? 1 : 0);
    return found;
  }
  using expected = std::map<std::string, std::string>;

  // Things that another program may do to the file.
  void meddle(const std::string& statements) {
    const answer done =
        shell_.run({"python3", "-c",
                    "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
                    "for s in sys.argv[2].split(';'): c.execute(s).fetchall()\nc.close()",
                    file_, statements});
    ASSERT_EQ(done.code, 0) << done.err;
  }
  void make_file() { ASSERT_EQ(type(with({"run", "x", "--", "true"})).code, 0); }

  const std::string file_ = home_ / "locks.db";
};

TEST_F(doctor, finds_nothing_wrong_with_a_new_file) {
  // Broken: false alarms, after which nobody reads the lines.
  const answer got = type({"doctor"});
  EXPECT_EQ(got.code, 0) << got.out << got.err;
  EXPECT_EQ(got.err, "");
  std::istringstream all(got.out);
  for (std::string line; std::getline(all, line);) EXPECT_TRUE(line.starts_with("ok ")) << line;
  EXPECT_GE(lines(got.out), 10);
}

TEST_F(doctor, says_that_other_users_have_other_files_and_how_to_share) {
  // Broken: two users lock the same name without excluding each other, and nothing tells them why.
  const answer got = type({"doctor"});
  EXPECT_NE(got.out.find("user"), std::string::npos);
  EXPECT_NE(got.out.find("--url sqlite:/"), std::string::npos) << got.out;
}

TEST_F(doctor, a_file_that_everybody_may_write) {
  // Broken: any user can break everybody's locks, unnoticed.
  make_file();
  ASSERT_EQ(shell_.run({"chmod", "666", file_}).code, 0);
  EXPECT_EQ(findings(), (expected{{"permissions", "fail"}}));
  EXPECT_NE(type(with({"doctor"})).out.find("chmod"), std::string::npos);
}

TEST_F(doctor, a_file_that_the_group_can_only_half_use) {
  // Broken: a user who may open the file cannot create its sign of life, and is not told what to
  // change.
  make_file();
  ASSERT_EQ(shell_.run({"chmod", "660", file_}).code, 0);
  EXPECT_EQ(findings(), (expected{{"permissions", "fail"}}));
  ASSERT_EQ(shell_.run({"chmod", "770", file_ + ".d"}).code, 0);
  EXPECT_EQ(findings(), (expected{{"permissions", "warn"}}));
}

TEST_F(doctor, a_damaged_page) {
  // Broken: a damaged file passes.
  make_file();
  meddle("PRAGMA wal_checkpoint(TRUNCATE)");
  // The page that stores the resources: found by its table, not by its number.
  const answer page = shell_.run(
      {"python3", "-c",
       "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\n"
       "root = c.execute(\"select rootpage from sqlite_master where "
       "name='resources'\").fetchone()[0]\n"
       "size = c.execute('pragma page_size').fetchone()[0]\nc.close()\n"
       "f = open(sys.argv[1], 'r+b'); f.seek((root - 1) * size); f.write(b'\\xaa' * 64); f.close()",
       file_});
  ASSERT_EQ(page.code, 0) << page.err;
  EXPECT_EQ(findings(), (expected{{"integrity", "fail"}}));
}

TEST_F(doctor, clients_that_were_killed) {
  // Broken: clients that die go unnoticed, because opening the file clears them away.
  process holder = begin(with({"run", "x", "--", "sh", "-c", "echo held; exec sleep 1000"}));
  ASSERT_TRUE(holder.says("held"));
  holder.send(SIGKILL);
  holder.end();
  expected first;
  ASSERT_TRUE(eventually([&] { return !(first = findings()).empty(); }));
  EXPECT_EQ(first, (expected{{"clients", "warn"}}));
  EXPECT_EQ(findings(), expected{}) << "cleared away by the first look";
}

class doctor_open : public doctor {
 protected:
  // Cannot be opened: one line fails, with the engine's error.
  void expect_refusal(const std::string& because) {
    EXPECT_EQ(findings(), (expected{{"open", "fail"}}));
    const answer got = type(with({"doctor"}));
    EXPECT_EQ(got.code, 1);
    EXPECT_NE(got.out.find(because), std::string::npos) << got.out;
    // Every other command exits with 122 for the same.
    const answer other = type(with({"run", "x", "--", "true"}));
    EXPECT_EQ(other.code, 122) << other.err;
    EXPECT_EQ(lines(other.err), 1) << other.err;
  }
};

TEST_F(doctor_open, a_newer_format) {
  // Broken: an old program works on a format that it does not know, or fails without a reason.
  make_file();
  meddle("PRAGMA user_version = 999");
  expect_refusal("newer");
}

TEST_F(doctor_open, a_database_of_another_program) {
  // Broken: our tables or files appear in or beside somebody's data.
  meddle("CREATE TABLE t(a);PRAGMA application_id = 12345");
  expect_refusal("");
  EXPECT_NE(shell_.run({"test", "-e", file_ + ".d"}).code, 0) << "nothing of ours beside it";
}

TEST_F(doctor_open, a_text_file_which_is_left_as_it_is) {
  // Broken: somebody's notes become a database.
  write_file(file_, "precious text\n");
  expect_refusal("not a database");
  EXPECT_EQ(read_file(file_), "precious text\n");
}

TEST_F(doctor_open, a_folder) {
  // Broken: a typing error ends in a message that does not help.
  ASSERT_EQ(shell_.run({"mkdir", file_}).code, 0);
  expect_refusal("folder");
}

TEST_F(doctor_open, a_missing_folder) {
  // Broken: folders are made where somebody mistyped a path, or no reason is given.
  const answer got =
      type({"--url", "sqlite:" + (home_ / "no/such/x.db"), "run", "x", "--", "true"});
  EXPECT_EQ(got.code, 122);
  EXPECT_NE(got.err.find("folder"), std::string::npos) << got.err;
}

TEST_F(doctor_open, somebody_stopped_with_the_writer_lock) {
  // Broken: doctor hangs like everything else.
  make_file();
  const int writer_lock = ::open((file_ + ".d/writer_lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(writer_lock, 0);
  ASSERT_EQ(::flock(writer_lock, LOCK_EX), 0);
  EXPECT_EQ(findings(), (expected{{"open", "fail"}}));
  ::close(writer_lock);
  EXPECT_EQ(findings(), expected{});
}

TEST_F(doctor, memory_can_be_examined_though_nothing_else) {
  // Broken: the one engine that always works cannot be examined.
  EXPECT_EQ(type({"--url", "memory:", "doctor"}).code, 0);
}

TEST_F(doctor, a_wrong_url_is_usage_and_an_engine_that_is_not_there_a_finding) {
  // Broken: scripts cannot tell a typing error from an engine that is down.
  EXPECT_EQ(type({"--url", "frob:", "doctor"}).code, 2);
  EXPECT_EQ(type({"--url", "redis://127.0.0.1:1", "doctor"}).code, 1);
}

TEST_F(doctor, the_default_file_is_private) {
  // Broken: other users can break this user's locks, or they are in a surprising place.
  const words run{"sh", "-c", "umask 0; exec \"$0\" run x -- true", program_path()};
  const auto modes_in = [this](const std::string& state) {
    return shell_.run({"stat", "-c", "%a", state, state + "/holdfast.db", state + "/holdfast.db.d"})
        .out;
  };
  ASSERT_EQ(shell_.run(run).code, 0);
  EXPECT_EQ(modes_in(home_ / ".local/state/holdfast"), "700\n600\n700\n");
  shell_.environment["XDG_STATE_HOME"] = home_ / "elsewhere";
  ASSERT_EQ(shell_.run(run).code, 0);
  EXPECT_EQ(modes_in(home_ / "elsewhere/holdfast"), "700\n600\n700\n");
}

#ifdef HOLDFAST_WITH_REDIS
TEST_F(doctor, a_login_that_is_refused_is_not_taken_for_a_server_that_is_down) {
  // Broken: the operator restarts a server that is well, because the remedy says so.
  const test::redis_server server(
      {.arguments = {"--requirepass", "right"}, .admin = {"-a", "right"}});
  const answer got = type(
      {"--url", "redis://:wrong@127.0.0.1:" + std::to_string(server.port()), "doctor", "--json"});
  EXPECT_EQ(got.code, 1);
  const json check = json::parse(got.out).at(0);
  EXPECT_EQ(check["status"], "fail");
  EXPECT_NE(check["remedy"].get<std::string>().find("password"), std::string::npos) << check;
}

TEST_F(doctor, an_administrator_can_load_the_functions_of_redis) {
  // Broken: where clients may not load functions, nobody could take a lock.
  const test::redis_server server;
  const answer printed = type({"redis-library"});
  ASSERT_EQ(printed.code, 0) << printed.err;
  EXPECT_EQ(server.cli({"FUNCTION", "LOAD", printed.out}), "holdfast_7");
  server.cli({"ACL", "SETUSER", "shop", "on", ">secret", "~*", "&*", "+@all", "-function"});
  const std::string url = "redis://shop:secret@127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(type({"--url", url, "run", "x", "--", "true"}).code, 0);
}
#endif

}  // namespace
}  // namespace holdfast::cli_test
