#include "torture/recorder.hpp"

#include "runtime/descriptor.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <type_traits>

namespace holdfast::torture {

namespace {

struct cell {
  std::atomic<bool> written{false};
  sim::record line;
};

static_assert(std::is_trivially_copyable_v<sim::record>);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace

// A new file reads as zeros, and that is what an empty page looks like: nothing is constructed in it.
struct recorder::page {
  std::atomic<std::uint64_t> next;
  std::array<hold_slot, recorder::slots> slots;
  std::array<cell, recorder::most_records> cells;
};

recorder::recorder(const std::filesystem::path& file) {
  const runtime::descriptor opened =
      runtime::checked(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), file.c_str());
  // Sparse: what is not written takes no space.
  if (::ftruncate(opened.get(), sizeof(page)) != 0) {
    throw std::system_error(errno, std::system_category(), file);
  }
  void* memory = ::mmap(nullptr, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, opened.get(), 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), file);
  page_ = static_cast<page*>(memory);
}

recorder::~recorder() { ::munmap(page_, sizeof(page)); }

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
