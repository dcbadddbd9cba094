// An object that a test shares with the processes that it forks.
#pragma once

#include <sys/mman.h>

#include <new>
#include <stdexcept>

namespace holdfast::test {

template <class T>
class shared_page {
 public:
  shared_page() {
    void* memory =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    object_ = new (memory) T();
  }
  shared_page(const shared_page&) = delete;
  shared_page& operator=(const shared_page&) = delete;
  ~shared_page() { ::munmap(object_, sizeof(T)); }

  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }

 private:
  T* object_;
};

}  // namespace holdfast::test
