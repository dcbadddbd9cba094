#include "stores/postgresql/link.hpp"

#include "stores/postgresql/schema.hpp"
#include "stores/postgresql/server_error.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace holdfast::postgresql {

namespace {

constexpr int oldest_version = 120000;  // PostgreSQL 12
constexpr int checks_clients = 140000;  // from 14 on the server checks whether its client is there

constexpr unsigned any = ~0U;
constexpr unsigned carriers = bit(duty::session) | bit(duty::row);

struct setting {
  const char* name;
  const char* value;
  int since;  // the first version with this setting
  unsigned duties = any;
};

// What must hold in the session, whatever the server's or the role's defaults are (H76): no timeout
// ends it while it is idle, none of its statements waits forever, a client that is gone is noticed.
// And plans do not depend on statistics: these tables are small, hot and never analysed in time.
constexpr std::array settings{
    setting{"search_path", "pg_catalog", 0},
    setting{"statement_timeout", "10s", 0},
    setting{"lock_timeout", "5s", 0},
    setting{"idle_in_transaction_session_timeout", "0", 0},
    setting{"idle_session_timeout", "0", checks_clients},
    setting{"client_connection_check_interval", "2s", checks_clients},
    setting{"tcp_keepalives_idle", "15", 0, ~carriers},
    setting{"tcp_keepalives_interval", "5", 0},
    setting{"tcp_keepalives_count", "3", 0},
    // If the connection is the hold: the server must not give up before its client does, whose
    // holds are valid for at most 30 s after its last answered request (sql::longest_belief).
    setting{"tcp_keepalives_idle", "30", 0, carriers},
    setting{"tcp_user_timeout", "45000", 0, carriers},
    // What these write is only useful while they live.
    setting{"synchronous_commit", "off", 0, carriers},
    setting{"default_transaction_isolation", "read committed", 0},
    setting{"default_transaction_deferrable", "off", 0},
    setting{"transaction_timeout", "0", 170000},
    setting{"plan_cache_mode", "force_generic_plan", 0},
    setting{"enable_seqscan", "off", 0},
    setting{"enable_bitmapscan", "off", 0},
    setting{"enable_hashjoin", "off", 0},
    setting{"enable_mergejoin", "off", 0},
    setting{"jit", "off", 0},
};

// Whether the server has been made read-only: then the others are at another primary. If only this
// role starts read-only transactions, that is overridden; the server's own setting must not be.
constexpr const char* is_read_only =
    "CASE WHEN current_setting('default_transaction_read_only') = 'off' THEN 'off' "
    "WHEN (SELECT source FROM pg_settings WHERE name = 'default_transaction_read_only') "
    "IN ('user', 'database user', 'client') "
    "THEN set_config('default_transaction_read_only', 'off', false) ELSE 'on' END";

}  // namespace

link::link(net::network net, std::shared_ptr<const server_options> options,
           std::weak_ptr<sql::link_user> whose, manner how, std::size_t turn)
    : sql::link(std::move(net), options->text(), std::move(whose)),
      options_(std::move(options)),
      how_(std::move(how)),
      turn_(turn) {}

link::~link() {
  if (!guard_.forked()) {
    close();
    return;
  }
  // PQfinish would end the session in the parent's name; only our copy of its socket is closed.
  if (connection_ != nullptr && PQsocket(connection_) >= 0) ::close(PQsocket(connection_));
}

void link::end_driver() noexcept { PQfinish(std::exchange(connection_, nullptr)); }

bool link::send(const call& what) {
  const std::lock_guard lock(mutex_);
  if (phase_ != phase::open) return false;
  const parameters all(what.with, home_.c_str());
  if (PQsendQueryPrepared(connection_, name_of(what.which), static_cast<int>(all.values.size()),
                          all.values.data(), all.lengths.data(), all.formats.data(), 0) != 1 ||
      PQpipelineSync(connection_) != 1) {
    return false;
  }
  in_flight_.push_back(what.which);
  flush();
  return true;
}

// What the socket does not take now is sent when it is writable. Errors show up when it is read.
void link::flush() {
  const bool more = PQflush(connection_) == 1;
  if (more != writing_) watch(true, more);
}

