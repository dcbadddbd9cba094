#include "contract/flavours.hpp"

#include "support/rounds.hpp"

namespace holdfast::test {

namespace {

template <class Lock>
class as_exclusive final : public exclusive_lock {
 public:
  template <class... Arguments>
  explicit as_exclusive(Arguments&&... arguments) : lock_(std::forward<Arguments>(arguments)...) {}

  result<lease> acquire(const acquire_options& options, std::stop_token token) override {
    return lock_.acquire(options, std::move(token));
  }
  acquire_awaitable async_acquire(const acquire_options& options, std::stop_token token) override {
    return lock_.async_acquire(options, std::move(token));
  }
  void async_acquire(const acquire_options& options, std::stop_token token,
                     acquire_callback done) override {
    lock_.async_acquire(options, std::move(token), std::move(done));
  }

 private:
  Lock lock_;
};

class leadership final : public exclusive_lock {
 public:
  leadership(const client& client, const std::string& name, const lock_options& options)
      : election_(client, name, "candidate", options) {}

  result<lease> acquire(const acquire_options& options, std::stop_token token) override {
    return election_.campaign(options, std::move(token));
  }
  acquire_awaitable async_acquire(const acquire_options& options, std::stop_token token) override {
    return election_.async_campaign(options, std::move(token));
  }
  void async_acquire(const acquire_options& options, std::stop_token token,
                     acquire_callback done) override {
    election_.async_campaign(options, std::move(token), std::move(done));
  }

 private:
  election election_;
};

std::unique_ptr<exclusive_lock> make_mutex(const client& client, const std::string& name,
                                           const lock_options& options) {
  return std::make_unique<as_exclusive<mutex>>(client, name, options);
}

std::unique_ptr<exclusive_lock> make_fair(const client& client, const std::string& name,
                                          const lock_options& options) {
  lock_options fair = options;
  fair.fair = true;
  return std::make_unique<as_exclusive<mutex>>(client, name, fair);
}

std::unique_ptr<exclusive_lock> make_writer(const client& client, const std::string& name,
                                            const lock_options& options) {
  return std::make_unique<as_exclusive<shared_mutex>>(client, name, options);
}

std::unique_ptr<exclusive_lock> make_permit(const client& client, const std::string& name,
                                            const lock_options& options) {
  return std::make_unique<as_exclusive<semaphore>>(client, name,
                                                   semaphore_options{.max = 1, .lock = options});
}

std::unique_ptr<exclusive_lock> make_leader(const client& client, const std::string& name,
                                            const lock_options& options) {
  return std::make_unique<leadership>(client, name, options);
}

}  // namespace

const std::vector<flavour>& flavours() {
  static const std::vector<flavour> all{
      {"mutex", needs::mutex, make_mutex, [](const capabilities&) { return true; }},
      {"fair_mutex", needs::rules, make_fair, [](const capabilities& caps) { return caps.fair; }},
      {"writer", needs::roles, make_writer, [](const capabilities&) { return true; }},
      {"one_permit", needs::rules, make_permit,
       [](const capabilities& caps) { return caps.permits; }},
      {"leader", needs::roles, make_leader,
       [](const capabilities& caps) { return caps.reports_holders; }},
  };
  return all;
}

std::vector<exclusive_setup> exclusive_setups() {
  std::vector<exclusive_setup> all;
  for (const store_setup& store : store_setups()) {
    const needs most = rounds(store.flavours, needs::roles);
    for (const flavour& each : flavours()) {
      if (each.told_apart_by >= most) all.emplace_back(store, each);
    }
  }
  return all;
}

std::string name_of_exclusive(const testing::TestParamInfo<exclusive_setup>& info) {
  return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name;
}

}  // namespace holdfast::test
