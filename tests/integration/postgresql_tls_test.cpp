// TLS: the server proves its identity, by chain and name, or nothing is sent to it.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "integration/postgresql_harness.hpp"
#include "stores/postgresql/options.hpp"
#include "support/tls_files.hpp"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace holdfast::test {
namespace {

// Where only the server, which runs as another user, may read them.
class server_files {
 public:
  explicit server_files(const tls_files::pair& from) {
    for (const auto& [name, source] : {std::pair("crt", from.cert), std::pair("key", from.key)}) {
      const auto to = folder_.path() / name;
      std::filesystem::copy_file(source, to);
      std::filesystem::permissions(
          to, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
      give_away(to);
    }
    give_away(folder_.path());
  }
  [[nodiscard]] postgresql_options options() const {
    postgresql_options options;
    options.settings = {"ssl=on", "ssl_cert_file=" + (folder_.path() / "crt").string(),
                        "ssl_key_file=" + (folder_.path() / "key").string()};
    return options;
  }

 private:
  static void give_away(const std::filesystem::path& path) {
    if (::geteuid() != 0) return;
    const passwd* user = ::getpwnam("postgres");
    if (::chown(path.c_str(), user->pw_uid, user->pw_gid) != 0) {
      throw std::runtime_error("chown: " + path.string());
    }
  }

  temporary_folder folder_;
};

std::string url(const postgresql_server& server, const std::string& host,
                const std::string& options) {
  return "postgresql://tester@" + host + ":" + std::to_string(server.port()) +
         "/postgres?connections=1" + options;
}

result<lease> lock(const std::string& at) {
  const client a = open_client(at);
  return mutex(a, "stock").acquire({.wait = patience});
}

TEST(postgresql_tls, chain_and_name_are_checked) {
  // Broken: a man in the middle reads and writes locks (S3, S4).
  tls_files files;
  const server_files keys(files.signed_for("DNS:localhost"));
  const postgresql_server server(keys.options());
  const std::string known = "&sslmode=verify-full&sslrootcert=" + files.authority();
  EXPECT_THAT(lock(url(server, "localhost", known)), succeeds());
  EXPECT_THAT(lock(url(server, "127.0.0.1", known)), fails_with(errc::denied));
  tls_files strangers;
  EXPECT_THAT(
      lock(url(server, "localhost", "&sslmode=verify-full&sslrootcert=" + strangers.authority())),
      fails_with(errc::denied));
  const auto checks = probed(open_client(url(server, "localhost", known)));
  EXPECT_TRUE(std::any_of(checks.begin(), checks.end(), [](const spi::check& each) {
    return each.name == "tls" && each.detail == "the connection is encrypted";
  }));
}

TEST(postgresql_tls, a_server_without_it_is_not_good_enough) {
  // Broken: requested encryption is silently left out.
  EXPECT_THAT(lock(url(shared_postgresql(), "127.0.0.1", "&sslmode=require")),
              fails_with(errc::denied));
}

TEST(postgresql_tls, a_host_elsewhere_is_checked_unless_one_says_otherwise) {
  // Broken: libpq's default, which lets a man in the middle turn encryption off (S4).
  const auto mode = [](const char* text) -> std::string {
    const auto options = postgresql::options_from(spi::parse_url(text).value());
    for (const auto& [key, value] : options.value().parameters) {
      if (key == "sslmode") return value;
    }
    return "libpq's";
  };
  EXPECT_EQ(mode("postgresql://db.example/locks"), "verify-full");
  EXPECT_EQ(mode("postgresql://127.0.0.1,db.example/locks"), "verify-full");
  EXPECT_EQ(mode("postgresql://db.example/locks?sslmode=disable"), "disable");
  EXPECT_EQ(mode("postgresql://localhost/locks"), "libpq's");
  EXPECT_EQ(mode("postgresql:///locks?host=/run/postgresql"), "libpq's");
}

}  // namespace
}  // namespace holdfast::test

#endif
