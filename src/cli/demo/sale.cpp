#include "cli/demo/sale.hpp"

#include "cli/demo/sale_floor.hpp"
#include "cli/demo/stock_file.hpp"
#include "cli/descriptor.hpp"
#include "cli/log.hpp"
#include "cli/printer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

struct pipe_ends {
  descriptor reading;
  descriptor writing;
};

pipe_ends make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::system_category(), "pipe");
  }
  return {descriptor(ends[0]), descriptor(ends[1])};
}

// Blocks until all writers have closed their ends.
void wait_for_end(const descriptor& reading) {
  char byte = 0;
  while (::read(reading.get(), &byte, 1) > 0 || errno == EINTR) errno = 0;
}

std::string fresh_name(const std::string& lock) {
  std::random_device random;
  return "demo/flash-sale/" + lock + "/" + std::to_string(random());
}

// The processes of one sale. `ready` ends when each has closed its end; closing `go` opens the sale.
class sale_processes {
 public:
  sale_processes(const context& context, const address& to, const sale_arguments& how,
                 const std::string& lock, const std::string& folder, const sale_board& board,
                 const signal_inbox& inbox)
      : ready_(make_pipe()), go_(make_pipe()) {
    floor_plan plan{.lock = lock, .name = fresh_name(lock)};
    for (std::uint32_t i = 0; i < how.processes; ++i) {
      plan.buyers = how.buyers / how.processes + (i < how.buyers % how.processes ? 1 : 0);
      const pid_t parent = ::getpid();
      const pid_t pid = ::fork();
      if (pid < 0) {
        end_early();
        throw std::system_error(errno, std::system_category(), "fork");
      }
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        inbox.restore();
        work(context, to, plan, folder, board);
      }
      pids_.push_back(pid);
      plan.first += plan.buyers;
    }
  }
  sale_processes(const sale_processes&) = delete;
  sale_processes& operator=(const sale_processes&) = delete;
  ~sale_processes() { end_early(); }

  void open() {
    ready_.writing.close();
    wait_for_end(ready_.reading);
    go_.reading.close();
    go_.writing.close();
  }

  [[nodiscard]] bool all_gone() {
    std::erase_if(pids_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) == pid; });
    return pids_.empty();
  }

  void end_early() noexcept {
    for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
    pids_.clear();
  }

 private:
  [[noreturn]] void work(const context& context, const address& to, const floor_plan& plan,
                         const std::string& folder, const sale_board& board) {
    try {
      ready_.reading.close();
      go_.writing.close();
      std::optional<client> opened;
      if (plan.lock != "none") {
        auto connected = connect(context, to, {}, {}, hand_over::within_process);
        if (!connected) {
          board.complain(connected.error().text);
          ::_exit(1);
        }
        opened = std::move(*connected);
      }
      hold_sale(plan, opened, stock_file(folder), board, [this] {
        ready_.writing.close();
        wait_for_end(go_.reading);
      });
      if (opened) opened->close();
    } catch (const std::exception& problem) {
      board.complain(problem.what());
    }
    ::_exit(0);
  }

  pipe_ends ready_;
  pipe_ends go_;
  std::vector<pid_t> pids_;
};

void count(const sale_board& board, time_point opened, sale_result& into) {
  std::vector<duration> waits;
  time_point last = opened;
  for (const buyer_score& score : board.scores()) {
    last = std::max(last, score.at);
    switch (score.end.load(std::memory_order_acquire)) {
      case buyer_end::bought:
        break;
      case buyer_end::sold_out:
        ++into.sold_out;
        break;
      case buyer_end::too_busy:
        ++into.too_busy;
        break;
      case buyer_end::none:
      case buyer_end::failed:
        ++into.failed;
        break;
    }
    if (score.granted) waits.push_back(score.waited);
  }
  std::sort(waits.begin(), waits.end());
  if (!waits.empty()) {
    into.p50 = waits[waits.size() / 2];
    into.p99 = waits[waits.size() * 99 / 100];
  }
  const double seconds = std::chrono::duration<double>(last - opened).count();
  into.per_second = seconds > 0 ? static_cast<double>(into.orders) / seconds : 0;
}

// Until all processes are gone, or a signal.
int wait_while_showing(sale_processes& processes, const sale_board& board, signal_inbox& inbox,
                       const std::string& lock, std::size_t buyers) {
  constexpr duration step = std::chrono::milliseconds(100);
  const progress bar(lock, buyers, "buyers");
  alarm_clock alarm;
  while (!processes.all_gone()) {
    bar.show(board.finished());
    alarm.set(clock::now() + step);
    std::array<pollfd, 2> files{{{inbox.get(), POLLIN, 0}, {alarm.get(), POLLIN, 0}}};
    ::poll(files.data(), files.size(), -1);
    while (const auto message = inbox.take()) {
      if (signal_inbox::is_forwarded(message->number) && !inbox.was_ignored(message->number)) {
        return message->number;
      }
      if (message->number == SIGTSTP) ::kill(::getpid(), SIGSTOP);
    }
  }
  return 0;
}

}  // namespace

bool sale_result::exact(const sale_arguments& how) const {
  return oversold() == 0 && left >= 0 && failed == 0 &&
         orders + sold_out + too_busy == std::int64_t{how.buyers};
}

sale_result hold_one_sale(const context& context, const address& to, const sale_arguments& how,
                          const std::string& lock, const std::string& folder, signal_inbox& inbox) {
  const stock_file stock(folder);
  stock.fill(how.stock);
  const sale_board board(how.buyers);
  sale_processes processes(context, to, how, lock, folder, board, inbox);
  processes.open();
  const time_point opened = clock::now();
  sale_result result;
  result.lock = lock;
  result.stock = how.stock;
  result.ended_by = wait_while_showing(processes, board, inbox, lock, how.buyers);
  processes.end_early();
  result.left = stock.left();
  result.orders = stock.orders();
  result.trouble = board.trouble();
  count(board, opened, result);
  return result;
}

}  // namespace holdfast::cli
