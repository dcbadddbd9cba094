#include "cli/demo/stock_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

namespace holdfast::cli {

namespace {

// A card is checked, a price looked up. Long enough that buyers without a lock meet.
constexpr std::chrono::milliseconds thinking{2};

constexpr int width = 12;

class opened {
 public:
  opened(const std::string& path, int flags)
      : file_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (file_ < 0) throw std::system_error(errno, std::system_category(), path);
  }
  opened(const opened&) = delete;
  opened& operator=(const opened&) = delete;
  ~opened() { ::close(file_); }
  [[nodiscard]] int get() const noexcept { return file_; }

 private:
  int file_;
};

}  // namespace

stock_file::stock_file(const std::string& folder)
    : stock_(folder + "/stock"), orders_(folder + "/orders") {}

void stock_file::fill(std::int64_t items) const {
  std::array<char, 32> text{};
  const int length =
      std::snprintf(text.data(), text.size(), "%*lld\n", width, static_cast<long long>(items));
  const opened file(stock_, O_WRONLY | O_CREAT);
  if (::pwrite(file.get(), text.data(), static_cast<std::size_t>(length), 0) != length) {
    throw std::system_error(errno, std::system_category(), stock_);
  }
}

std::int64_t stock_file::left() const {
  std::array<char, 32> text{};
  const opened file(stock_, O_RDONLY);
  if (::pread(file.get(), text.data(), width, 0) != width) {
    throw std::system_error(errno, std::system_category(), stock_);
  }
  const char* first =
      std::find_if(text.data(), text.data() + width, [](char c) { return c != ' '; });
  std::int64_t items = 0;
  std::from_chars(first, text.data() + width, items);
  return items;
}

void stock_file::think() noexcept { std::this_thread::sleep_for(thinking); }

void stock_file::order(std::uint32_t buyer, std::int64_t item) const {
  const std::string line =
      "buyer " + std::to_string(buyer) + " bought item " + std::to_string(item) + "\n";
  const opened file(orders_, O_WRONLY | O_CREAT | O_APPEND);
  if (::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::system_error(errno, std::system_category(), orders_);
  }
}

std::int64_t stock_file::orders() const {
  std::ifstream file(orders_);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

}  // namespace holdfast::cli
