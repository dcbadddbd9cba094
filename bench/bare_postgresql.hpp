// The yardstick of the PostgreSQL store: libpq alone. A row that is taken and released by prepared
// statements, each a transaction; no queue, no wake-up, no lease.
#pragma once

#include <libpq-fe.h>

#include <stdexcept>
#include <string>

namespace bench {

class bare_row {
 public:
  // `target`: as for PQconnectdb().
  bare_row(const std::string& target, const std::string& name)
      : connection_(PQconnectdb(target.c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) {
      PQfinish(connection_);
      throw std::runtime_error("no connection");
    }
    PQsetNoticeProcessor(
        connection_, [](void*, const char*) {}, nullptr);
    run("CREATE TABLE IF NOT EXISTS public.bare (name text PRIMARY KEY, owner bigint NOT NULL) "
        "WITH (fillfactor = 50)");
    run("INSERT INTO public.bare VALUES ('" + name + "', 0) ON CONFLICT DO NOTHING");
    run("PREPARE take AS UPDATE public.bare SET owner = 1 WHERE name = '" + name +
        "' AND owner = 0");
    run("PREPARE give AS UPDATE public.bare SET owner = 0 WHERE name = '" + name + "'");
    for (const char* each : {"take", "give"}) executed(each);
  }
  bare_row(const bare_row&) = delete;
  bare_row& operator=(const bare_row&) = delete;
  ~bare_row() { PQfinish(connection_); }

  bool take() { return executed("take"); }
  void give() { executed("give"); }

 private:
  // Two processes create the table at once: one of them fails, and then finds it.
  void run(const std::string& statement) { PQclear(PQexec(connection_, statement.c_str())); }

  bool executed(const char* statement) {
    PGresult* answer = PQexecPrepared(connection_, statement, 0, nullptr, nullptr, nullptr, 0);
    const bool fine = PQresultStatus(answer) == PGRES_COMMAND_OK;
    const bool changed = fine && PQcmdTuples(answer) == std::string("1");
    PQclear(answer);
    if (!fine) throw std::runtime_error("a bare statement failed");
    return changed;
  }

  PGconn* connection_;
};

}  // namespace bench
