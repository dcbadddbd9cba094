// The page about a run: one file, with nothing from elsewhere.
#pragma once

#include "torture/judge.hpp"
#include "torture/run_record.hpp"

#include <filesystem>
#include <string>

namespace holdfast::torture {

std::string report_page(const run_record& told, const verdict& given);
// Throws std::runtime_error if it cannot be written.
void save_report(const run_record& told, const verdict& given, const std::filesystem::path& file);

}  // namespace holdfast::torture
