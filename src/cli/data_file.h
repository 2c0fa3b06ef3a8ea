// Common parts of the verbs of `rodeo data`: open files, find their kind, process a list of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "cli/command.h"
#include "formats/superpage_check.h"
#include "storage/file_verify.h"

namespace rodeo::cli {

struct DataFile {
  std::string path;
  base::MappedFile mapped;
  storage::FileKind kind = storage::FileKind::foreign;

  std::span<const std::byte> bytes() const { return mapped.bytes(); }
};

/// Opens a file of any kind. Errors of MappedFile.
Result<DataFile> open_any_file(const std::string& path);

/// The reason why a file has no data: error data.empty, data.zeros, data.other_version, data.unknown_kind.
Error no_data_error(const DataFile& file);

/// The error for an event file that cannot be read further; says whether recovery can save events.
Error damaged_error(std::string code, std::string what, const DataFile& file);

/// Opens an event file, a recording of blocks or a dump of superpages; anything else is an error.
Result<DataFile> open_data_file(const std::string& path);

/// The name of a payload pattern for `rodeo card bench dma --pattern`.
std::string_view pattern_name(formats::PagePattern pattern);

/// Replaces each pattern ("run*.data", in quotation marks if a shell would expand it to too many names) by its files,
/// sorted. Keeps every other name, and the name of an existing file. Error data.no_files: a pattern matches no file.
Result<std::vector<std::string>> expanded(const std::vector<std::string>& names);

/// The size of all existing files together, for progress lines.
std::uint64_t bytes_of(const std::vector<std::string>& files);

/// Calls `work` for each file. Errors are printed at once, and the next file follows. The worst outcome is returned:
/// not_verified, then failed (partial if another file succeeded), then done.
Result<ExitCode> for_each_file(const std::vector<std::string>& paths,
                               const std::function<Result<ExitCode>(const std::string&)>& work);

/// "1 234 567" with thin grouping, for people.
std::string grouped(std::uint64_t value);

/// "1 event", "2 events".
std::string counted(std::uint64_t count, const std::string& noun);

/// "912.3 MB (912 345 678 bytes)".
std::string size_text(std::uint64_t bytes);

}  // namespace rodeo::cli
