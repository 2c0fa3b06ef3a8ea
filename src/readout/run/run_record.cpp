#include "readout/run/run_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/mapped_file.h"
#include "base/sha256.h"
#include "settings/effective.h"
#include "settings/text_file.h"
#include "storage/file_seal.h"

namespace rodeo::readout {

using settings::read_text_file;
using settings::Table;

namespace {

namespace fs = std::filesystem;

std::string text_of(const Json& value) { return value.dump(0); }

std::string hash_of(const std::string& text) { return base::sha256_hex(std::as_bytes(std::span(text))); }

/// The values as a flat list. Only run and readout: settings of other programs in the same file do not belong to this run.
Json values_of(const Configuration& configuration) {
  Json values = Json::object();
  for (const char* path : {"run", "readout"}) {
    const Table* const table = configuration.table(path);
    if (table == nullptr) continue;
    settings::add_values(*table, values);
  }
  return values;
}

std::optional<std::string_view> value_of(const std::vector<std::string>& strings, std::string_view key) {
  for (const std::string& text : strings) {
    if (text.starts_with(key) && text.size() > key.size() && text[key.size()] == '=')
      return std::string_view(text).substr(key.size() + 1);
  }
  return std::nullopt;
}

std::string number_name(int number) { return number == 1 ? "run.json" : fmt::format("run-{}.json", number); }

Result<void> write_new(const fs::path& directory, const std::string& text) {
  const std::string part = (directory / fmt::format(".run.{}.part", ::getpid())).string();
  if (auto written = storage::write_file(part, std::as_bytes(std::span(text))); !written) return written;
  for (int number = 1;; ++number) {
    auto named = storage::rename_new(part, (directory / number_name(number)).string());
    if (named) return {};
    if (named.error().code == "file.exists") continue;
    ::unlink(part.c_str());
    return named;
  }
}

Json file_json(const FragmentConsumer::File& file) {
  return Json::object({{"name", fs::path(file.path).filename().string()},
                       {"size_bytes", file.bytes},
                       {"events", file.events},
                       {"adler32", fmt::format("{:08x}", file.adler32)}});
}

}  // namespace

bool is_run_record(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == "run.json" || (name.starts_with("run-") && name.ends_with(".json"));
}

std::vector<std::string> run_strings(const Configuration& configuration, const base::PluginHost& plugins) {
  std::vector<std::string> strings;
  Json libraries = Json::array();
  for (const base::PluginHost::Plugin& plugin : plugins.loaded()) {
    const auto library = base::MappedFile::open(plugin.path.string());
    libraries.push_back(Json::object({{"name", plugin.name},
                                      {"path", plugin.path.string()},
                                      {"sha256", library ? Json(base::sha256_hex(library->bytes())) : Json()}}));
  }
  if (!libraries.elements().empty()) strings.push_back(fmt::format("{}={}", kPluginsKey, text_of(libraries)));
  const std::string values = text_of(values_of(configuration));
  strings.push_back(fmt::format("{}={}", kConfigurationHashKey, hash_of(values)));
  strings.push_back(fmt::format("{}={}", kConfigurationKey, values));
  return strings;
}

Result<void> write_run_files(const Json& report, const std::vector<FragmentConsumer::File>& files,
                             const std::vector<std::string>& strings) {
  Json record = report;
  record["software"] = std::string(value_of(strings, kSoftwareKey).value_or(""));
  const auto parsed = [&](std::string_view key) {
    const auto value = Json::parse(value_of(strings, key).value_or("null"));
    return value ? *value : Json();
  };
  record["plugins"] = parsed(kPluginsKey);
  record["configuration_sha256"] = std::string(value_of(strings, kConfigurationHashKey).value_or(""));
  record["configuration"] = parsed(kConfigurationKey);
  std::set<fs::path> directories;
  for (const FragmentConsumer::File& file : files) directories.insert(fs::path(file.path).parent_path());
  for (const fs::path& directory : directories) {
    record["files"] = Json::array();
    for (const FragmentConsumer::File& file : files) {
      if (fs::path(file.path).parent_path() == directory) record["files"].push_back(file_json(file));
    }
    if (auto written = write_new(directory, record.dump() + "\n"); !written) return written;
  }
  return {};
}

std::string why_no_record(const fs::path& file) {
  if (file.extension() != ".writing") return "no run.json in its directory names this file";
  std::error_code ignored;
  int number = 1;
  while (fs::exists(file.parent_path() / number_name(number), ignored)) ++number;
  return fmt::format("{} is missing: the run goes on, or was killed before it could write its report", number_name(number));
}

std::optional<Json> RunRecords::report_of(const fs::path& file) {
  const fs::path directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (directory_ != directory) read_directory(directory);
  const auto found = by_file_.find(file.filename().string());
  if (found == by_file_.end()) return std::nullopt;
  Json record = records_[found->second.record];
  record["files"] = Json::array_of(std::vector<Json>{found->second.file});
  return record;
}

void RunRecords::read_directory(const fs::path& directory) {
  directory_ = directory;
  records_.clear();
  by_file_.clear();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (!is_run_record(entry.path()) || !entry.is_regular_file(ignored)) continue;
    const auto text = read_text_file(entry.path());
    auto record = text ? Json::parse(*text) : std::unexpected(text.error());
    const Json* const files = record ? record->find("files") : nullptr;
    if (files == nullptr) continue;
    for (const Json& one : files->elements()) {
      const Json* const name = one.find("name");
      if (name != nullptr) by_file_.emplace(name->string(), Entry{records_.size(), one});
    }
    (*record)["files"] = Json::array();
    records_.push_back(*std::move(record));
  }
}

}  // namespace rodeo::readout
