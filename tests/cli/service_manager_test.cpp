// What run and elect report to systemd, on a socket like the one it gives to a service.
#include "cli/fixture.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

namespace holdfast::cli_test {
namespace {

// The other end of $NOTIFY_SOCKET.
class notify_socket {
 public:
  explicit notify_socket(const std::string& path)
      : file_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    if (path.size() >= sizeof at.sun_path) throw std::runtime_error("a path too long for a socket");
    std::memcpy(at.sun_path, path.data(), path.size());
    if (at.sun_path[0] == '@') at.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    if (::bind(file_, reinterpret_cast<const sockaddr*>(&at), size) != 0) {
      throw std::runtime_error("bind " + path);
    }
  }
  notify_socket(const notify_socket&) = delete;
  notify_socket& operator=(const notify_socket&) = delete;
  ~notify_socket() { ::close(file_); }

  // Waits until everything received contains the text.
  bool hears(const std::string& text) {
    return eventually([&] {
      read();
      return heard_.find(text) != std::string::npos;
    });
  }
  const std::string& heard() {
    read();
    return heard_;
  }
  void forget() {
    read();
    heard_.clear();
  }

 private:
  void read() {
    char buffer[4096];
    for (;;) {
      const ssize_t got = ::recv(file_, buffer, sizeof buffer, MSG_DONTWAIT);
      if (got <= 0) return;
      heard_.append(buffer, static_cast<std::size_t>(got)).append("\n");
    }
  }

  const int file_;
  std::string heard_;
};

class service : public command_line {
 protected:
  service() { shell_.environment["NOTIFY_SOCKET"] = path_; }

