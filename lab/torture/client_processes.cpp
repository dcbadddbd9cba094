#include "torture/client_processes.hpp"

#include "torture/shared_files.hpp"
#include "torture/wall_clock.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

namespace holdfast::torture {

namespace {

constexpr duration look_interval = std::chrono::milliseconds(100);

}  // namespace

client_processes::client_processes(std::filesystem::path folder, std::string program,
                                   assignment first,
                                   std::function<std::string(std::uint32_t)> url_of)
    : folder_(std::move(folder)),
      program_(std::move(program)),
      assignment_(std::move(first)),
      url_of_(std::move(url_of)),
      board_(board_file(folder_)) {
  for (std::uint32_t i = 0; i < assignment_.wanted.clients; ++i) start(i);
}

client_processes::~client_processes() = default;

void client_processes::start(std::uint32_t client) {
  auto made = std::make_unique<member>();
  made->client = client;
  made->process = static_cast<std::int32_t>(members_.size());
  assignment_.process = made->process;
  assignment_.client = client;
  assignment_.url = url_of_(client);
  save(assignment_, folder_);
  made->history = std::make_unique<recorder>(record_file(folder_, made->process));
  note(sim::what::started, *made, client);
  made->running = test::child_process(
      with_clock(clock_file(*made),
                 {program_, "torture", "client", folder_.string(), std::to_string(made->process)}),
      folder_ / "log");
  made->life = runtime::checked(static_cast<int>(::syscall(SYS_pidfd_open, made->running.id(), 0)),
                                "pidfd_open");
  members_.push_back(std::move(made));
  if (forbidden_) forbid_writing(true);
}

client_processes::member* client_processes::find(std::uint32_t client) {
  for (auto each = members_.rbegin(); each != members_.rend(); ++each) {
    if ((*each)->client == client) return (*each)->over ? nullptr : each->get();
  }
  return nullptr;
}

std::int32_t client_processes::process_of(std::uint32_t client) {
  const member* whom = find(client);
  return whom == nullptr ? sim::nobody : whom->process;
}

void client_processes::note(sim::what kind, const member& whom, std::int64_t number) {
  sim::record line;
  line.at = now();
  line.kind = kind;
  line.process = whom.process;
  line.number = number;
  notes_.push_back(line);
}

void client_processes::retire(member& whom) {
  whom.over = true;
  whom.life.close();
}

void client_processes::pause(std::uint32_t client) {
  member* whom = find(client);
  if (whom == nullptr || whom->paused) return;
  note(sim::what::paused, *whom);
  whom->running.signal(SIGSTOP);
  whom->paused = true;
}

void client_processes::resume(std::uint32_t client) {
  member* whom = find(client);
  if (whom == nullptr || !whom->paused) return;
  if (whom->stopped_itself) strike_at_call(clock_file(*whom), 0, 0);
  whom->running.signal(SIGCONT);
  whom->paused = false;
  note(sim::what::resumed, *whom);
}

void client_processes::stop_at_call(std::uint32_t client, std::int64_t calls) {
  member* whom = find(client);
  if (whom == nullptr || whom->paused) return;
  note(sim::what::paused, *whom);
  whom->paused = whom->stopped_itself = true;
  strike_at_call(clock_file(*whom), calls, SIGSTOP);
}

void client_processes::kill_at_call(std::uint32_t client, std::int64_t calls) {
  member* whom = find(client);
  if (whom == nullptr) return;
  whom->condemned = true;
  strike_at_call(clock_file(*whom), calls, SIGKILL);
}

void client_processes::replace(std::uint32_t client) {
  if (member* whom = find(client)) replace(*whom);
}

void client_processes::replace(member& whom) {
  const std::uint32_t client = whom.client;
  note(sim::what::killed, whom);
  whom.running.end(SIGKILL);
  retire(whom);
  killed_ = true;
  // If it died by itself, then when it says so.
  const auto struck = whom.condemned ? struck_at(clock_file(whom)) : std::nullopt;
  if (struck) notes_.back().at = std::min(notes_.back().at, *struck - assignment_.start());
  const sim::moment at = notes_.back().at;
  // The validity of its hold ends here at the latest; it cannot record that any more.
  for (std::size_t i = 0; i < recorder::slots; ++i) {
    const hold_slot& slot = whom.history->slot(i);
    const std::int32_t hold = slot.hold.load();
    if (hold == 0) continue;
    sim::record line;
    line.at = std::min(at, sim::moment(slot.until.load()));
    line.kind = sim::what::validity_ended;
    line.process = whom.process;
    line.hold = line.acquisition = hold;
    notes_.push_back(line);
  }
  start(client);
}

std::filesystem::path client_processes::clock_file(const member& whom) const {
  return folder_ / ("clock-" + std::to_string(whom.process));
}

void client_processes::set_clock(std::uint32_t client, duration shift) {
  if (const member* whom = find(client)) torture::set_clock(clock_file(*whom), shift);
}

void client_processes::forbid_writing(bool forbidden) {
  forbidden_ = forbidden;
  for (const auto& each : members_) {
    if (each->over) continue;
    rlimit limit{};
    if (::prlimit(each->running.id(), RLIMIT_FSIZE, nullptr, &limit) != 0) continue;
    limit.rlim_cur = forbidden ? 1 : limit.rlim_max;
    ::prlimit(each->running.id(), RLIMIT_FSIZE, &limit, nullptr);
  }
}

void client_processes::look_after() {
  std::vector<member*> dead;
  for (const auto& each : members_) {
    if (each->over) continue;
    // It may have stopped itself while it was being resumed.
    if (each->stopped_itself && !each->paused) each->running.signal(SIGCONT);
    const auto end = each->running.ended();
    if (!end) continue;
    if (each->condemned && *end == signalled + SIGKILL) {
      dead.push_back(each.get());
      continue;
    }
    retire(*each);
    note(sim::what::ended, *each, *end);
  }
  for (member* each : dead) replace(*each);
}

void client_processes::watch(duration limit) const {
  std::vector<pollfd> living;
  for (const auto& each : members_) {
    if (!each->over) living.push_back({each->life.get(), POLLIN, 0});
  }
  const duration span = std::max(limit, duration{});
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(span);
  const timespec longest{whole.count(), (span - whole).count()};
  ::ppoll(living.data(), living.size(), &longest, nullptr);
}

void client_processes::finish(duration limit) {
  for (const auto& each : members_) {
    if (!each->over) resume(each->client);
  }
  board_.finish();
  const time_point end = clock::now() + limit;
  const auto all_gone = [&] {
    return std::all_of(members_.begin(), members_.end(),
                       [](const auto& each) { return each->over; });
  };
  for (look_after(); !all_gone() && clock::now() < end; look_after()) {
    watch(std::min<duration>(end - clock::now(), look_interval));
  }
  for (const auto& each : members_) {
    if (each->over) continue;
    each->running.end(SIGKILL);
    retire(*each);
    note(sim::what::ended, *each, never_ended);
  }
}

std::size_t client_processes::grants() {
  for (const auto& each : members_) {
    grants_ += each->history->count(sim::what::acquire_granted, each->counted);
  }
  return grants_;
}

std::vector<sim::record> client_processes::gather() {
  std::vector<sim::record> all = notes_;
  for (const auto& each : members_) {
    const auto lines = each->history->read();
    all.insert(all.end(), lines.begin(), lines.end());
  }
  std::stable_sort(all.begin(), all.end(), [](const sim::record& left, const sim::record& right) {
    return left.at < right.at;
  });
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> numbers;
  for (sim::record& line : all) {
    if (line.hold == sim::nobody) continue;
    const auto next = static_cast<std::int32_t>(numbers.size()) + 1;
    line.hold = numbers.try_emplace({line.process, line.hold}, next).first->second;
    line.acquisition = line.hold;
  }
  return all;
}

std::string client_processes::complaints() const {
  constexpr std::size_t most = 400;
  std::ifstream file(folder_ / "log");
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace holdfast::torture
