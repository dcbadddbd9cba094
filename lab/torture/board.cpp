#include "torture/board.hpp"

#include "runtime/descriptor.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <system_error>

namespace holdfast::torture {

// All zeros at first, as a new file is.
struct board::page {
  std::atomic<std::uint32_t> over;  // 0, then 1; a futex of all processes
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

}  // namespace holdfast::torture
