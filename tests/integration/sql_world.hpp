// A SQL server that a test may stop and break, whichever engine it is: so that a test for all SQL
// stores is written once.
#pragma once

#include "integration/sql_harness.hpp"
#include "net/connector.hpp"
#include "stores/sql/server_store.hpp"
#ifdef HOLDFAST_WITH_MARIADB
#include "integration/mariadb_harness.hpp"
#include "stores/mariadb/engine.hpp"
#endif
#ifdef HOLDFAST_WITH_POSTGRESQL
#include "integration/postgresql_harness.hpp"
#include "stores/postgresql/engine.hpp"
#endif

#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/url.hpp>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::test {

// The others cannot notify its client before `found` is raised: until then the connection that
// listens does not find its server, which the URL has to name as localhost.
template <class Engine>
class late_listening final : public Engine {
 public:
  template <class Options>
  late_listening(Options options, std::shared_ptr<flag> found)
      : Engine(std::make_shared<const Options>(std::move(options))), found_(std::move(found)) {}

  [[nodiscard]] std::shared_ptr<sql::notification_listener> make_listener(
      const net::network& net, const std::string& process,
      const std::shared_ptr<sql::switchboard>& board) const override {
    const auto late = std::make_shared<net::resolver>(
        net.reactor, [found = found_](const std::string& host) -> result<net::addresses> {
          if (!found->wait()) return failure(errc::unavailable, "nobody let it be found");
          return net::look_up(host);
        });
    return Engine::make_listener({net.reactor, late}, process, board);
  }

 private:
  const std::shared_ptr<flag> found_;
};

// Not thread-safe. Tables of its own, on a server that others may use too.
class sql_world {
 public:
  sql_world() = default;
  virtual ~sql_world() = default;
  sql_world(const sql_world&) = delete;
  sql_world& operator=(const sql_world&) = delete;

  [[nodiscard]] virtual std::string url(const std::string& extra = {}) const = 0;
  [[nodiscard]] virtual std::uint16_t port() const = 0;

  // Without a client around it.
  [[nodiscard]] virtual std::shared_ptr<spi::store> store(const std::string& extra) const = 0;
  [[nodiscard]] virtual std::shared_ptr<spi::store> late_store(
      std::shared_ptr<flag> found) const = 0;

  enum class shutdown : std::uint8_t { orderly, killed };
  virtual void restart(shutdown how) = 0;
  // By an administrator: the connection that carries the oldest hold; and three in ten of all.
  virtual void end_carrier() = 0;
  virtual void end_some() = 0;

 protected:
  [[nodiscard]] spi::url by_name() const {
    std::string text = url("&connect_timeout=30s");
    return *spi::parse_url(text.replace(text.find("127.0.0.1"), 9, "localhost"));
  }
};

#ifdef HOLDFAST_WITH_POSTGRESQL
class postgresql_world final : public sql_world {
 public:
  explicit postgresql_world(std::shared_ptr<postgresql_server> server)
      : server_(std::move(server)) {}

  [[nodiscard]] std::string url(const std::string& extra) const override {
    return server_->url(schema_, extra);
  }
  [[nodiscard]] std::uint16_t port() const override { return server_->port(); }
  [[nodiscard]] std::shared_ptr<spi::store> store(const std::string& extra) const override {
    return *postgresql::open_postgresql(*spi::parse_url(url(extra)), spi::make_reactor(), {});
  }
  [[nodiscard]] std::shared_ptr<spi::store> late_store(std::shared_ptr<flag> found) const override {
    return sql::make_store(spi::make_reactor(),
                           std::make_shared<late_listening<postgresql::engine>>(
                               *postgresql::options_from(by_name()), std::move(found)));
  }
  void restart(shutdown how) override {
    server_->restart(how == shutdown::orderly ? postgresql_server::shutdown::fast
                                              : postgresql_server::shutdown::immediate);
  }
  void end_carrier() override {
    server_->sql("SELECT pg_terminate_backend((SELECT pid FROM " + schema_ +
                 ".holds ORDER BY since LIMIT 1))");
  }
  void end_some() override {
    server_->sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE application_name = 'holdfast' AND random() < 0.3");
  }

 private:
  const std::shared_ptr<postgresql_server> server_;
  const std::string schema_ = fresh_schema();
};
#endif

#ifdef HOLDFAST_WITH_MARIADB
class mariadb_world final : public sql_world {
 public:
  explicit mariadb_world(std::shared_ptr<mariadb_server> server) : server_(std::move(server)) {}

  [[nodiscard]] std::string url(const std::string& extra) const override {
    return server_->url(prefix_, extra);
  }
  [[nodiscard]] std::uint16_t port() const override { return server_->port(); }
  [[nodiscard]] std::shared_ptr<spi::store> store(const std::string& extra) const override {
    return *mariadb::open_mariadb(*spi::parse_url(url(extra)), spi::make_reactor(), {});
  }
  [[nodiscard]] std::shared_ptr<spi::store> late_store(std::shared_ptr<flag> found) const override {
    return sql::make_store(spi::make_reactor(),
                           std::make_shared<late_listening<mariadb::engine>>(
                               *mariadb::options_from(by_name()), std::move(found)));
  }
  void restart(shutdown how) override {
    // What a killed server has committed is in the kernel's cache.
    how == shutdown::orderly ? server_->stop() : server_->kill();
    server_->start();
  }
  void end_carrier() override {
    kill_all("SELECT pid FROM " + prefix_ + "holds ORDER BY since LIMIT 1");
  }
  void end_some() override {
    kill_all(
        "SELECT id FROM information_schema.processlist WHERE user = 'tester' AND "
        "id <> CONNECTION_ID() AND RAND() < 0.3");
  }

 private:
  void kill_all(const std::string& which) {
    auto admin = admin_of(*server_);
    for (const std::string& id : admin.ask(which)) {
      try {
        admin.ask("KILL " + id);
      } catch (const std::runtime_error&) {
        // It has ended by itself.
      }
    }
  }

  const std::shared_ptr<mariadb_server> server_;
  const std::string prefix_ = fresh_prefix();
};
#endif

// `shared`: on the one server of its engine that all tests break, one after another; else on a
// server of its own.
struct sql_setup {
  std::string name;  // "mariadb_session"
  std::string strategy;
  std::unique_ptr<sql_world> (*make)(bool shared);
};

// With these strategies, of all engines that there are.
std::vector<sql_setup> sql_setups(const std::vector<std::string>& strategies);

inline std::string name_of_sql(const testing::TestParamInfo<sql_setup>& info) {
  return info.param.name;
}

}  // namespace holdfast::test
