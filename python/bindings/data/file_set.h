// Many data files as one sequence of events. A few are open at a time, however many there are.
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

/// An event by the file that it is in.
struct Place {
  std::size_t file = 0;
  std::size_t event = 0;
};

/// Who walks along the events [index, stop) in steps. Places are counted, of damaged events too, so that a walk meets the same events whatever is damaged.
struct Walk {
  std::uint64_t index = 0;  ///< of the event at which `at` is
  std::uint64_t stop = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t step = 1;
  Place at{};
  std::uint64_t to_pass = 0;  ///< places to step over before the next event; kept here, for an error may come between
};

/// Any thread, one at a time: whoever calls holds `mutex`, and does not wait for it with Python's lock in hand.
class FileSet {
 public:
  /// `patient`: a file that is being written may still be without its first records, and has no event then.
  FileSet(std::vector<std::string> paths, const FileOptions& options, bool skip, bool patient);

  std::mutex mutex;

  std::size_t files() const { return paths_.size(); }
  const std::string& path(std::size_t file) const { return paths_[file]; }
  void add(std::string path) {
    paths_.push_back(std::move(path));
    counts_.emplace_back();
  }

  /// Opened, if it is not. Throws FaultError if it cannot be read; where damage is skipped a damaged one is noted once, and nothing returned. One that is
  /// missing or not ours throws.
  DataFile* open(std::size_t file);

  /// Whether more events of a file may come.
  bool closed(std::size_t file);

  /// Events of a file; damaged ones count too.
  std::size_t count(std::size_t file);

  /// Where event `index` of all is, if there are so many; files before it are walked to their ends.
  std::optional<Place> place(std::uint64_t index);
  /// How many events the files before this one have.
  std::uint64_t before(std::size_t file);

  /// An event by its place: throws FaultError, whatever is done with damage elsewhere. Nothing: there is none.
  std::shared_ptr<EventParts> event(const Place& place);

  /// The next event of a walk, which goes on behind it, also after an error. Nothing: the end. What is stepped over is not looked into.
  /// Where damage is skipped it is noted; else it is thrown, each once on the way.
  std::shared_ptr<EventParts> next(Walk& walk);

  /// Looks at up to `most` events of a walk and appends them to columns. False: the end. Throws as next() does; what was appended before stays.
  bool append(Walk& walk, std::size_t most, Columns& columns);

  std::vector<Place> find(std::uint32_t l1id);

  /// What was skipped so far: the first of it in full, all of it counted.
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
  std::vector<std::optional<std::size_t>> counts_;  // once known
  std::vector<std::uint64_t> before_;               // of the first files: events up to the end of each
  FileOptions options_;
  bool skip_;
  bool patient_;
  std::list<std::pair<std::size_t, std::unique_ptr<DataFile>>> open_;  // the one that was used last is first
  std::vector<Fault> errors_;
  std::map<std::pair<std::size_t, std::size_t>, bool> noted_;
};

}  // namespace rodeo::python::data