void link::watch(bool readable, bool writable) {
  writing_ = writable;
  watch_socket(PQsocket(connection_), readable, writable);
}

void link::ready(spi::readiness /*how*/) {
  harvest got;
  {
    const std::lock_guard lock(mutex_);
    switch (phase_) {
      case phase::over:
      case phase::resolving:
        return;
      case phase::connecting:
        poll(got);
        break;
      case phase::open:
        read(got);
        break;
      default:
        set_up(got);
    }
  }
  deliver(got);
}

void link::read(harvest& into) {
  const bool fine = PQconsumeInput(connection_) == 1;
  // What has arrived counts, even if the connection broke after it.
  int nothings = 0;  // two in a row: libpq has no more results
  while (!in_flight_.empty() && nothings < 2 && PQisBusy(connection_) == 0) {
    PGresult* answer = PQgetResult(connection_);
    nothings = answer == nullptr ? nothings + 1 : 0;
    if (answer == nullptr) continue;
    take(answer, into);
    PQclear(answer);
  }
  static_cast<void>(PQisBusy(connection_));  // reads notifications if there is no query
  while (PGnotify* note = PQnotifies(connection_)) {
    into.notes.emplace_back(note->extra);
    PQfreemem(note);
  }
  if (!fine || PQstatus(connection_) == CONNECTION_BAD) {
    into.end = error{errc::unavailable, where_ + ": " + first_line(PQerrorMessage(connection_))};
  } else if (broken_) {
    into.end = error{errc::unavailable, where_ + ": reconnected after an error"};
  } else {
    flush();
  }
}

void link::take(PGresult* answer, harvest& into) {
  switch (PQresultStatus(answer)) {
    case PGRES_TUPLES_OK:
      for (int row = 0; row < PQntuples(answer); ++row) {
        rows_.emplace_back(PQgetvalue(answer, row, 0));
      }
      return;
    case PGRES_COMMAND_OK:
    case PGRES_PIPELINE_ABORTED:
      return;
    case PGRES_PIPELINE_SYNC:
      in_flight_.pop_front();
      if (trouble_) {
        into.answers.emplace_back(tl::unexpected(*std::exchange(trouble_, std::nullopt)));
        rows_.clear();
      } else {
        into.answers.emplace_back(std::exchange(rows_, {}));
      }
      return;
    default: {
      server_error failed = to_error(answer, where_, name_of(in_flight_.front()));
      // An error ends the transaction, and with it a row's hold: nothing after it may count. After an
      // answer, the commit has failed: it rolls back rows, but no lock of the session.
      broken_ = broken_ || failed.ends_link || how_.duty == duty::row ||
                (how_.duty == duty::session && !rows_.empty());
      if (!trouble_) trouble_ = std::move(failed.what);
    }
  }
}

std::int64_t link::home() {
  const std::lock_guard lock(mutex_);
  std::int64_t pid = 0;
  std::from_chars(home_.data(), home_.data() + home_.size(), pid);
  return pid;
}

std::string link::place() {
  const std::lock_guard lock(mutex_);
  if (phase_ != phase::open) return {};
  return std::string(PQhost(connection_)) + ":" + PQport(connection_);
}

// How it begins: addresses, the driver's handshake, and the session's set-up.

void link::start() {
  {
    const std::lock_guard lock(mutex_);
    limit_set_up(options_->connect_limit);
  }
  resolve(turn_ % options_->hosts.size());
}

// One host after the other, from `turn_` on; a host without an address is skipped.
void link::resolve(std::size_t index) {
  const spi::endpoint& host = options_->hosts[index];
  const std::size_t next = (index + 1) % options_->hosts.size();
  const bool last = next == turn_ % options_->hosts.size();
  const auto go_on = [last, next](link& self) { last ? self.located_all() : self.resolve(next); };
  if (host.host.starts_with('/')) {
    {
      const std::lock_guard lock(mutex_);
      places_.push_back({host.host, {}, host.port});
    }
    return go_on(*this);
  }
  net_.resolver->resolve(host.host, host.port, net_.reactor->now() + options_->connect_limit,
                         [self = own(), &host, go_on](const result<net::addresses>& found) {
                           {
                             const std::lock_guard lock(self->mutex_);
                             if (!found) self->trouble_ = found.error();
                             for (const net::address& each : found ? *found : net::addresses{}) {
                               std::string text = each.text();
                               text.resize(std::min(text.rfind(':'), text.size()));
                               if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
                               self->places_.push_back({host.host, std::move(text), host.port});
                             }
                           }
                           go_on(*self);
                         });
}

