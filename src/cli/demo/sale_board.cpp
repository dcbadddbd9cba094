#include "cli/demo/sale_board.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

namespace holdfast::cli {

static_assert(std::atomic<buyer_end>::is_always_lock_free);

struct sale_board::shared {
  std::atomic<bool> taken{false};
  std::atomic<bool> written{false};
  std::array<char, 512> trouble{};
};

namespace {

constexpr std::size_t header = 1024;

}  // namespace

sale_board::sale_board(std::size_t buyers)
    : buyers_(buyers), bytes_(header + buyers * sizeof(buyer_score)) {
  static_assert(sizeof(shared) <= header);
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap");
  shared_ = ::new (memory) shared;
  for (std::size_t i = 0; i < buyers_; ++i) ::new (&scores()[i]) buyer_score;
}

sale_board::~sale_board() { ::munmap(shared_, bytes_); }

std::span<buyer_score> sale_board::scores() const noexcept {
  auto* first = reinterpret_cast<std::byte*>(shared_) + header;
  return {reinterpret_cast<buyer_score*>(first), buyers_};
}

std::size_t sale_board::finished() const noexcept {
  const auto all = scores();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const auto& one) {
    return one.end.load(std::memory_order_acquire) != buyer_end::none;
  }));
}

void sale_board::complain(std::string_view text) const noexcept {
  if (shared_->taken.exchange(true)) return;
  const std::size_t length = std::min(text.size(), shared_->trouble.size() - 1);
  std::memcpy(shared_->trouble.data(), text.data(), length);
  shared_->written.store(true, std::memory_order_release);
}

std::string sale_board::trouble() const {
  if (!shared_->written.load(std::memory_order_acquire)) return {};
  return shared_->trouble.data();
}

}  // namespace holdfast::cli
