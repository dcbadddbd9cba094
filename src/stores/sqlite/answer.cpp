// What the ledger answers to a claim, and what it tells others.
#include "stores/sqlite/ledger.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sqlite {

spi::granted ledger::granted_to(const moment& step, const resource_row& at, const claim_row& row) {
  spi::granted grant;
  grant.fence = fence_token(row.fence);
  grant.ttl = row.ends == never ? forever : duration(std::max<instant>(0, row.ends - step.now));
  grant.at = spi::server_time(duration(step.now));
  grant.offer = row.offer;
  grant.wanted = at.waiting > 0;
  return grant;
}

// The head of the line watches all who hold, everybody else the one before it: when that one dies,
// it asks again and is told whom to watch then. Who is absent watches nobody, so its neighbour does.
spi::blocked ledger::blocked_at(const moment& step, resource_row& at, const claim_row& row,
                                bool queued) {
  spi::blocked answer;
  answer.queued = queued;
  answer.at = spi::server_time(duration(step.now));
  answer.recheck_after = ledger_limits::recheck;
  auto before = queued ? resource_rows_.before(at, row.place) : std::nullopt;
  while (before && (step.dead.contains(before->client) || absent(step, *before))) {
    const std::int64_t place = before->place;
    if (step.dead.contains(before->client)) {
      resource_rows_.remove_waiter(at, *before);
      note(step, at, spi::event_kind::withdrawn, *before, false);
    }
    before = resource_rows_.before(at, place);
  }
  if (before) {
    step.out.blockers = {before->client};
    answer.blocker = before->payload;
  } else {
    const std::size_t limit = queued ? ledger_limits::told_limit : ledger_limits::holder_limit;
    step.out.blockers = resource_rows_.holding_clients(at, limit);
    const instant end = at.blocked_until > step.now ? at.blocked_until : at.next_end;
    if (end != never) {
      answer.recheck_after = std::min(answer.recheck_after, duration(end - step.now));
    }
  }
  if (at.inline_holder) answer.blocker = at.inline_holder->payload;
  if (at.blocked_until > step.now)
    answer.blocker = "the lock delay of a holder that ended abnormally";
  if (answer.blocker.empty() && at.holders > 0) {
    const auto holders = resource_rows_.all_holders(at, 1);
    if (!holders.empty()) answer.blocker = holders.front().payload;
  }
  return answer;
}

void ledger::tell_wanted(const moment& step, resource_row& at) {
  for (const claim_row& row : resource_rows_.all_holders(at, ledger_limits::told_limit)) {
    if (row.client == nobody) continue;
    step.out.pushes.push_back({push::kind::wanted, row.client, row.id, {}, {}});
  }
}

void ledger::tell_gone(const moment& step, const claim_row& row, const char* why, duration kept) {
  if (row.client == nobody) return;
  spi::granted until;
  until.ttl = kept;
  step.out.pushes.push_back({push::kind::gone, row.client, row.id, until, why});
}

void ledger::note(const moment& step, const resource_row& at, spi::event_kind what,
                  const claim_row& row, bool fenced) {
  if (!at.observed) return;
  spi::store_event event;
  event.kind = what;
  event.name = resource_of(at.key).name;
  event.claim = spi::public_id(row.id);
  event.mode = row.mode;
  if (fenced) event.fence = fence_token(row.fence);
  event.payload = row.payload;
  auto& all = step.out.news;
  if (all.empty() || all.back().key != at.key) all.push_back({at.key, {}, false, {}});
  all.back().events.push_back(std::move(event));
}

// Who observed and is gone is forgotten here.
void ledger::address_news(const moment& step, resource_row& at) {
  if (!at.observed) return;
  const std::string space = space_of(at.key);
  std::vector<std::int64_t> observers;
  query found(statements_.observers, bytes(at.key), bytes(space));
  while (found.next()) {
    if (!step.dead.contains(found.number(0))) observers.push_back(found.number(0));
  }
  if (observers.empty()) {
    at.observed = false;
    at.dirty = true;
  }
  for (news& each : step.out.news) {
    if (each.key == at.key) each.observers = observers;
  }
}

}  // namespace holdfast::sqlite
