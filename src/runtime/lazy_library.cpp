#include "runtime/lazy_library.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace holdfast::runtime {

result<void> lazy_library::load() const {
  // Not RTLD_GLOBAL: its symbols must not resolve references of anything else in the process.
  if (file_ == nullptr || ::dlopen(file_, RTLD_LAZY | RTLD_LOCAL) != nullptr) return {};
  const char* why = ::dlerror();
  return failure(errc::unavailable, std::string("the driver cannot be loaded (package ") +
                                        package_ + "): " + (why == nullptr ? file_ : why));
}

void* lazy_library::address(const char* name) const {
  void* const loaded = ::dlopen(file_, RTLD_LAZY | RTLD_LOCAL);
  void* const found = loaded == nullptr ? nullptr : ::dlsym(loaded, name);
  if (found != nullptr) return found;
  const char* why = ::dlerror();
  std::fprintf(stderr, "holdfast: %s cannot be used (package %s): %s\n", file_, package_,
               why == nullptr ? name : why);
  std::abort();
}

}  // namespace holdfast::runtime
