#include "cli/bench/relay.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast::cli {

namespace {

descriptor make_memory(std::size_t bytes) {
  descriptor made(::memfd_create("holdfast-bench", MFD_CLOEXEC));
  if (!made || ::ftruncate(made.get(), static_cast<off_t>(bytes)) != 0) {
    throw std::system_error(errno, std::system_category(), "memfd_create");
  }
  return made;
}

}  // namespace

relay::relay(std::size_t locks) : relay(make_memory(locks * sizeof(moment)), locks) {}

// Zeroes are what fresh memory has, and what an atomic number of zero is.
relay::relay(descriptor file, std::size_t locks)
    : file_(std::move(file)), bytes_(locks * sizeof(moment)) {
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap");
  cells_ = static_cast<moment*>(memory);
}

relay::~relay() { ::munmap(cells_, bytes_); }

}  // namespace holdfast::cli
