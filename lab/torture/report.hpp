// What a run amounts to, and the page about it: one file, with nothing from elsewhere.
#pragma once

#include "torture/judge.hpp"
#include "torture/run_record.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::torture {

// What it amounts to: rows of a name and a text.
std::vector<std::vector<std::string>> summary_of(const run_record& told, const verdict& given);

std::string report_page(const run_record& told, const verdict& given);
// Throws std::runtime_error if it cannot be written.
void save_report(const run_record& told, const verdict& given, const std::filesystem::path& file);

}  // namespace holdfast::torture
