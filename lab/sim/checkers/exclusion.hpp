// At most one valid holder: hold.valid() is never true on two machines at once for one mutex, nor
// for a reader and a writer, nor for more permits than there are.
#pragma once

#include "sim/checker.hpp"
#include "sim/checkers/valid_holders.hpp"

namespace holdfast::sim {

// For one kind of resource each.
class validity_checker : public checker {
 public:
  validity_checker(const facts& world, resource_kind kind) : checker(world), kind_(kind) {}

  void see(const record& line) final {
    const bool look = holders_.see(line);
    if (!look || found() || line.resource == nobody) return;
    const auto& resource = world().resources[static_cast<std::size_t>(line.resource)];
    if (resource.kind == kind_) look_at(line, resource);
  }

 protected:
  virtual void look_at(const record& line, const facts::resource& resource) = 0;

  template <class Condition>
  void deny_beside(const record& line, Condition clashes) {
    const auto& all = holders_.valid();
    const auto self = all.find(line.hold);
    if (self == all.end()) return;
    for (const auto& [hold, other] : all) {
      if (hold == line.hold || other.resource != line.resource) continue;
      if (clashes(self->second, other)) {
        return fail(line.at,
                    "resource " + std::to_string(line.resource) + ": hold " +
                        std::to_string(line.hold) + " of client " +
                        std::to_string(self->second.process) + " beside hold " +
                        std::to_string(hold) + " of client " + std::to_string(other.process),
                    {hold, line.hold});
      }
    }
  }

  [[nodiscard]] const valid_holders& who() const noexcept { return holders_; }

 private:
  const resource_kind kind_;
  valid_holders holders_;
};

class exclusion final : public validity_checker {
 public:
  explicit exclusion(const facts& world) : validity_checker(world, resource_kind::mutex) {}
  [[nodiscard]] std::string_view name() const noexcept override {
    return "at most one valid holder";
  }

 private:
  void look_at(const record& line, const facts::resource&) override {
    deny_beside(line, [](const valid_holder&, const valid_holder&) { return true; });
  }
};

class readers_writers final : public validity_checker {
 public:
  explicit readers_writers(const facts& world) : validity_checker(world, resource_kind::shared) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "reader-writer"; }

 private:
  void look_at(const record& line, const facts::resource&) override {
    deny_beside(line, [](const valid_holder& one, const valid_holder& other) {
      return one.mode == spi::mode::exclusive || other.mode == spi::mode::exclusive;
    });
  }
};

class permits final : public validity_checker {
 public:
  explicit permits(const facts& world) : validity_checker(world, resource_kind::semaphore) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "permits"; }

 private:
  void look_at(const record& line, const facts::resource& resource) override {
    std::uint32_t sum = 0;
    std::vector<std::int32_t> holds;
    for (const auto& [hold, each] : who().valid()) {
      if (each.resource != line.resource) continue;
      sum += each.permits;
      holds.push_back(hold);
    }
    if (sum > resource.max) {
      fail(line.at,
           "resource " + std::to_string(line.resource) + ": " + std::to_string(sum) + " of " +
               std::to_string(resource.max) + " permits valid at once",
           std::move(holds));
    }
  }
};

}  // namespace holdfast::sim
