// A C++ process of python/torture/run: prints "ready", takes locks in turn and appends to the log that each protects, until SIGTERM. Prints how
// many records it has written, how many the logs refused because the lease had been lost, and what must not happen.
#include <holdfast/holdfast.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> stopped{false};

struct record {
  std::uint64_t number = 0;
  std::uint64_t fence = 0;
  std::uint64_t worker = 0;
};

// What a lock protects: records that are numbered by whoever holds the lock.
class log_file {
 public:
  explicit log_file(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("cannot open " + path);
  }

  [[nodiscard]] record last() const {
    record found;
    struct stat about {};
    ::fstat(fd_, &about);
    if (about.st_size > 0 &&
        ::pread(fd_, &found, sizeof found, about.st_size - static_cast<off_t>(sizeof found)) < 0) {
      throw std::runtime_error("cannot read the log");
    }
    return found;
  }
  // False: somebody wrote since `before`, or a greater fence was seen. One write: a kill leaves no half.
  bool append(const record& before, record next) const {
    ::flock(fd_, LOCK_EX);
    const record now = last();
    const bool good = now.number == before.number && now.fence < next.fence;
    if (good) {
      ::lseek(fd_, 0, SEEK_END);
      if (::write(fd_, &next, sizeof next) != sizeof next) throw std::runtime_error("cannot write");
    }
    ::flock(fd_, LOCK_UN);
    return good;
  }

 private:
  int fd_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string folder = argv[2];
  const int count = std::stoi(argv[3]);
  const std::chrono::milliseconds ttl(std::stoi(argv[4]));
  const std::uint64_t worker = std::stoull(argv[5]);
  ::signal(SIGTERM, [](int) { stopped = true; });
  std::cout << "ready" << std::endl;
  auto client = holdfast::client::open(argv[1]).value();
  std::vector<holdfast::mutex> locks;
  std::vector<log_file> logs;
  for (int each = 0; each < count; ++each) {
    locks.emplace_back(client, "torture/" + std::to_string(each),
                       holdfast::lock_options{.ttl = ttl, .fair = each % 2 == 1});
    logs.emplace_back(folder + "/" + std::to_string(each));
  }
  std::mt19937_64 random(worker);
  std::uint64_t written = 0;
  std::uint64_t stale = 0;
  std::uint64_t wrong = 0;
  while (!stopped) {
    const auto which = random() % locks.size();
    auto lease = locks[which].acquire({.wait = std::chrono::seconds(1)});
    if (!lease) continue;
    const record before = logs[which].last();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    if (logs[which].append(before, {before.number + 1, lease->fence().value(), worker})) {
      ++written;
    } else if (lease->valid()) {
      ++wrong;
    } else {
      ++stale;
    }
  }
  std::cout << written << ' ' << stale << ' ' << wrong << std::endl;
  return 0;
}
