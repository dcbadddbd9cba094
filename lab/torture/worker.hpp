// A client process of a torture: the program itself, started again. Takes locks, holds them, writes
// to a resource that checks fences, gives them back, and records all of it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace holdfast::torture {

// Until the board says that it is over. The exit code: 0; 122 if the engine refuses it for good.
int work(const std::filesystem::path& folder, std::int32_t process);

}  // namespace holdfast::torture
