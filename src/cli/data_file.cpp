#include "cli/data_file.h"

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/units.h"
#include "cli/data.h"
#include "storage/file_recover.h"

namespace rodeo::cli {

Result<DataFile> open_any_file(const std::string& path) {
  auto mapped = RODEO_TRY(base::MappedFile::open(path));
  DataFile file{.path = path, .mapped = std::move(mapped)};
  file.kind = storage::file_kind(file.bytes());
  return file;
}

Error no_data_error(const DataFile& file) { return storage::no_data_error(file.kind, file.bytes(), file.path); }

Error damaged_error(std::string code, std::string what, const DataFile& file) {
  return {std::move(code), std::move(what), file.path,
          storage::find_event_marker(file.bytes()) ? "save its events: rodeo data recover " + file.path
                                                   : "it contains no event marker: there is nothing to recover"};
}

Result<DataFile> open_data_file(const std::string& path) {
  DataFile file = RODEO_TRY(open_any_file(path));
  if (storage::is_ours(file.kind)) return file;
  return std::unexpected(no_data_error(file));
}

std::string_view pattern_name(formats::PagePattern pattern) {
  using enum formats::PagePattern;
  switch (pattern) {
    case ddg: return "ddg";
    case words: return "words";
    case cru_internal: return "internal";
    case provable: return "provable";
    case unknown: break;
  }
  return "unknown";
}

Result<std::vector<std::string>> expanded(const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (name.find_first_of("*?[") == std::string::npos || ::access(name.c_str(), F_OK) == 0) {
      files.push_back(name);
      continue;
    }
    glob_t found{};
    const int failed = ::glob(name.c_str(), GLOB_NOSORT, nullptr, &found);
    const std::size_t first = files.size();
    if (failed == 0) files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(first), files.end());
    if (files.size() == first) {
      return std::unexpected(
          Error{"data.no_files", "no file matches the pattern", name, "relative names start at the working directory"});
    }
  }
  return files;
}

std::uint64_t bytes_of(const std::vector<std::string>& files) {
  std::uint64_t bytes = 0;
  for (const std::string& path : files) {
    std::error_code absent;
    const std::uintmax_t size = std::filesystem::file_size(path, absent);
    if (!absent) bytes += size;
  }
  return bytes;
}

Result<ExitCode> for_each_file(const std::vector<std::string>& paths,
                               const std::function<Result<ExitCode>(const std::string&)>& work) {
  std::size_t good = 0;
  bool not_verified = false;
  std::optional<Error> failure;
  for (const std::string& path : paths) {
    const auto done = work(path);
    if (!done) {
      if (failure || paths.size() > 1) print_error(done.error());
      failure = done.error();
    } else if (*done == ExitCode::not_verified) {
      not_verified = true;
    } else {
      ++good;
    }
  }
  if (not_verified) return ExitCode::not_verified;
  if (!failure) return ExitCode::done;
  if (paths.size() == 1) return std::unexpected(*failure);
  return good > 0 ? ExitCode::partial : exit_code_of(failure->code);
}

void print_note(const std::string& text) {
  std::fflush(stdout);
  say("note: {}\n", text);
}

std::string grouped(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, " ");
  return text;
}

std::string counted(std::uint64_t count, const std::string& noun) {
  return grouped(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string size_text(std::uint64_t bytes) {
  return bytes < 10000 ? counted(bytes, "byte")
                       : base::format_quantity(static_cast<double>(bytes), "B") + " (" + counted(bytes, "byte") + ")";
}

}  // namespace rodeo::cli
