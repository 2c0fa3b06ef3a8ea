#include "file_set.h"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace rodeo::python::data {

namespace {

constexpr std::uint64_t kNearTheFront = 1000;
constexpr std::size_t kWholeFile = ~std::size_t{0};
constexpr std::string_view kWriting = ".writing";

/// True if the file exists, is Rodeo's and is damaged. A missing or foreign file is the caller's mistake and must not look
/// empty.
bool is_damage(const Error& error) {
  return error.code == "file.shrunk" || error.code.starts_with("formats.") ||
         (error.code.starts_with("data.") && error.code != "data.unknown_kind" && error.code != "data.other_version");
}

/// A file that was being written may have got its final name.
void follow_name(std::string& path) {
  if (!path.ends_with(kWriting) || ::access(path.c_str(), F_OK) == 0) return;
  const std::string closed = path.substr(0, path.size() - kWriting.size()) + ".data";
  if (::access(closed.c_str(), F_OK) == 0) path = closed;
}

}  // namespace

FileSet::FileSet(std::vector<std::string> paths, const FileOptions& options, bool skip, bool patient)
    : paths_(std::move(paths)), counts_(paths_.size()), options_(options), skip_(skip), patient_(patient) {}

void FileSet::note(std::size_t file, std::optional<std::size_t> event, const Fault& fault) {
  const bool is_new = noted_.emplace(std::pair(file, event.value_or(kWholeFile)), true).second;
  if (is_new && errors_.size() < kMostErrors) errors_.push_back(fault);
}

DataFile* FileSet::open(std::size_t file) {
  if (file >= files()) throw std::out_of_range("there is no such file");
  const auto found = std::ranges::find(open_, file, [](const auto& one) { return one.first; });
  if (found != open_.end()) {
    open_.splice(open_.begin(), open_, found);
    return open_.front().second.get();
  }
  follow_name(paths_[file]);
  try {
    auto opened = DataFile::open(paths_[file], options_);
    if (open_.size() >= kMostOpen) open_.pop_back();
    open_.emplace_front(file, std::move(opened));
    return open_.front().second.get();
  } catch (const FaultError& error) {
    if (patient_ && paths_[file].ends_with(kWriting) && error.fault.error.code.starts_with("data.")) return nullptr;
    if (!skip_ || !is_damage(error.fault.error)) throw;
    note(file, std::nullopt, error.fault);
    counts_[file] = 0;
    return nullptr;
  }
}

bool FileSet::closed(std::size_t file) {
  const DataFile* const opened = open(file);
  return opened == nullptr ? counts_[file].has_value() : opened->closed();
}

std::size_t FileSet::count(std::size_t file) {
  if (counts_[file]) return *counts_[file];
  DataFile* const opened = open(file);
  if (opened == nullptr) return 0;
  const std::size_t count = opened->count(true);
  if (opened->closed() || opened->fault()) counts_[file] = count;
  return count;
}

std::uint64_t FileSet::before(std::size_t file) {
  // before_[i]: number of events in the files up to and including i.
  const std::size_t known = std::min(file, before_.size());
  std::uint64_t events = known == 0 ? 0 : before_[known - 1];
  for (std::size_t i = known; i < file; ++i) {
    events += count(i);
    if (counts_[i] && before_.size() == i) before_.push_back(events);
  }
  return events;
}

std::optional<Place> FileSet::place(std::uint64_t index) {
  auto file = static_cast<std::size_t>(std::ranges::upper_bound(before_, index) - before_.begin());
  std::uint64_t first = file == 0 ? 0 : before_[file - 1];
  for (; file < files(); ++file) {
    // For an early event of a file, walks from the file's beginning. For a later one, counts all events of the file.
    const std::uint64_t there = index - first;
    if (!counts_[file] && there < kNearTheFront) {
      DataFile* const opened = open(file);
      if (opened != nullptr && opened->has(there)) return Place{file, static_cast<std::size_t>(there)};
    }
    const std::uint64_t events = count(file);
    if (counts_[file] && before_.size() == file) before_.push_back(first + events);
    if (index - first < events) return Place{file, static_cast<std::size_t>(index - first)};
    first += events;
  }
  return std::nullopt;
}

std::shared_ptr<EventParts> FileSet::event(const Place& place) {
  if (place.file >= files()) return nullptr;
  DataFile* const file = open(place.file);
  return file != nullptr && file->has(place.event) ? file->event(place.event) : nullptr;
}

// Moves `at` to an existing event; reports files that cannot be read or end early on the way.
bool FileSet::at_event(Place& at) {
  while (at.file < files()) {
    DataFile* file = nullptr;
    try {
      file = open(at.file);
    } catch (const FaultError&) {
      at = {at.file + 1, 0};
      throw;
    }
    if (file != nullptr && file->has(at.event)) return true;
    const std::size_t ended = at.file;
    at = {at.file + 1, 0};
    if (file == nullptr) continue;
    if (const auto fault = file->fault()) {
      if (!skip_) throw FaultError(*fault);
      note(ended, std::nullopt, *fault);
    }
  }
  return false;
}

// Moves a walk to its next event. False: the end.
bool FileSet::to_next(Walk& walk) {
  while (walk.index < walk.stop && at_event(walk.at)) {
    if (walk.to_pass == 0) return true;
    --walk.to_pass;
    ++walk.at.event;
    ++walk.index;
  }
  return false;
}

// Takes the current event of a walk and moves the walk after it. False: the event is damaged and skipped.
template <typename Take>
bool FileSet::take(Walk& walk, Take&& take) {
  const Place here = walk.at;
  const std::uint64_t number = walk.index;
  ++walk.at.event;
  ++walk.index;
  walk.to_pass = walk.step - 1;
  try {
    take(*open(here.file), here, number);
    return true;
  } catch (const FaultError& error) {
    if (!error.fault.event) walk.at = {here.file + 1, 0};
    if (!skip_) throw;
    note(here.file, error.fault.event, error.fault);
    return false;
  }
}

std::shared_ptr<EventParts> FileSet::next(Walk& walk) {
  std::shared_ptr<EventParts> event;
  while (to_next(walk)) {
    if (take(walk, [&](DataFile& file, const Place& here, std::uint64_t) { event = file.event(here.event); })) return event;
  }
  return nullptr;
}

bool FileSet::append(Walk& walk, std::size_t most, Columns& columns) {
  for (std::size_t looked = 0; looked < most; ++looked) {
    if (!to_next(walk)) return false;
    take(walk, [&](DataFile& file, const Place& here, std::uint64_t number) {
      file.append(here.event, number, static_cast<std::uint32_t>(here.file), columns);
    });
  }
  return walk.index < walk.stop;
}

std::vector<Place> FileSet::find(std::uint32_t l1id) {
  std::vector<Place> found;
  for (std::size_t i = 0; i < files(); ++i) {
    DataFile* const file = open(i);
    if (file == nullptr) continue;
    for (const std::size_t event : file->find(l1id)) found.push_back({i, event});
  }
  return found;
}

}  // namespace rodeo::python::data
