// Loads the module that speaks HTTP, and what needs no library: names of headers, %XX.
#include "cli/http/server.hpp"

#include <dlfcn.h>
#include <strings.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace holdfast::http {

namespace {

namespace fs = std::filesystem;

#ifdef HOLDFAST_HTTP_MODULE
constexpr std::string_view installed_module = HOLDFAST_HTTP_MODULE;  // as seen from the program
#else
constexpr std::string_view installed_module;
#endif

bool same_name(std::string_view left, std::string_view right) {
  return left.size() == right.size() && ::strncasecmp(left.data(), right.data(), left.size()) == 0;
}

// Beside the program in the build folder, or where it is installed.
fs::path module_path() {
  std::error_code none;
  const fs::path folder = fs::read_symlink("/proc/self/exe", none).parent_path();
  fs::path built = folder / "holdfast_http.so";
  return fs::exists(built, none) ? built : (folder / installed_module).lexically_normal();
}

}  // namespace

tl::expected<std::unique_ptr<server>, std::string> listen(handler&& answer, const std::string& host,
                                                          std::uint16_t port) {
  if (installed_module.empty()) {
    return tl::unexpected(
        std::string("this build has no HTTP: cpp-httplib was missing when it was compiled"));
  }
  using make = server*(handler&&, const limits&);
  // It stays loaded: its library's threads and objects do not support unloading.
  void* const module = ::dlopen(module_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found = module == nullptr ? nullptr : ::dlsym(module, module_function);
  if (found == nullptr) {
    const char* why = ::dlerror();
    return tl::unexpected(std::string(why == nullptr ? "it is incomplete" : why));
  }
  std::unique_ptr<server> made(reinterpret_cast<make*>(found)(std::move(answer), limits{}));
  if (const auto bound = made->bind(host, port); !bound) {
    return tl::unexpected("bind, " + bound.error());
  }
  return made;
}

std::string_view request::value_of(std::string_view name) const {
  for (const header& one : headers) {
    if (same_name(one.first, name)) return one.second;
  }
  return {};
}

std::size_t request::count_of(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(headers.begin(), headers.end(),
                    [&](const header& one) { return same_name(one.first, name); }));
}

}  // namespace holdfast::http
