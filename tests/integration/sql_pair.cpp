#include "integration/sql_pair.hpp"

#include "support/eventually.hpp"

namespace holdfast::test {

namespace {

// The same URL with a second server behind the first.
[[maybe_unused]] std::string with_standby(const std::string& url, std::uint16_t port) {
  const auto slash = url.find('/', url.find('@'));
  return url.substr(0, slash) + ",127.0.0.1:" + std::to_string(port) + url.substr(slash);
}

[[maybe_unused]] void await(bool happened, const char* what) {
  if (!happened) throw std::runtime_error(std::string("did not happen: ") + what);
}

#ifdef HOLDFAST_WITH_POSTGRESQL
const std::vector<std::string> replicating{"wal_level=replica", "max_wal_senders=4"};

class postgresql_pair final : public sql_pair {
 public:
  [[nodiscard]] std::string url(const std::string& extra) const override {
    return with_standby(primary_.url("holdfast", extra), standby_.port());
  }
  void catch_up() override {
    const std::string there = primary_.sql("SELECT pg_current_wal_lsn()");
    const std::string question = "SELECT pg_last_wal_replay_lsn() >= '" + there + "'::pg_lsn";
    await(eventually([&] { return standby_.sql(question) == "t"; }), "replication");
  }
  void cut() override {
    standby_.sql("ALTER SYSTEM SET primary_conninfo = ''");
    standby_.sql("SELECT pg_reload_conf()");
    await(eventually(
              [&] { return standby_.sql("SELECT count(*) FROM pg_stat_wal_receiver") == "0"; }),
          "the end of replication");
  }
  void kill_primary() override { primary_.kill(); }
  void make_primary_read_only() override {
    primary_.sql("ALTER SYSTEM SET default_transaction_read_only = on");
    primary_.sql("SELECT pg_reload_conf()");
    await(eventually([&] { return primary_.sql("SHOW default_transaction_read_only") == "on"; }),
          "read-only");
  }
  void promote_standby() override { standby_.promote(); }
  [[nodiscard]] std::size_t listeners() const override {
    return std::stoul(
        standby_.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN hf_%'"));
  }

 private:
  postgresql_server primary_{{.settings = replicating}};
  postgresql_server standby_{{.settings = replicating, .primary = &primary_}};
};
#endif

#ifdef HOLDFAST_WITH_MARIADB
class mariadb_pair final : public sql_pair {
 public:
  mariadb_pair() { standby_.replicate(primary_); }

  [[nodiscard]] std::string url(const std::string& extra) const override {
    return with_standby(primary_.url("holdfast_", extra), standby_.port());
  }
  void catch_up() override {
    const std::string there = primary_.sql("SELECT @@gtid_binlog_pos");
    await(standby_.sql("SELECT MASTER_GTID_WAIT('" + there + "', 30)") == "0", "replication");
  }
  void cut() override { standby_.sql("STOP SLAVE"); }
  void kill_primary() override { primary_.kill(); }
  void make_primary_read_only() override { primary_.sql("SET GLOBAL read_only = 1"); }
  void promote_standby() override { standby_.promote(); }
  [[nodiscard]] std::size_t listeners() const override {
    return std::stoul(standby_.sql(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'"));
  }

 private:
  mariadb_server primary_{{.settings = {"server-id=1", "log-bin=bin"}}};
  mariadb_server standby_{{.settings = {"server-id=2", "log-bin=bin"}}};
};
#endif

}  // namespace

std::vector<pair_setup> pair_setups() {
  std::vector<pair_setup> all;
#ifdef HOLDFAST_WITH_POSTGRESQL
  all.push_back({"postgresql", []() -> std::unique_ptr<sql_pair> {
                   return std::make_unique<postgresql_pair>();
                 }});
#endif
#ifdef HOLDFAST_WITH_MARIADB
  all.push_back(
      {"mariadb", []() -> std::unique_ptr<sql_pair> { return std::make_unique<mariadb_pair>(); }});
#endif
  return all;
}

}  // namespace holdfast::test