void link::located_all() {
  std::optional<error> problem;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == phase::over) return;
    if (places_.empty()) {
      problem = trouble_.value_or(error{errc::unavailable, where_ + ": no address"});
    } else {
      trouble_.reset();
      problem = begin();
    }
  }
  if (problem) fail(*problem);
}

std::optional<error> link::begin() {
  std::string hosts;
  std::string addresses;
  std::string ports;
  for (const located& each : places_) {
    const char* comma = hosts.empty() ? "" : ",";
    hosts += comma + each.host;
    addresses += comma + each.address;
    ports += comma + std::to_string(each.port);
  }
  // A peer that disappears silently is noticed within half a minute, not after two hours.
  std::vector<const char*> keys{"host",
                                "hostaddr",
                                "port",
                                "target_session_attrs",
                                "keepalives_idle",
                                "keepalives_interval",
                                "keepalives_count",
                                "tcp_user_timeout"};
  std::vector<const char*> values{
      hosts.c_str(), addresses.c_str(), ports.c_str(), "primary", "15", "5", "3", "20000"};
  const auto add = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    keys.push_back(key);
    values.push_back(value.c_str());
  };
  add("user", options_->user);
  add("password", options_->password.reveal());
  add("dbname", options_->database);
  for (const auto& [key, value] : options_->parameters) add(key.c_str(), value);
  keys.push_back(nullptr);
  values.push_back(nullptr);
  connection_ = PQconnectStartParams(keys.data(), values.data(), 0);
  if (connection_ == nullptr) return error{errc::overloaded, where_ + ": out of memory"};
  if (PQstatus(connection_) == CONNECTION_BAD) {
    return connect_error(PQerrorMessage(connection_), where_);
  }
  PQsetNoticeProcessor(
      connection_, [](void*, const char*) {}, nullptr);  // not on the program's standard error
  phase_ = phase::connecting;
  watch(false, true);
  return std::nullopt;
}

// libpq may close the socket and open another (the next host, no TLS): it is watched again each
// time, but never while libpq may close it.
void link::poll(harvest& into) {
  unwatch_within();
  switch (PQconnectPoll(connection_)) {
    case PGRES_POLLING_READING:
      return watch(true, false);
    case PGRES_POLLING_WRITING:
      return watch(false, true);
    case PGRES_POLLING_OK:
      break;
    default:
      into.end = connect_error(PQerrorMessage(connection_), where_);
      return;
  }
  if (const int version = PQserverVersion(connection_); version > 0 && version < oldest_version) {
    into.end = error{errc::unsupported, where_ + ": PostgreSQL 12 or newer is required"};
    return;
  }
  PQsetnonblocking(connection_, 1);
  watch(true, false);
  ask(phase::greeting, greeting_query(), into);
}

std::string link::greeting_query() const {
  // First of all the role's own timeout, under which the rest might not be finished.
  std::string query = "SET statement_timeout = 0; SELECT pg_backend_pid(), to_regclass('" +
                      options_->schema + ".meta') IS NOT NULL, pg_is_in_recovery(), " +
                      is_read_only;
  for (const setting& each : settings) {
    if (PQserverVersion(connection_) < each.since) continue;
    if ((each.duties & bit(how_.duty)) == 0) continue;
    query += std::string(", set_config('") + each.name + "', '" + each.value + "', false)";
  }
  return query;
}

void link::ask(phase next, const std::string& query, harvest& into) {
  phase_ = next;
  trouble_.reset();
  if (PQsendQuery(connection_, query.c_str()) != 1) {
    into.end = error{errc::unavailable, where_ + ": " + first_line(PQerrorMessage(connection_))};
    return;
  }
  flush();
}

