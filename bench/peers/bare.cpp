// Plain clients of the engines as peers, with a connection per thread. Some are the engine's own
// locks: PostgreSQL's advisory locks, MariaDB's GET_LOCK. The others are bare drivers, which do the
// same work at the server as a lock, but exclude nobody: each thread has its own name.
//
//   peer_bare KIND ADDRESS THREADS own|same MODE HOLD_MS NAME COUNT
//
// KIND: advisory, get-lock, or redis, sqlite, postgresql, mariadb for the driver. ADDRESS: HOST:PORT,
// or a folder for sqlite. Speaks as bench/peers/java/Peer.java does.
#include "../bare_mariadb.hpp"
#include "../bare_postgresql.hpp"
#include "../bare_redis_pair.hpp"
#include "../bare_sqlite.hpp"
#include "play.hpp"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using peer::pair;

// As in Debian's build of SQLite and in the store.
constexpr int page_size = 4096;

// pg_advisory_lock() by prepared statements: waits in the server.
class advisory {
 public:
  advisory(const std::string& target, const std::string& name)
      : connection_(PQconnectdb(target.c_str()), PQfinish) {
    const std::string key = "(hashtextextended('" + name + "', 0))";
    run("PREPARE take AS SELECT pg_advisory_lock" + key);
    run("PREPARE give AS SELECT pg_advisory_unlock" + key);
    run("PREPARE take_shared AS SELECT pg_advisory_lock_shared" + key);
    run("PREPARE give_shared AS SELECT pg_advisory_unlock_shared" + key);
  }

  void take(bool shared) { execute(shared ? "take_shared" : "take"); }
  void give(bool shared) { execute(shared ? "give_shared" : "give"); }

 private:
  void check(PGresult* answer) {
    const ExecStatusType status = PQresultStatus(answer);
    PQclear(answer);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      throw std::runtime_error(PQerrorMessage(connection_.get()));
    }
  }
  void run(const std::string& statement) { check(PQexec(connection_.get(), statement.c_str())); }
  void execute(const char* statement) {
    check(PQexecPrepared(connection_.get(), statement, 0, nullptr, nullptr, nullptr, 0));
  }

  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

template <class Row>
pair of_row(std::shared_ptr<Row> one) {
  return {.take =
              [one](bool) {
                if (!one->take()) throw std::runtime_error("not free");
              },
          .give = [one](bool) { one->give(); }};
}

pair of_get_lock(std::uint16_t port, const std::string& name) {
  const auto one = std::make_shared<holdfast::test::mariadb_session>(port);
  const auto granted = [one](const std::string& statement) {
    return one->ask(statement) == std::vector<std::string>{"1"};
  };
  return {.take =
              [=](bool) {
                while (!granted("SELECT GET_LOCK('" + name + "', 30)")) {
                }
              },
          .give =
              [=](bool) {
                if (!granted("SELECT RELEASE_LOCK('" + name + "')")) {
                  throw std::runtime_error("it was not held");
                }
              }};
}

pair make_pair(const std::string& kind, const std::string& address, const std::string& name) {
  const std::string text = address.substr(address.rfind(':') + 1);
  if (kind == "sqlite") {
    const auto one = std::make_shared<bench::bare_sqlite>(address + "/" + name, page_size);
    const auto transaction = [one](bool) { one->transaction(); };
    return {.take = transaction, .give = transaction};
  }
  const auto port = static_cast<std::uint16_t>(std::stoi(text));
  if (kind == "redis") {
    const auto one = std::make_shared<holdfast::bench::bare_pair>(port, name);
    return {.take = [one](bool) { one->take(); }, .give = [one](bool) { one->give(); }};
  }
  if (kind == "mariadb") return of_row(std::make_shared<bench::bare_mariadb_row>(port, name));
  if (kind == "get-lock") return of_get_lock(port, name);
  const std::string target = "host=127.0.0.1 user=tester dbname=postgres port=" + text;
  if (kind == "postgresql") return of_row(std::make_shared<bench::bare_row>(target, name));
  const auto one = std::make_shared<advisory>(target, name);
  return {.take = [one](bool shared) { one->take(shared); },
          .give = [one](bool shared) { one->give(shared); }};
}

}  // namespace

int main(int count, char** arguments) {
  return peer::answer("peer_bare", [&] {
    const std::vector<std::string> words(arguments + 1, arguments + count);
    peer::play({words.begin() + 2, words.end()},
               [&](const std::string& name) { return make_pair(words.at(0), words.at(1), name); });
  });
}
