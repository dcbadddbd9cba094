// PgBouncer in between: refused where it shares server connections between transactions.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "integration/postgresql_harness.hpp"
#include "support/also_longer.hpp"
#include "support/free_port.hpp"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <fstream>

namespace holdfast::test {
namespace {

// Not thread-safe.
class pooler {
 public:
  explicit pooler(const std::string& mode) : port_(free_port()) {
    {
      std::ofstream users(folder_.path() / "users");
      users << "\"tester\" \"\"\n";
      std::ofstream file(folder_.path() / "pgbouncer.ini");
      file << "[databases]\n* = host=127.0.0.1 port=" << shared_postgresql().port()
           << "\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=" << port_
           << "\nunix_socket_dir=\nauth_type=trust\nauth_file="
           << (folder_.path() / "users").string() << "\npool_mode=" << mode
           << "\nmax_client_conn=100\ndefault_pool_size=20\n";
    }
    std::vector<std::string> words{"/usr/sbin/pgbouncer", folder_.path() / "pgbouncer.ini"};
    if (::geteuid() == 0) {
      const passwd* user = ::getpwnam("postgres");
      for (const char* each : {"", "users", "pgbouncer.ini"}) {
        if (::chown((folder_.path() / each).c_str(), user->pw_uid, user->pw_gid) != 0) {
          throw std::runtime_error("chown");
        }
      }
      words.insert(words.begin(),
                   {"setpriv", "--reuid", "postgres", "--regid", std::to_string(user->pw_gid),
                    "--clear-groups", "--pdeathsig", "KILL", "--"});
    }
    process_ = child_process(words, folder_.path() / "log");
    if (!eventually([this] { return answers(); })) throw std::runtime_error("no pgbouncer");
  }

  [[nodiscard]] std::string url(const std::string& extra = {}) const {
    return by_port(shared_postgresql().url(schema_, extra), port_);
  }

 private:
  [[nodiscard]] bool answers() const {
    try {
      postgresql_session("host=127.0.0.1 user=tester dbname=postgres port=" +
                         std::to_string(port_));
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }

  const std::string schema_ = fresh_schema();
  const std::uint16_t port_;
  temporary_folder folder_;
  child_process process_;
};

TEST(postgresql_pooler, a_pooler_of_transactions_is_refused_with_the_reason) {
  // Broken: wake-ups that never come, session settings of somebody else (H77, T27).
  const pooler between("transaction");
  const client a = open_client(between.url());
  EXPECT_TRUE(eventually([&] {
    const auto refused = mutex(a, "stock").acquire({.wait = 1s});
    return !refused && refused.error() == errc::unsupported &&
           refused.error().detail.find("pooler") != std::string::npos;
  }));
}

TEST(postgresql_pooler, strategy_session_is_refused_behind_a_pooler_of_transactions) {
  // Broken: two clients both have the same advisory lock, and it stays when both are gone (H77).
  const pooler between("transaction");
  for (const char* claimed : {"", "&pooler=session"}) {
    const client a = open_client(between.url(std::string("&strategy=session") + claimed));
    const client b = open_client(between.url(std::string("&strategy=session") + claimed));
    // If a user wrongly declares that sessions stay, the server's process id reveals it.
    const duration wait = *claimed == '\0' ? duration(patience) : duration(1s);
    const auto first = mutex(a, "stock").acquire({.wait = wait});
    const auto second = mutex(b, "stock").acquire({.wait = wait});
    // The client that is refused has lost it again.
    EXPECT_TRUE(!first || !second ||
                eventually([&] { return !first->valid() || !second->valid(); }, 2 * patience));
    if (*claimed == '\0') {
      EXPECT_THAT(first, fails_with(errc::unsupported));
      EXPECT_THAT(first.error().detail, testing::HasSubstr("pooler"));
    }
  }
}

TEST(postgresql_pooler, strategy_session_works_behind_a_pooler_of_sessions) {
  // Broken: nobody behind PgBouncer can have locks of sessions.
  const pooler between("session");
  const client a = open_client(between.url("&pooler=session&strategy=session"));
  const client b = open_client(between.url("&pooler=session&strategy=session"));
  auto held = mutex(a, "stock").acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  EXPECT_TRUE(
      waits_in_vain(2s, [&](duration wait) { return mutex(b, "stock").acquire({.wait = wait}); }));
  ASSERT_THAT(held->release(), succeeds());
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = patience}), succeeds());
}

TEST(postgresql_pooler, a_pooler_of_sessions_will_do_where_one_says_so) {
  // Broken: nobody behind PgBouncer can have locks.
  const pooler between("session");
  const client a = open_client(between.url("&pooler=session"));
  const client b = open_client(between.url("&pooler=session"));
  auto held = mutex(a, "stock").acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex(b, "stock").async_acquire({.wait = patience}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(waits.future.get(), succeeds());
}

}  // namespace
}  // namespace holdfast::test

#endif
