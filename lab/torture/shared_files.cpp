#include "torture/shared_files.hpp"

#include "runtime/descriptor.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <type_traits>

namespace holdfast::torture {

std::filesystem::path assignment_file(const std::filesystem::path& folder, std::int32_t process) {
  return folder / ("assignment-" + std::to_string(process));
}
std::filesystem::path record_file(const std::filesystem::path& folder, std::int32_t process) {
  return folder / ("records-" + std::to_string(process));
}
std::filesystem::path board_file(const std::filesystem::path& folder) { return folder / "board"; }

void save(const assignment& one, const std::filesystem::path& folder) {
  const auto path = assignment_file(folder, one.process);
  const int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (made >= 0) ::close(made);
  std::ofstream file(path);
  file << nlohmann::json{{"url", one.url},         {"password", one.password},
                         {"space", one.space},     {"prefix", one.prefix},
                         {"process", one.process}, {"client", one.client},
                         {"started", one.started}, {"plan", to_json(one.wanted)}}
              .dump();
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

assignment load_assignment(const std::filesystem::path& folder, std::int32_t process) {
  std::ifstream file(assignment_file(folder, process));
  const auto read = nlohmann::json::parse(file, nullptr, false);
  if (read.is_discarded()) throw std::runtime_error("no assignment of this torture");
  assignment one;
  read.at("url").get_to(one.url);
  read.at("password").get_to(one.password);
  read.at("space").get_to(one.space);
  read.at("prefix").get_to(one.prefix);
  read.at("process").get_to(one.process);
  read.at("client").get_to(one.client);
  read.at("started").get_to(one.started);
  one.wanted = plan_from(read.at("plan"));
  return one;
}

template <class Page>
mapped_file<Page>::mapped_file(const std::filesystem::path& file) {
  const runtime::descriptor opened =
      runtime::checked(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), file.c_str());
  if (::ftruncate(opened.get(), sizeof(Page)) != 0) {
    throw std::system_error(errno, std::system_category(), file);
  }
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, opened.get(), 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), file);
  page_ = static_cast<Page*>(memory);
}

template <class Page>
mapped_file<Page>::~mapped_file() {
  ::munmap(page_, sizeof(Page));
}

// All zeros at first, as a new file is.
struct board::page {
  std::atomic<std::uint32_t> over;  // 0, then 1; a futex of all processes
  std::array<std::atomic<std::uint64_t>, board::most_resources> greatest;
};

board::board(const std::filesystem::path& file) : page_(file) {}
board::~board() = default;

void board::finish() noexcept {
  page_->over.store(1);
  ::syscall(SYS_futex, &page_->over, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
bool board::over() const noexcept { return page_->over.load() != 0; }

bool board::wait_over(duration limit) const noexcept {
  const time_point end = clock::now() + limit;
  for (duration left = limit; !over() && left > duration{}; left = end - clock::now()) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec span{whole.count(), (left - whole).count()};
    ::syscall(SYS_futex, &page_->over, FUTEX_WAIT, 0, &span, nullptr, 0);
  }
  return over();
}

bool board::write(std::size_t resource, std::uint64_t fence) noexcept {
  auto& greatest = page_->greatest[resource % most_resources];
  std::uint64_t seen = greatest.load();
  do {
    if (fence < seen) return false;
  } while (!greatest.compare_exchange_weak(seen, fence));
  return true;
}

namespace {

struct cell {
  std::atomic<bool> written{false};
  sim::record line;
};

static_assert(std::is_trivially_copyable_v<sim::record>);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace

struct recorder::page {
  std::atomic<std::uint64_t> next;
  std::array<hold_slot, recorder::slots> slots;
  std::array<cell, recorder::most_records> cells;
};

recorder::recorder(const std::filesystem::path& file) : page_(file) {}
recorder::~recorder() = default;

bool recorder::room() const noexcept {
  constexpr std::size_t reserve = 1024;
  return page_->next.load() + reserve < most_records;
}

bool recorder::add(const sim::record& line) noexcept {
  const std::uint64_t at = page_->next.fetch_add(1);
  if (at >= most_records) return false;
  cell& into = page_->cells[at];
  into.line = line;
  into.written.store(true, std::memory_order_release);
  return true;
}

hold_slot& recorder::slot(std::size_t which) noexcept { return page_->slots[which]; }

std::vector<sim::record> recorder::read() const {
  const std::uint64_t end = std::min<std::uint64_t>(page_->next.load(), most_records);
  std::vector<sim::record> all;
  all.reserve(end);
  for (std::uint64_t i = 0; i < end; ++i) {
    const cell& from = page_->cells[i];
    // Not written: the process was killed in the middle of it.
    if (from.written.load(std::memory_order_acquire)) all.push_back(from.line);
  }
  return all;
}

std::size_t recorder::count(sim::what kind, std::size_t& from) const noexcept {
  const std::uint64_t end = std::min<std::uint64_t>(page_->next.load(), most_records);
  std::size_t found = 0;
  for (; from < end; ++from) {
    const cell& one = page_->cells[from];
    if (!one.written.load(std::memory_order_acquire)) break;
    if (one.line.kind == kind) ++found;
  }
  return found;
}

}  // namespace holdfast::torture
