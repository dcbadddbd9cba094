// What happens if the operating system refuses something: no descriptor, no thread, no memory for a
// watch. The n-th call of a kind fails, for n = 1, 2, ... until no call fails.
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // these want to be loaded first

#include "contract/stores.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

// One URL per engine: the others consist of the same parts.
std::vector<store_setup> engines_to_starve() {
  const std::vector<std::string> wanted{"memory",     "sqlite",  "redis", "zookeeper",
                                        "postgresql", "mariadb", "etcd"};
  std::vector<store_setup> found;
  for (const store_setup& each : store_setups()) {
    if (std::ranges::find(wanted, each.name) != wanted.end()) found.push_back(each);
  }
  return found;
}

struct failing_call {
  const char* kind;
  int problem;
  const char* how = "once";
};

constexpr failing_call failing_calls[] = {
    {"socket", EMFILE},
    {"connect", EADDRNOTAVAIL},
    {"bind", ENOMEM},
    {"listen", ENOMEM},
    {"accept4", EMFILE},
    {"setsockopt", ENOMEM},
    {"send", ENOBUFS},
    {"recv", ENOMEM},
    {"epoll_create1", EMFILE},
    {"epoll_ctl", ENOSPC},
    {"eventfd", EMFILE},
    {"timerfd_create", EMFILE},
    {"pipe2", EMFILE},
    {"pthread_create", EAGAIN},
    {"open", EMFILE},
    {"fcntl", ENOLCK},
    {"descriptor", EMFILE, "on"},
    {"pthread_create", EAGAIN, "on"},
    {"epoll_ctl", ENOMEM, "on"},
};

// lock_once, whose `number`th call of a kind fails.
class starved_run {
 public:
  starved_run(const std::string& url, const failing_call& what, int number)
      : run_({"env", "LD_PRELOAD=" + beside("failing_calls.so"),
              "HOLDFAST_FAULT=" + std::string(what.kind) + ":" + std::to_string(number) + ":" +
                  std::to_string(what.problem) + ":" + what.how,
              beside("lock_once"), url,
              std::string("x/") + what.kind + "/" + what.how + std::to_string(number)},
             log()) {}

  // How it ended; none: it hangs.
  std::optional<int> status() {
    std::optional<int> found;
    if (!eventually([&] { return (found = run_.ended()).has_value(); }, 60s)) return std::nullopt;
    return found;
  }
  std::string said() const {
    std::ifstream file(log());
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  static std::string beside(const char* file) {
    static const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    return (folder / file).string();
  }
  std::filesystem::path log() const { return folder_.path() / "log"; }

  temporary_folder folder_;
  child_process run_;
};

class failing_calls_of : public testing::TestWithParam<store_setup> {};

INSTANTIATE_TEST_SUITE_P(on, failing_calls_of, testing::ValuesIn(engines_to_starve()),
                         [](const auto& setup) { return setup.param.name; });

TEST_P(failing_calls_of, the_system_are_answered_by_an_error_value) {
  // Broken: a program that runs out of descriptors or threads crashes, aborts, hangs or gets an
  // exception.
  constexpr int went_well = 0;
  constexpr int error_value = 1;
  constexpr int without_fault = 10;
  constexpr int at_most = 200;  // of one kind; more than anything makes
  // Most of them wait for an engine that they cannot reach. A delay affects only its own engine.
  constexpr int at_once = 4;
  std::vector<fresh_engine> engines;
  for (int i = 0; i < at_once; ++i) engines.push_back(GetParam().make());
  for (const failing_call& what : failing_calls) {
    bool all_met = false;
    int number = 1;
    while (!all_met) {
      ASSERT_LT(number, at_most) << what.kind;
      std::deque<starved_run> runs;
      for (const fresh_engine& engine : engines) {
        runs.emplace_back(engine.url, what, number + static_cast<int>(runs.size()));
      }
      for (starved_run& run : runs) {
        const std::optional<int> status = run.status();
        ASSERT_TRUE(status) << what.kind << " " << number << " " << what.how << " hangs\n"
                            << run.said();
        ASSERT_TRUE(status == went_well || status == error_value || status == without_fault)
            << what.kind << " " << number << " " << what.how << " ended with " << *status << "\n"
            << run.said();
        all_met = status == without_fault;
        if (all_met) break;
        ++number;
      }
    }
    RecordProperty(std::string(what.kind) + "_" + what.how, number - 1);
  }
}

}  // namespace
}  // namespace holdfast::test

#endif
