// The engine under torture: servers that the run starts, or existing ones behind a URL; and what
// can be done to them.
#pragma once

#include "torture/vocabulary.hpp"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::torture {

// Not thread-safe. Servers end with it, whatever happens.
class testbed {
 public:
  testbed() = default;
  testbed(const testbed&) = delete;
  testbed& operator=(const testbed&) = delete;
  virtual ~testbed() = default;

  // The URL for this client: each has its own if faults hit one client's network.
  [[nodiscard]] virtual std::string url(std::uint32_t client) const = 0;
  // A URL that no fault affects.
  [[nodiscard]] virtual std::string quiet_url() const = 0;

  // Faults of clients (signals, full disks) are up to the run and always possible.
  [[nodiscard]] virtual bool can(fault what) const = 0;
  // After it the engine may have forgotten grants: a stated limit. Clients that held a lock
  // meanwhile are judged only by their fences.
  [[nodiscard]] virtual bool forgets(fault what) const;

  // May throw std::runtime_error: then the run cannot go on.
  virtual void begin(fault what, std::uint32_t target) = 0;
  virtual void end(fault what, std::uint32_t target) = 0;
};

// The words of --start.
const std::vector<std::string>& engines();

// A program that it needs is not on this machine.
class missing_program : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws missing_program, or std::runtime_error if a server does not start.
std::unique_ptr<testbed> start_testbed(const std::string& engine, std::uint32_t clients);
// Servers that are not ours: nothing is done to them, but with one host clients go through a proxy.
std::unique_ptr<testbed> foreign_testbed(const std::string& url, std::uint32_t clients);

}  // namespace holdfast::torture
