// Holdfast as a peer among others: one client, shared by all threads.
//
//   peer_holdfast [--std|--coroutines] URL THREADS own|same MODE HOLD_MS NAME COUNT
//
// --std: by lock() and unlock(), as std::scoped_lock does. unlock() does not wait for the answer.
// --coroutines: instead of threads, as goroutines are in Go. Mutexes only, without HOLD_MS.
// Not `holdfast bench`, which connects again for every round: the others stay connected.
#include "play.hpp"

#include <holdfast/holdfast.hpp>

#include <coroutine>
#include <cstdint>
#include <exception>
#include <iterator>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using holdfast::lease;
using holdfast::result;
using peer::pair;

// `take` returns a lease, which is kept until its release.
template <class Take>
pair kept(Take take) {
  const auto held = std::make_shared<lease>();
  return {.take =
              [=](bool shared) {
                result<lease> granted = take(shared);
                if (!granted) throw std::runtime_error(granted.error().message());
                *held = std::move(*granted);
              },
          .give =
              [=](bool) {
                if (const auto left = held->release(); !left) {
                  throw std::runtime_error(left.error().message());
                }
              }};
}

pair make_pair(const holdfast::client& client, const std::string& mode, const std::string& name) {
  const holdfast::lock_options options{.fair = mode == "fair"};
  if (mode.starts_with("semaphore:")) {
    const auto permits = static_cast<std::uint32_t>(std::stoul(mode.substr(10)));
    const auto all = std::make_shared<holdfast::semaphore>(
        client, name, holdfast::semaphore_options{.max = permits, .lock = options});
    return kept([all](bool) { return all->acquire(); });
  }
  if (mode.starts_with("rw:")) {
    const auto door = std::make_shared<holdfast::shared_mutex>(client, name, options);
    return kept([door](bool shared) { return shared ? door->acquire_shared() : door->acquire(); });
  }
  const auto door = std::make_shared<holdfast::mutex>(client, name, options);
  return kept([door](bool) { return door->acquire(); });
}

pair make_std_pair(const holdfast::client& client, const std::string& name) {
  const auto door = std::make_shared<holdfast::mutex>(client, name);
  return {.take = [door](bool) { door->lock(); }, .give = [door](bool) { door->unlock(); }};
}

// Starts at once, runs where its last answer came, and ends by itself.
struct coroutine {
  struct promise_type {
    coroutine get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
  };
};

coroutine work_async(holdfast::mutex door, const peer::one_round& round, peer::tally& mine,
                     std::latch& working) {
  peer::scribe scribe(round);
  while (scribe.next()) {
    result<lease> held = co_await door.async_acquire();
    if (!held) peer::give_up(held.error().message());
    scribe.granted();
    const result<void> left = co_await held->async_release();
    if (!left) peer::give_up(left.error().message());
    scribe.released();
  }
  mine = scribe.result();
  working.count_down();
}

void play_coroutines(const holdfast::client& client, const std::vector<std::string>& words) {
  const std::vector<std::string> names = peer::names_of(words);
  peer::play_rounds(words, [&](const peer::one_round& round) {
    std::vector<peer::tally> all(names.size());
    std::latch working(std::ssize(names));
    for (std::size_t i = 0; i < names.size(); ++i) {
      work_async(holdfast::mutex(client, names[i]), round, all[i], working);
    }
    working.wait();
    return all;
  });
}

}  // namespace

int main(int count, char** arguments) {
  return peer::answer("peer_holdfast", [&] {
    std::vector<std::string> words(arguments + 1, arguments + count);
    const bool std_face = words.at(0) == "--std";
    const bool coroutines = words.at(0) == "--coroutines";
    if (std_face || coroutines) words.erase(words.begin());
    auto client = holdfast::client::open(words.at(0));
    if (!client) throw std::runtime_error(client.error().message());
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    if (coroutines) {
      play_coroutines(*client, rest);
    } else {
      peer::play(rest, [&](const std::string& name) {
        return std_face ? make_std_pair(*client, name) : make_pair(*client, rest.at(2), name);
      });
    }
    client->close();
  });
}
