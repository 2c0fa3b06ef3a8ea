// Many data files as one sequence of events. Only a few are open at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "columns.h"
#include "data_file.h"

namespace rodeo::python::data {

/// The place of an event: its file and its number there.
struct Place {
  std::size_t file = 0;
  std::size_t event = 0;
};

/// A walk along the events [index, stop) in steps. Damaged events count as places, too, so that damage does not change which
/// events a walk reads.
struct Walk {
  std::uint64_t index = 0;  ///< index of the event at `at`
  std::uint64_t stop = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t step = 1;
  Place at{};
  std::uint64_t to_pass = 0;  ///< places to skip before the next event; survives an error in between
};

/// Any thread, one at a time: the caller holds `mutex`, and must not wait for it while it holds the GIL.
class FileSet {
 public:
  /// `patient`: a file that is being written may still lack its first records; then it has no events.
  FileSet(std::vector<std::string> paths, const FileOptions& options, bool skip, bool patient);

  std::mutex mutex;

  std::size_t files() const { return paths_.size(); }
  const std::string& path(std::size_t file) const { return paths_[file]; }
  void add(std::string path) {
    paths_.push_back(std::move(path));
    counts_.emplace_back();
  }

  /// Opens a file if it is not open. Throws FaultError if it cannot be read. If damage is skipped, a damaged file is noted
  /// once and nullptr returned, but a missing or foreign file throws.
  DataFile* open(std::size_t file);

  /// True if no more events of a file will come.
  bool closed(std::size_t file);

  /// The number of events of a file; damaged ones count, too.
  std::size_t count(std::size_t file);

  /// The place of event `index` of all, if it exists; files before it are walked to their ends.
  std::optional<Place> place(std::uint64_t index);
  /// The number of events in the files before this one.
  std::uint64_t before(std::size_t file);

  /// An event by its place. Damage throws FaultError, even if it is skipped elsewhere. nullptr: there is no such event.
  std::shared_ptr<EventParts> event(const Place& place);

  /// The next event of a walk; the walk continues after it, also after an error. nullptr: the end. Skipped places are not
  /// decoded. Damage is noted if it is skipped, else thrown, each once per walk.
  std::shared_ptr<EventParts> next(Walk& walk);

  /// Appends up to `most` events of a walk to columns. False: the end. Throws like next(); events appended before stay.
  bool append(Walk& walk, std::size_t most, Columns& columns);

  std::vector<Place> find(std::uint32_t l1id);

  /// The faults skipped so far: the first ones in full, and the count of all.
  const std::vector<Fault>& errors() const { return errors_; }
  std::uint64_t error_count() const { return noted_.size(); }

 private:
  void note(std::size_t file, std::optional<std::size_t> event, const Fault& fault);
  bool at_event(Place& at);
  bool to_next(Walk& walk);
  template <typename Take>
  bool take(Walk& walk, Take&& take);

  static constexpr std::size_t kMostOpen = 8;
  static constexpr std::size_t kMostErrors = 10'000;

  std::vector<std::string> paths_;
  std::vector<std::optional<std::size_t>> counts_;  // number of events of each file; empty if unknown
  std::vector<std::uint64_t> before_;               // for the first files: number of events up to the end of each
  FileOptions options_;
  bool skip_;
  bool patient_;
  std::list<std::pair<std::size_t, std::unique_ptr<DataFile>>> open_;  // open files, the last used one first
  std::vector<Fault> errors_;
  std::map<std::pair<std::size_t, std::size_t>, bool> noted_;
};

}  // namespace rodeo::python::data
