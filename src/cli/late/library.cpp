// Loading a shared library late.
#include "cli/late/library.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace holdfast::cli::late {

result<void> library::load() const {
  // Not RTLD_GLOBAL: nothing else in the process is to be resolved by what it brings.
  if (::dlopen(file_, RTLD_LAZY | RTLD_LOCAL) != nullptr) return {};
  const char* why = ::dlerror();
  return failure(errc::unavailable, std::string("the driver cannot be loaded (package ") +
                                        package_ + "): " + (why == nullptr ? file_ : why));
}

void* library::address(const char* name) const {
  void* const loaded = ::dlopen(file_, RTLD_LAZY | RTLD_LOCAL);
  void* const found = loaded == nullptr ? nullptr : ::dlsym(loaded, name);
  if (found != nullptr) return found;
  const char* why = ::dlerror();
  std::fprintf(stderr, "holdfast: %s cannot be used (package %s): %s\n", file_, package_,
               why == nullptr ? name : why);
  std::abort();
}

result<void> load_driver_of([[maybe_unused]] std::string_view engine) {
#ifdef HOLDFAST_LATE_POSTGRESQL
  if (engine == "postgresql") return libpq.load();
#endif
#ifdef HOLDFAST_LATE_MARIADB
  if (engine == "mariadb" || engine == "mysql") return libmariadb.load();
#endif
  return {};
}

}  // namespace holdfast::cli::late
