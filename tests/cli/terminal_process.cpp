#include "cli/terminal_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace holdfast::cli_test {

terminal_process::terminal_process(const words& command,
                                   const std::map<std::string, std::string>& environment,
                                   const std::string& started_in) {
  pid_ = ::forkpty(&file_, nullptr, nullptr, nullptr);
  if (pid_ < 0) throw std::runtime_error("forkpty");
  if (pid_ == 0) {
    if (::chdir(started_in.c_str()) != 0) ::_exit(99);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::vector<std::string> texts;
    for (const auto& [name, value] : environment) texts.push_back(name + "=" + value);
    std::vector<char*> variables;
    for (std::string& text : texts) variables.push_back(text.data());
    variables.push_back(nullptr);
    ::execvpe(arguments[0], arguments.data(), variables.data());
    ::_exit(99);
  }
  ::fcntl(file_, F_SETFL, O_NONBLOCK);
  ::fcntl(file_, F_SETFD, FD_CLOEXEC);
}

terminal_process::~terminal_process() {
  hangs_up();
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void terminal_process::read_screen() {
  char text[4096];
  while (file_ >= 0) {
    const ssize_t got = ::read(file_, text, sizeof text);
    if (got <= 0) return;
    screen_.append(text, static_cast<std::size_t>(got));
  }
}

const std::string& terminal_process::screen() {
  read_screen();
  return screen_;
}

bool terminal_process::shows(const std::string& text) {
  return eventually([&] { return screen().find(text) != std::string::npos; });
}

void terminal_process::types(const std::string& keys) const {
  EXPECT_EQ(::write(file_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

void terminal_process::hangs_up() {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
}

int terminal_process::end() {
  int status = 0;
  const bool ended = eventually([&] {
    read_screen();  // a full terminal would block it
    return ::waitpid(pid_, &status, WNOHANG) == pid_;
  });
  if (!ended) {
    ADD_FAILURE() << "it did not end; the screen: " << screen_;
    return -1;
  }
  pid_ = -1;
  read_screen();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace holdfast::cli_test
