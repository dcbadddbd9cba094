#include "cli/program.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace holdfast::cli_test {

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

process::process(pid_t pid, std::string out, std::string err)
    : pid_(pid), out_(std::move(out)), err_(std::move(err)) {}

process::process(process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      status_(other.status_) {}

process::~process() {
  if (pid_ > 0 && !status_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

// Never to -1: that is everybody.
void signal_one(pid_t pid, int number) {
  if (pid <= 1) throw std::runtime_error("no such process");
  ::kill(pid, number);
}

void process::send(int signal) const { signal_one(pid_, signal); }

bool process::running() {
  if (status_) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return !status_;
}

answer process::end() {
  if (!eventually([this] { return !running(); })) {
    ADD_FAILURE() << "it did not end; stderr: " << err();
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    status_ = status;
  }
  answer got;
  if (WIFEXITED(*status_)) got.code = WEXITSTATUS(*status_);
  if (WIFSIGNALED(*status_)) got.signal = WTERMSIG(*status_);
  got.out = out();
  got.err = err();
  return got;
}

std::string process::out() const { return read_file(out_); }
std::string process::err() const { return read_file(err_); }

bool process::says(const std::string& text) const {
  return eventually([&] { return out().find(text) != std::string::npos; });
}

bool process::complains(const std::string& text) const {
  return eventually([&] { return err().find(text) != std::string::npos; });
}

shell::shell(const folder& home) : home_(home) {
  environment = {{"HOME", home.path()},
                 {"TMPDIR", home.path()},
                 {"PATH", "/usr/local/bin:/usr/bin:/bin"},
                 {"LANG", "C.UTF-8"}};
  if (const char* made = std::getenv("HOLDFAST_TEST_DATA"); made != nullptr) {
    environment["HOLDFAST_TEST_DATA"] = made;
  }
}

namespace {

// The descriptors of `made` become 0 to 2; nothing else is passed on.
[[noreturn]] void become(const words& command, const std::map<std::string, std::string>& variables,
                         const std::string& where, const int (&files)[3]) {
  for (int i = 0; i < 3; ++i) ::dup2(files[i], i);
  ::close_range(3, ~0U, 0);
  if (::chdir(where.c_str()) != 0) ::_exit(99);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<std::string> texts;
  for (const auto& [name, value] : variables) texts.push_back(name + "=" + value);
  std::vector<char*> environment;
  for (std::string& text : texts) environment.push_back(text.data());
  environment.push_back(nullptr);
  ::execvpe(arguments[0], arguments.data(), environment.data());
  ::_exit(99);
}

}  // namespace

process shell::start(const words& command) {
  const std::string base = home_ / (".test-" + std::to_string(count_++));
  const std::string out = base + ".out";
  const std::string err = base + ".err";
  if (!input.empty()) write_file(base + ".in", input);
  const int mode = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
  const int files[3] = {
      ::open(input.empty() ? "/dev/null" : (base + ".in").c_str(), O_RDONLY | O_CLOEXEC),
      ::open(out.c_str(), mode, 0600), ::open(err.c_str(), mode, 0600)};
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) become(command, environment, started_in.empty() ? home_.path() : started_in, files);
  for (const int file : files) ::close(file);
  return {pid, out, err};
}

process shell::start_holdfast(const words& arguments) {
  words command{program_path()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return start(command);
}

answer shell::run(const words& command) { return start(command).end(); }

answer shell::holdfast(const words& arguments) { return start_holdfast(arguments).end(); }

std::string program_path() {
  const char* path = std::getenv("HOLDFAST_PROGRAM");
  if (path == nullptr) throw std::runtime_error("HOLDFAST_PROGRAM names the program under test");
  return path;
}

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  return std::getline(file, line) ? line[line.rfind(')') + 2] : 'X';
}

bool alive(pid_t pid) {
  const char state = state_of(pid);
  return state != 'Z' && state != 'X';
}

}  // namespace holdfast::cli_test
