// The summary of a run, and the page about it: one self-contained file.
#pragma once

#include "torture/judge.hpp"
#include "torture/run_record.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::torture {

// The summary: rows of a name and a text.
std::vector<std::vector<std::string>> summary_of(const run_record& told, const verdict& given);

std::string report_page(const run_record& told, const verdict& given);
// Throws std::runtime_error if it cannot be written.
void save_report(const run_record& told, const verdict& given, const std::filesystem::path& file);

}  // namespace holdfast::torture
