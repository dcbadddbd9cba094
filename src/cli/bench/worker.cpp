#include "cli/bench/bench_message.hpp"
#include "cli/bench/workload.hpp"
#include "cli/commands.hpp"
#include "cli/connection.hpp"
#include "cli/descriptor.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <exception>
#include <thread>

namespace holdfast::cli {

namespace {

// Closes the client when the command is gone, so that nobody waits on and nothing stays held.
class farewell {
 public:
  explicit farewell(client& client)
      : quit_(::eventfd(0, EFD_CLOEXEC)), watcher_([this, &client] { watch(client); }) {}
  farewell(const farewell&) = delete;
  farewell& operator=(const farewell&) = delete;
  ~farewell() { ::eventfd_write(quit_.get(), 1); }

  // False: the command is gone.
  [[nodiscard]] bool wait_until(time_point when, const workload& work) {
    constexpr duration step = std::chrono::milliseconds(100);
    std::array<pollfd, 2> files{{{alarm_.get(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
    for (time_point now = clock::now(); now < when && !gone_ && !work.failed();
         now = clock::now()) {
      alarm_.set(std::min(when, now + step));
      ::poll(files.data(), files.size(), -1);
    }
    return !gone_;
  }

 private:
  void watch(client& client) {
    std::array<pollfd, 2> files{{{STDIN_FILENO, POLLIN, 0}, {quit_.get(), POLLIN, 0}}};
    while (::poll(files.data(), files.size(), -1) < 0) {
    }
    if (files[0].revents == 0) return;
    gone_ = true;
    client.close();
  }

  descriptor quit_;
  alarm_clock alarm_;
  std::atomic<bool> gone_{false};
  std::jthread watcher_;
};

rusage use_of_process() noexcept {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  return use;
}

duration processor_of(const rusage& use) noexcept {
  const auto span = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return span(use.ru_utime) + span(use.ru_stime);
}

void answer(const worker_message& message) { write_all(STDOUT_FILENO, to_line(message)); }

int give_up(const complaint& why) {
  answer({.trouble = why});
  return why.code;
}

outcome<client> connect_by(const worker_plan& plan) {
  context context;
  context.global.url = plan.url;
  context.global.password_file = plan.password_file;
  context.global.space = plan.space;
  context.taken.password = plan.password;
  const auto to = find_address(context, memory_is::fine);
  if (!to) return tl::unexpected(to.error());
  return connect(context, *to, {}, {}, hand_over::within_process);
}

// Between the first and the last counted moment.
int measure(workload& work, farewell& end, duration length, time_point start) {
  work.start(start);
  if (!end.wait_until(start + warm_up(length), work)) return exit_code::engine;
  const auto traffic_before = count_traffic();
  const rusage use_before = use_of_process();
  if (!end.wait_until(start + length, work)) return exit_code::engine;
  const rusage use_after = use_of_process();
  const auto traffic_after = count_traffic();
  auto result = work.take();
  if (!result)
    return give_up({exit_code::engine, "the measurement failed (" + work.trouble() + ")"});
  constexpr std::uint64_t kilobyte = 1024;
  result->processor = processor_of(use_after) - processor_of(use_before);
  result->memory = static_cast<std::uint64_t>(use_after.ru_maxrss) * kilobyte;
  result->traffic = difference(traffic_before, traffic_after);
  answer({.result = std::move(result)});
  return exit_code::ok;
}

}  // namespace

int bench_worker() {
  // The command hears them too, and closes the socket.
  for (const int number : {SIGINT, SIGHUP, SIGQUIT}) std::signal(number, SIG_IGN);
  line_reader orders(STDIN_FILENO);
  const auto first = orders.wait();
  const auto plan = first ? read_plan(*first) : std::nullopt;
  if (!plan) return tell(usage("is started by holdfast bench", "bench").value());
  try {
    const relay track(descriptor(relay_file), locks_of(plan->how));
    auto client = connect_by(*plan);
    if (!client) return give_up(client.error());
    int code = exit_code::engine;
    {
      workload work(*plan, *client, track);
      answer({.ready = true});
      const auto second = orders.wait();
      const auto start = second ? read_start(*second) : std::nullopt;
      if (!start) return exit_code::engine;
      farewell end(*client);
      code = measure(work, end, plan->how.length, *start);
      if (code != exit_code::ok) client->close();
    }
    client->close();
    return code;
  } catch (const std::exception& problem) {
    return give_up(
        {exit_code::engine, std::string("out of resources (system, ") + problem.what() + ")"});
  }
}

}  // namespace holdfast::cli
