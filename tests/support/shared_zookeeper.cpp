// The server that test programs share. The first that finds none starts a keeper: a process of its own that
// runs the server while somebody holds the "users" file, and ends it some seconds after the last.
#include "support/eventually.hpp"
#include "support/zookeeper_server.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace holdfast::test {

namespace {

constexpr int idle_seconds = 10;  // the gap between two tests of a run is shorter

// A lock on a file, held until destroyed.
class file_lock {
 public:
  file_lock(const std::filesystem::path& path, int how)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ < 0) throw std::runtime_error("cannot open " + path.string());
    while (::flock(file_, how) != 0) {
      if (errno == EINTR) continue;
      held_ = false;
      return;
    }
  }
  ~file_lock() { ::close(file_); }
  file_lock(const file_lock&) = delete;
  file_lock& operator=(const file_lock&) = delete;

  [[nodiscard]] bool held() const noexcept { return held_; }

 private:
  int file_;
  bool held_ = true;
};

std::filesystem::path shared_folder() {
  const auto path =
      std::filesystem::temp_directory_path() / ("holdfast-zookeeper-" + std::to_string(::getuid()));
  std::filesystem::create_directories(path);
  return path;
}

// The keeper's life.
[[noreturn]] void keep(const std::filesystem::path& folder) {
  ::setsid();
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, each);
  ::signal(SIGPIPE, SIG_IGN);
  for (int each = 3; each < 1024; ++each) ::close(each);  // so that we keep no pipe of ctest open
  int status = 0;
  try {
    const file_lock alive(folder / "keeper", LOCK_EX);
    const auto server = start_zookeeper();
    std::ofstream(folder / "hosts") << server->host() << std::flush;
    for (int idle = 0; idle < idle_seconds && server->alive();) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      const file_lock users(folder / "users", LOCK_EX | LOCK_NB);
      idle = users.held() ? idle + 1 : 0;
      if (idle == idle_seconds) std::filesystem::remove(folder / "hosts");
    }
    std::filesystem::remove(folder / "hosts");
  } catch (...) {
    status = 1;
  }
  ::_exit(status);
}

bool keeper_lives(const std::filesystem::path& folder) {
  return !file_lock(folder / "keeper", LOCK_EX | LOCK_NB).held();
}

void start_keeper(const std::filesystem::path& folder) {
  std::filesystem::remove(folder / "hosts");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    if (::fork() == 0) keep(folder);  // nobody's child
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  static_cast<void>(eventually([&] { return keeper_lives(folder); }));
}

std::string hosts_in(const std::filesystem::path& folder) {
  std::string hosts;
  std::ifstream(folder / "hosts") >> hosts;
  return hosts;
}

}  // namespace

shared_zookeeper use_shared_zookeeper() {
  const auto folder = shared_folder();
  const file_lock turn(folder / "start", LOCK_EX);
  auto user = std::make_shared<file_lock>(folder / "users", LOCK_SH);
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (!keeper_lives(folder)) start_keeper(folder);
    static_cast<void>(eventually([&] { return !hosts_in(folder).empty() || !keeper_lives(folder); },
                                 patience * 2));
    std::string hosts = hosts_in(folder);
    if (!hosts.empty() && keeper_lives(folder)) return {std::move(hosts), user};
  }
  throw std::runtime_error("no shared zookeeper");
}

}  // namespace holdfast::test