// The answers of the set-up: not in pipeline mode, one query at a time.
void link::set_up(harvest& into) {
  if (PQconsumeInput(connection_) != 1) {
    into.end = error{errc::unavailable, where_ + ": " + first_line(PQerrorMessage(connection_))};
    return;
  }
  flush();
  int nothings = 0;  // two in a row: libpq has no more results
  while (!into.end && !into.opened && nothings < 2 && PQisBusy(connection_) == 0) {
    PGresult* answer = PQgetResult(connection_);
    nothings = answer == nullptr ? nothings + 1 : 0;
    if (answer == nullptr) {
      // In pipeline mode each statement ends with a null, and the whole with its own mark.
      if (phase_ != phase::preparing || !how_.channel.empty()) finish_phase(into);
      continue;
    }
    const ExecStatusType status = PQresultStatus(answer);
    if (status == PGRES_PIPELINE_SYNC) {
      finish_phase(into);
    } else if (status == PGRES_TUPLES_OK && PQntuples(answer) == 1) {
      if (phase_ == phase::greeting) greeted(answer, into);
      if (phase_ == phase::checking) format_there_ = PQgetvalue(answer, 0, 0);
    } else if (status == PGRES_FATAL_ERROR && !trouble_) {
      trouble_ = to_error(answer, where_, "set-up").what;
    }
    PQclear(answer);
  }
}

void link::greeted(const PGresult* answer, harvest& into) {
  home_ = PQgetvalue(answer, 0, 0);
  if (!options_->pooler_is_fine && home_ != std::to_string(PQbackendPID(connection_))) {
    into.end = error{errc::unsupported,
                     where_ +
                         ": a connection pooler is in between; wake-ups and the session's "
                         "settings do not stay where it shares a server connection between "
                         "transactions. Connect directly, or, if it pools whole sessions, "
                         "say pooler=session"};
    return;
  }
  schema_there_ = PQgetvalue(answer, 0, 1)[0] == 't';
  if (PQgetvalue(answer, 0, 2)[0] == 't') {
    into.end = error{errc::unavailable, where_ + ": a standby, which takes no writes"};
  } else if (PQgetvalue(answer, 0, 3) == std::string_view("on")) {
    into.end = error{errc::unavailable, where_ + ": read-only (default_transaction_read_only)"};
  }
}

// A query was answered completely.
void link::finish_phase(harvest& into) {
  if (trouble_) {
    into.end = *trouble_;
    return;
  }
  const std::string check = "SELECT format FROM " + options_->schema + ".meta";
  switch (phase_) {
    case phase::greeting:
      if (schema_there_) return ask(phase::checking, check, into);
      return ask(phase::installing, installation(options_->schema), into);
    case phase::installing:
      return ask(phase::checking, check, into);
    case phase::checking:
      if (format_there_ != std::to_string(format)) {
        into.end = error{errc::unsupported, where_ + ": the schema " + options_->schema +
                                                " has format " + format_there_ +
                                                ", this version reads " + std::to_string(format)};
        return;
      }
      return prepare(into);
    default:
      open_up(into);
  }
}

void link::prepare(harvest& into) {
  if (!how_.channel.empty()) {
    // The lock shows the others that somebody listens (listens_3). Shared: an earlier session of
    // ours may not have ended yet.
    return ask(phase::preparing,
               "LISTEN " + how_.channel + "; SELECT pg_advisory_lock_shared(hashtextextended('" +
                   how_.channel + "', 0))",
               into);
  }
  phase_ = phase::preparing;
  bool fine = PQenterPipelineMode(connection_) == 1;
  for (std::size_t i = 0; fine && i < sql::statement_names.size(); ++i) {
    const auto which = static_cast<statement>(i);
    if (!serves(which, how_.duty)) continue;
    const std::string text = in_schema(text_of(which), options_->schema);
    fine = PQsendPrepare(connection_, name_of(which), text.c_str(), 0, nullptr) == 1;
  }
  if (fine && !how_.opening.empty()) {
    const std::string text = in_schema(how_.opening, options_->schema);
    fine =
        PQsendQueryParams(connection_, text.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0) == 1;
  }
  if (!fine || PQpipelineSync(connection_) != 1) {
    into.end = error{errc::unavailable, where_ + ": " + first_line(PQerrorMessage(connection_))};
    return;
  }
  flush();
}

}  // namespace holdfast::postgresql
