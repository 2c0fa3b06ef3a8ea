#include "storage/derived_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <utility>

#include "formats/event_file_records.h"
#include "formats/file_marks.h"

namespace rodeo::storage {

using namespace formats;

namespace {

bool written_by_encoder(const std::string& text) {
  constexpr std::string_view kKeys[] = {
      "GUID=", "Rodeo-CRC32=", "Rodeo-Format=", "Rodeo-Payload=", "Rodeo-Recovered=", "Stream=", "Project=", "LumiBlock="};
  return std::ranges::any_of(kKeys, [&](std::string_view key) { return text.starts_with(key); });
}

}  // namespace

EventFileSettings settings_like(const DecodedFileHeader& header) {
  EventFileSettings settings;
  settings.application = header.application;
  settings.run = header.run;
  const std::string stream(header.free_string("Stream"));
  if (const std::size_t bar = stream.find('_'); bar != std::string::npos) {
    settings.stream_type = stream.substr(0, bar);
    settings.stream_name = stream.substr(bar + 1);
  }
  if (const auto project = header.free_string("Project"); !project.empty()) settings.project = project;
  settings.lumi_block =
      static_cast<std::uint32_t>(std::strtoul(std::string(header.free_string("LumiBlock")).c_str(), nullptr, 10));
  settings.foreign_events = header.free_string(kFormatKey) != "1";
  settings.provable = ProvableMark::parse(header.free_string(kProvableKey));
  for (const std::string& text : header.free_strings) {
    if (!written_by_encoder(text)) settings.free_strings.push_back(text);
  }
  return settings;
}

DerivedTarget DerivedTarget::of(const std::filesystem::path& output) {
  const std::filesystem::path directory = output.parent_path();
  std::string name = output.filename().string();
  if (name.ends_with(".data")) name.resize(name.size() - 5);
  return {directory.empty() ? "." : directory, std::move(name)};
}

Result<DerivedFiles> DerivedFiles::create(const DerivedTarget& target, EventFileSettings settings) {
  if (target.name.empty()) {
    return std::unexpected(Error{"readout.cannot_write", "the new files have no name", target.directory.string(),
                                 "name them: --output DIRECTORY/NAME"});
  }
  settings.simple_name = target.name;
  try {
    auto sequence = std::make_unique<EventFileSequence>(EventFileSequence::Settings{
        .directory = target.directory, .files = std::move(settings), .disk = {.reserve_step = 0}, .buffer_bytes = 1 << 20});
    sequence->start();
    return DerivedFiles(target, std::move(sequence));
  } catch (const SetupError& failure) {
    return std::unexpected(failure.error());
  }
}

DerivedFiles::~DerivedFiles() {
  if (sequence_) remove_all();
}

void DerivedFiles::remove_all() {
  sequence_->close();
  std::error_code ignored;
  for (const auto& file : sequence_->status().files) std::filesystem::remove(file.path, ignored);
  const std::set<std::string> given_up = [&] {
    std::set<std::string> paths(sequence_->made().begin(), sequence_->made().end());
    // A closed file has a new name; another process may own a file with its old name now.
    for (const auto& file : sequence_->status().files) {
      paths.erase(std::filesystem::path(file.path).replace_extension(".writing").string());
    }
    return paths;
  }();
  for (const std::string& path : given_up) std::filesystem::remove(path, ignored);
  sequence_.reset();
}

Result<void> DerivedFiles::append(std::span<const std::byte> event) {
  if (sequence_->append({&event, 1}, event.size()) == EventFileSequence::Outcome::taken) {
    ++events_;
    return {};
  }
  sequence_->close();
  const EventFileSequence::Status status = sequence_->status();
  return std::unexpected(Error{
      "file.write", status.cause + "; the new files were removed", target_.directory.string(),
      status.code == "file.size_limit" ? "raise the limit: ulimit -f" : "free space there, or name another directory"});
}

Result<void> DerivedFiles::close() {
  sequence_->close();
  const EventFileSequence::Status status = sequence_->status();
  if (status.failure.empty()) return {};
  remove_all();
  return std::unexpected(Error{"file.write", status.cause + "; the new files were removed", target_.directory.string(),
                               "free space there, or name another directory"});
}

Result<std::vector<FragmentConsumer::File>> DerivedFiles::keep() {
  RODEO_TRY(close());
  EventFileSequence::Status status = sequence_->status();
  sequence_.reset();
  return std::move(status.files);
}

}  // namespace rodeo::storage
