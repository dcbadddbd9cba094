// One side of `make interop`: takes a lock that another library takes too, and increments a number
// in a file under it.
//
//   peer_interop URL KIND NAME ROUNDS FILE LOG
//
// KIND: mutex, fair, write, read, semaphore, election, latch. In each round the lock is taken, the number in FILE is read and
// written one greater, and the lock is given back; a reader only sees whether the number changes under it. LOG gets a
// line per round: when it began to wait, when it was granted, and when it gave back, in ns since 1970.
// latch: waits for the latch NAME as often, each time until the other side has opened it.
// ROUNDS 0: four threads take it for 1 ms each, without a pause, until the process is ended.
#include <holdfast/holdfast.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using taken = holdfast::result<holdfast::lease>;

std::int64_t now() { return std::chrono::system_clock::now().time_since_epoch() / 1ns; }

long number_in(const std::string& file) {
  long number = -1;
  std::ifstream(file) >> number;
  return number;
}

// What the lock guards. Slow enough for another process to come in between, if it could.
void change(const std::string& file) {
  const long before = number_in(file);
  std::this_thread::sleep_for(1ms);
  std::ofstream(file) << before + 1;
}

void look(const std::string& file) {
  const long before = number_in(file);
  std::this_thread::sleep_for(1ms);
  if (before < 0 || number_in(file) != before) throw std::runtime_error("changed under a reader");
}

std::function<taken()> taking(const holdfast::client& from, const std::string& kind,
                              const std::string& name) {
  const holdfast::acquire_options patiently{.wait = 120s};
  if (kind == "mutex") {
    return [=] { return holdfast::mutex(from, name).acquire(patiently); };
  }
  if (kind == "fair") {
    return [=] { return holdfast::mutex(from, name, {.fair = true}).acquire(patiently); };
  }
  if (kind == "write") {
    return [=] { return holdfast::shared_mutex(from, name).acquire(patiently); };
  }
  if (kind == "read") {
    return [=] { return holdfast::shared_mutex(from, name).acquire_shared(patiently); };
  }
  if (kind == "semaphore") {
    return [=] { return holdfast::semaphore(from, name, {.max = 1}).acquire(patiently); };
  }
  if (kind == "election") {
    return [=] { return holdfast::election(from, name, "holdfast").campaign(patiently); };
  }
  throw std::runtime_error("unknown kind " + kind);
}

// NAME-0, NAME-1, ...: those with an even number are opened by the other side, those with an odd one by us.
void open_in_turns(const holdfast::client& from, const std::string& name, int rounds,
                   std::ofstream& log) {
  for (int i = 0; i < rounds; ++i) {
    holdfast::latch turn(from, name + "-" + std::to_string(i));
    const std::int64_t began = now();
    const bool ours = i % 2 != 0;
    if (ours) std::this_thread::sleep_for(2ms);
    const bool done = ours ? turn.count_down().has_value() : turn.wait({.wait = 120s}).has_value();
    if (!done) throw std::runtime_error("the latch was not opened");
    log << (ours ? "open " : "wait ") << began << ' ' << now() << '\n';
  }
}

void hammer(const std::function<taken()>& take) {
  std::vector<std::jthread> all;
  for (int i = 0; i < 4; ++i) {
    all.emplace_back([&take] {
      while (true) {
        const taken lease = take();
        if (!lease) std::quick_exit(1);
        std::this_thread::sleep_for(1ms);
      }
    });
  }
}

void run(char** words) {
  const auto opened = holdfast::client::open(words[1]);
  if (!opened) throw std::runtime_error(opened.error().message());
  const std::string kind = words[2];
  const std::string file = words[5];
  const int rounds = std::stoi(words[4]);
  std::ofstream log(words[6]);
  std::puts("ready");
  std::fflush(stdout);
  if (kind == "latch") return open_in_turns(*opened, words[3], rounds, log);
  const auto take = taking(*opened, kind, words[3]);
  if (rounds == 0) return hammer(take);
  for (int i = 0; i < rounds; ++i) {
    const std::int64_t began = now();
    taken lease = take();
    if (!lease) throw std::runtime_error(lease.error().message());
    const std::int64_t granted = now();
    kind == "read" ? look(file) : change(file);
    log << began << ' ' << granted << ' ' << now() << '\n';
    if (const auto left = lease->release(); !left) throw std::runtime_error(left.error().message());
    std::this_thread::sleep_for(1ms + std::chrono::microseconds(i * 137 % 2000));
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count != 7) throw std::runtime_error("URL KIND NAME ROUNDS FILE LOG");
    run(words);
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "peer_interop: %s\n", problem.what());
    return 1;
  }
}
