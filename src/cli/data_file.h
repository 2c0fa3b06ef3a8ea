// What the verbs of `rodeo data` share: opening files, judging what they are, working through a list of them.
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

/// Why a file holds no data: error data.empty, data.zeros, data.other_version, data.unknown_kind.
Error no_data_error(const DataFile& file);

/// An event file that cannot be read on, and whether there is something to save in it.
Error damaged_error(std::string code, std::string what, const DataFile& file);

/// Opens an event file, a recording of blocks or a dump of superpages; anything else is an error.
Result<DataFile> open_data_file(const std::string& path);

/// What the payload of pages is, as `rodeo card bench dma --pattern` calls it.
std::string_view pattern_name(formats::PagePattern pattern);

/// Files that patterns mean ("run*.data", in quotation marks where a shell would find too many), sorted, in the place of the pattern; every other
/// name, and that of a file that is there, as it is. Error data.no_files: a pattern fits none.
Result<std::vector<std::string>> expanded(const std::vector<std::string>& names);

/// Of all files that are there, for those who say how far they are.
std::uint64_t bytes_of(const std::vector<std::string>& files);

/// Does the work for each file. What fails is printed at once; the rest goes on. The worst outcome decides: a file that did not
/// verify, then failed (partial if another file went well), then done.
Result<ExitCode> for_each_file(const std::vector<std::string>& paths,
                               const std::function<Result<ExitCode>(const std::string&)>& work);

/// "1 234 567" with thin grouping, for people.
std::string grouped(std::uint64_t value);

/// "1 event", "2 events".
std::string counted(std::uint64_t count, const std::string& noun);

/// "912.3 MB (912 345 678 bytes)".
std::string size_text(std::uint64_t bytes);

}  // namespace rodeo::cli
