#include "storage/writer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "formats/links_string.h"

namespace rodeo::storage {

namespace {

// The directory, independent of spelling: "x", "./x" and "../here/x" are in the same directory.
std::string directory_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  const std::filesystem::path found = std::filesystem::weakly_canonical(directory, error);
  return (error ? directory.lexically_normal() : found).string();
}

}  // namespace

FileOrigin FileOrigin::of(const std::string& path, const formats::EventFileHeader& header, std::uint64_t bytes) {
  return {.path = path,
          .directory = directory_of(path),
          .core_name = header.core_name,
          .guid = std::string(header.free_string("GUID")),
          .file_number = header.file_number,
          .run_number = header.run.run_number,
          .bytes = bytes};
}

Result<std::vector<WriterFiles>> by_writer(std::vector<FileOrigin> files) {
  std::map<std::string, const FileOrigin*> by_guid;
  for (const FileOrigin& file : files) {
    if (file.run_number != files.front().run_number) {
      return std::unexpected(
          Error{"data.other_run",
                fmt::format("is of run {}, {} is of run {}", file.run_number, files.front().path, files.front().run_number),
                file.path, "L1 ids of two runs are unrelated: merge one run at a time"});
    }
    const auto [same, is_new] = by_guid.emplace(file.guid.empty() ? file.path : file.guid, &file);
    if (!is_new) {
      return std::unexpected(Error{
          "data.same_file",
          same->second->path == file.path ? "was named twice" : "is the same file as " + same->second->path + " (one GUID)",
          file.path, "name each file once"});
    }
  }
  std::map<std::pair<std::string, std::string>, WriterFiles> writers;
  std::map<std::string, int> names;
  for (FileOrigin& file : files) {
    WriterFiles& writer = writers[{file.core_name, file.directory}];
    if (writer.files.empty()) ++names[file.core_name];
    writer.bytes += file.bytes;
    writer.files.push_back(std::move(file));
  }
  std::vector<WriterFiles> all;
  for (auto& [key, writer] : writers) {
    const std::filesystem::path named = std::filesystem::path(writer.files.front().path).parent_path();
    writer.name = names[key.first] == 1 || named.empty() ? key.first : (named / key.first).lexically_normal().string();
    std::ranges::stable_sort(writer.files, {}, &FileOrigin::file_number);
    for (std::size_t i = 1; i < writer.files.size(); ++i) {
      const FileOrigin& before = writer.files[i - 1];
      const FileOrigin& file = writer.files[i];
      if (before.file_number == file.file_number) {
        return std::unexpected(
            Error{"data.same_file", fmt::format("is file {} of its sequence, and so is {}", file.file_number, before.path),
                  file.path, "name only one of them, or keep the files of each writer in a directory of their own"});
      }
      for (std::uint32_t number = before.file_number + 1; number < file.file_number && writer.absent.size() < 100; ++number)
        writer.absent.push_back(number);
    }
    all.push_back(std::move(writer));
  }
  return all;
}

std::set<SourceId> robs_of(const formats::EventFileHeader& header) {
  std::set<SourceId> robs;
  for (const std::string& text : header.free_strings) {
    if (const auto links = formats::read_links_string(text)) robs.insert(links->source_id);
  }
  return robs;
}

}  // namespace rodeo::storage
