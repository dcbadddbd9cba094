// A blocking session with a PostgreSQL server, for a test's own statements beside the store.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::test {

// Not thread-safe. Throws std::runtime_error with the server's words.
class postgresql_session {
 public:
  // `target`: a connection string or URL as libpq has it.
  explicit postgresql_session(const std::string& target)
      : connection_(PQconnectdb(target.c_str()), PQfinish) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) throw std::runtime_error(message());
    PQsetNoticeProcessor(
        connection_.get(), [](void*, const char*) {}, nullptr);
  }

  // The first column of the answer. The arguments are text, as literals are.
  std::vector<std::string> ask(const std::string& statement,
                               const std::vector<std::string>& arguments = {}) {
    std::vector<const char*> values;
    values.reserve(arguments.size());
    for (const std::string& each : arguments) values.push_back(each.c_str());
    return rows(PQexecParams(connection_.get(), statement.c_str(), static_cast<int>(values.size()),
                             nullptr, values.data(), nullptr, nullptr, 0));
  }
  // Several statements at once; no answer.
  void run(const std::string& script) { rows(PQexec(connection_.get(), script.c_str())); }

  // What was notified to this session up to its last answer: channel and message.
  std::vector<std::pair<std::string, std::string>> heard() {
    std::vector<std::pair<std::string, std::string>> all;
    PQconsumeInput(connection_.get());
    while (PGnotify* note = PQnotifies(connection_.get())) {
      all.emplace_back(note->relname, note->extra);
      PQfreemem(note);
    }
    return all;
  }

  [[nodiscard]] PGconn* get() const noexcept { return connection_.get(); }

 private:
  std::vector<std::string> rows(PGresult* answer) {
    const std::unique_ptr<PGresult, void (*)(PGresult*)> held(answer, PQclear);
    const auto status = PQresultStatus(answer);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      throw std::runtime_error(message());
    }
    std::vector<std::string> first;
    for (int row = 0; row < PQntuples(answer); ++row) {
      first.emplace_back(PQgetvalue(answer, row, 0));
    }
    return first;
  }
  [[nodiscard]] std::string message() const { return PQerrorMessage(connection_.get()); }

  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

}  // namespace holdfast::test
