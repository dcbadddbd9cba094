// Calls and answers. How it begins: link_connect.cpp.
#include "stores/postgresql/link.hpp"

#include "stores/postgresql/server_error.hpp"

#include <unistd.h>

#include <charconv>
#include <utility>

namespace holdfast::postgresql {

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
  // PQfinish would say goodbye in the parent's name; only our copy of its socket ends.
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

// What the socket does not take now goes out when it is writable. Errors show when it is read.
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
  // What has arrived counts, also where the connection broke behind it.
  int nothings = 0;  // two in a row: libpq has no more to say
  while (!in_flight_.empty() && nothings < 2 && PQisBusy(connection_) == 0) {
    PGresult* answer = PQgetResult(connection_);
    nothings = answer == nullptr ? nothings + 1 : 0;
    if (answer == nullptr) continue;
    take(answer, into);
    PQclear(answer);
  }
  static_cast<void>(PQisBusy(connection_));  // reads notifications where nothing was asked
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
      // An error ends the transaction, and with it the hold: nothing may be believed after it.
      broken_ = broken_ || failed.ends_link || how_.duty == duty::row;
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

}  // namespace holdfast::postgresql
