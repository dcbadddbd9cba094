// A client process of a torture: the program itself, started again. Takes locks, holds them, writes
// to a resource that checks fences, releases them, and records all of it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace holdfast::torture {

// Runs until the board says that the run is over. The exit code: 0; 122 if the engine refuses it
// permanently.
int work(const std::filesystem::path& folder, std::int32_t process);

}  // namespace holdfast::torture