  const std::string path_ = home_ / "notify";
  notify_socket manager_{path_};
};

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST_F(service, run_is_ready_when_its_command_runs) {
  // Broken: units that wait for this one start while another process holds the lock.
  process other = hold("x");
  ASSERT_TRUE(manager_.hears("STATUS=holding 'x'"));
  manager_.forget();
  process job = begin({"run", "x", "--", "sh", "-c", "echo held; exec sleep 1000"});
  ASSERT_TRUE(manager_.hears("STATUS=waiting for 'x', held by "));
  EXPECT_TRUE(manager_.hears("EXTEND_TIMEOUT_USEC="));
  EXPECT_FALSE(has_line(manager_.heard(), "READY=1"));
  other.send(SIGTERM);
  ASSERT_TRUE(manager_.hears("READY=1\nSTATUS=holding 'x'"));
  job.send(SIGTERM);
  job.end();
  EXPECT_TRUE(manager_.hears("STOPPING=1\nSTATUS=releasing 'x'"));
}

TEST_F(service, a_candidate_is_ready_before_it_leads) {
  // Broken: systemd ends the start of a standby after 90 seconds.
  process leader = begin({"elect", "x", "--", "sh", "-c", "echo leads; exec sleep 1000"});
  ASSERT_TRUE(manager_.hears("STATUS=leading the election 'x'"));
  manager_.forget();
  process standby = begin({"elect", "x", "--", "sh", "-c", "echo leads; exec sleep 1000"});
  ASSERT_TRUE(manager_.hears("READY=1\nSTATUS=waiting for the election 'x'"));
  manager_.forget();
  ASSERT_EQ(type({"release", "x", "--force", "--yes"}).code, 0);
  EXPECT_TRUE(manager_.hears("STOPPING=1\nSTATUS=lost the election 'x'"));
  EXPECT_EQ(leader.end().code, 123);
  EXPECT_TRUE(manager_.hears("STATUS=leading the election 'x'"));
}

TEST_F(service, the_watchdog_hears_from_us) {
  // Broken: systemd ends a healthy program.
  shell_.environment["WATCHDOG_USEC"] = "200000";
  process job = hold("x");
  manager_.forget();
  ASSERT_TRUE(manager_.hears("WATCHDOG=1\nWATCHDOG=1\n"));
}

TEST_F(service, a_candidate_with_a_short_watchdog_does_not_ask_a_silent_engine) {
  // Broken: a look at an engine that does not answer takes 5 s, and systemd ends the candidate meanwhile.
  process leader = begin({"elect", "x", "--", "sh", "-c", "echo leads; exec sleep 1000"});
  ASSERT_TRUE(leader.says("leads"));
  ASSERT_TRUE(manager_.hears("leading the election 'x'"));  // the last that it says
  manager_.forget();
  shell_.environment["WATCHDOG_USEC"] = "200000";
  process standby = begin({"elect", "x", "--", "true"});
  ASSERT_TRUE(manager_.hears("WATCHDOG=1\nWATCHDOG=1\nWATCHDOG=1\n"));
  EXPECT_EQ(manager_.heard().find("held by"), std::string::npos) << manager_.heard();
}

#ifdef HOLDFAST_WITH_HTTP
TEST_F(service, serve_is_ready_when_it_listens) {
  // Broken: systemd considers it ready before anybody can query it, or ends it although it is
  // healthy.
  shell_.environment["WATCHDOG_USEC"] = "200000";
  process served = begin({"serve", "--listen", "127.0.0.1:0"});
  ASSERT_TRUE(manager_.hears("READY=1\nSTATUS=serving "));
  ASSERT_TRUE(manager_.hears("WATCHDOG=1\nWATCHDOG=1\n"));
  served.send(SIGTERM);
  EXPECT_EQ(served.end().code, 0);
  EXPECT_TRUE(manager_.hears("STOPPING=1"));
}
#endif

TEST_F(service, a_watchdog_of_another_process_is_not_ours) {
  shell_.environment["WATCHDOG_USEC"] = "1000";
  shell_.environment["WATCHDOG_PID"] = "1";
  ASSERT_EQ(type({"run", "x", "--", "sleep", "0.1"}).code, 0);
  ASSERT_TRUE(manager_.hears("STOPPING=1"));
  EXPECT_EQ(manager_.heard().find("WATCHDOG=1"), std::string::npos);
}

TEST_F(service, the_command_gets_the_socket_only_on_request) {
  // Broken: systemd is told that the service is ready by a command that it does not listen to.
  shell_.environment["WATCHDOG_USEC"] = "60000000";
  shell_.environment["WATCHDOG_PID"] = "1";
  const words look{"x", "--", "sh", "-c", "echo [$NOTIFY_SOCKET$WATCHDOG_USEC$WATCHDOG_PID]"};
  words line{"run"};
  line.insert(line.end(), look.begin(), look.end());
  EXPECT_EQ(type(line).out, "[]\n");
  ASSERT_TRUE(manager_.hears("STOPPING=1"));
  manager_.forget();
  line.insert(line.begin() + 1, "--pass-notify");
  EXPECT_EQ(type(line).out, "[" + path_ + "60000000]\n");
  ASSERT_TRUE(manager_.hears("STOPPING=1"));
  EXPECT_FALSE(has_line(manager_.heard(), "READY=1"));  // that is up to the command
  EXPECT_TRUE(has_line(manager_.heard(), "STATUS=holding 'x'"));
}

TEST_F(service, an_abstract_socket_and_one_that_is_not_there) {
  // Broken: a manager that does not listen ends the job.
  const std::string name = "@holdfast-test-" + std::to_string(::getpid());
  notify_socket abstract(name);
  shell_.environment["NOTIFY_SOCKET"] = name;
  EXPECT_EQ(type({"run", "x", "--", "true"}).code, 0);
  EXPECT_TRUE(abstract.hears("READY=1"));
  for (const std::string& nobody :
       {home_ / "nobody", std::string("vsock:2:1"), std::string(300, 'x')}) {
    shell_.environment["NOTIFY_SOCKET"] = nobody;
    const answer got = type({"run", "x", "--", "true"});
    EXPECT_EQ(got.code, 0);
    EXPECT_EQ(got.err, "");
  }
}

}  // namespace
}  // namespace holdfast::cli_test
