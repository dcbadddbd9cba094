#include "support/redis_server.hpp"

#include "support/eventually.hpp"
#include "support/free_port.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace holdfast::test {

redis_server::redis_server(redis_options options) : options_(std::move(options)) {
  constexpr int attempts = 5;  // another process may take the port before the server does
  for (int left = attempts; left > 0; --left) {
    port_ = free_port();
    launch();
    if (eventually([this] { return answers() || !process_.alive(); }) && process_.alive()) return;
  }
  throw std::runtime_error("redis-server does not start: " + log());
}

void redis_server::launch() {
  const std::string port = std::to_string(port_);
  std::vector<std::string> words{"redis-server", "--port",    options_.tls ? "0" : port,
                                 "--bind",       "127.0.0.1", "-::1",
                                 "--unixsocket", socket(),    "--dir",
                                 folder_.path(), "--save",    "",
                                 "--daemonize",  "no"};
  if (options_.tls) words.insert(words.end(), {"--tls-port", port});
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  process_ = child_process(words, folder_.path() / "log");
}

std::string redis_server::log() const { return end_of_log(folder_.path() / "log"); }

bool redis_server::answers() const {
  try {
    return cli({"PING"}) == "PONG";
  } catch (const std::runtime_error&) {
    return false;
  }
}

void redis_server::kill() { process_.end(SIGKILL); }
void redis_server::stop() { process_.end(SIGTERM); }
void redis_server::pause() { process_.pause(); }
void redis_server::resume() { process_.signal(SIGCONT); }

void redis_server::start() {
  launch();
  if (!eventually([this] { return answers() || !process_.alive(); }) || !process_.alive()) {
    throw std::runtime_error("redis-server does not start again: " + log());
  }
}

std::string redis_server::cli(const std::vector<std::string>& words) const {
  std::vector<std::string> arguments{"redis-cli", "-s", socket(), "--no-auth-warning"};
  arguments.insert(arguments.end(), options_.admin.begin(), options_.admin.end());
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::string output = run_program(arguments);
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return output;
}

std::string redis_server::cli_if_answered(const std::vector<std::string>& words) const {
  try {
    return cli(words);
  } catch (const std::runtime_error&) {
    return {};
  }
}

void redis_server::tell(const std::vector<std::string>& words) const {
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& each : words) {
    request += "$" + std::to_string(each.size()) + "\r\n" + each + "\r\n";
  }
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  socket().copy(to.sun_path, sizeof to.sun_path - 1);
  const int line = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string answer;
  if (::connect(line, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
      ::send(line, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    char buffer[512];
    ssize_t size = 0;
    while (!answer.ends_with("\n") && (size = ::recv(line, buffer, sizeof buffer, 0)) > 0) {
      answer.append(buffer, static_cast<std::size_t>(size));
    }
  }
  ::close(line);
  if (answer.empty() || answer.front() == '-') {
    throw std::runtime_error("redis: " + words.front() + ": " + answer);
  }
}

long redis_server::info(const std::string& field) const {
  const std::string text = cli({"INFO", "all"});
  const auto at = text.find("\n" + field + ":");
  if (at == std::string::npos) throw std::runtime_error("INFO has no " + field);
  return std::stol(text.substr(at + field.size() + 2));
}

}  // namespace holdfast::test
