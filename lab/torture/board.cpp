#include "torture/board.hpp"

#include "runtime/descriptor.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace holdfast::torture {

// All zeros at first, as a new file is.
struct board::page {
  std::atomic<bool> over;
  std::array<std::atomic<std::uint64_t>, board::most_resources> greatest;
};

board::board(const std::filesystem::path& file) {
  const runtime::descriptor opened =
      runtime::checked(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), file.c_str());
  if (::ftruncate(opened.get(), sizeof(page)) != 0) {
    throw std::system_error(errno, std::system_category(), file);
  }
  void* memory = ::mmap(nullptr, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, opened.get(), 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), file);
  page_ = static_cast<page*>(memory);
}

board::~board() { ::munmap(page_, sizeof(page)); }

void board::finish() noexcept { page_->over.store(true); }
bool board::over() const noexcept { return page_->over.load(); }

bool board::write(std::size_t resource, std::uint64_t fence) noexcept {
  auto& greatest = page_->greatest[resource % most_resources];
  std::uint64_t seen = greatest.load();
  do {
    if (fence < seen) return false;
  } while (!greatest.compare_exchange_weak(seen, fence));
  return true;
}

}  // namespace holdfast::torture
