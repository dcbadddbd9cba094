// From a URL to a store.
#include "stores/sqlite/sqlite_store.hpp"

#include <utility>

namespace holdfast::sqlite {

result<std::shared_ptr<spi::store>> open_sqlite(const spi::url& url,
                                                std::shared_ptr<spi::reactor> reactor) {
  if (auto known = spi::check_options(url, {}); !known) {
    return tl::unexpected(std::move(known.error()));
  }
  if (!url.hosts.empty() || !url.user.empty() || !url.password.empty()) {
    return failure(errc::invalid, "URL: sqlite: has no host; write sqlite:/path/file.db");
  }
  open_options options;
  options.path = url.path;
  auto opened = sqlite_store::open(std::move(reactor), options);
  if (!opened) return tl::unexpected(std::move(opened.error()));
  return std::shared_ptr<spi::store>(std::move(*opened));
}

}  // namespace holdfast::sqlite
