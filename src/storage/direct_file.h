// One file that is written in large aligned blocks past the page cache, with room for its end kept in reserve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "base/fd_socket.h"

namespace rodeo::storage {

/// How much of a request was there.
enum class Room : std::uint8_t {
  reserved,  ///< the disk holds it for this file
  unknown,   ///< this file system cannot reserve: writing will tell
  full,      ///< not there (no space, quota, or less than the minimum would stay free)
};

/// A new file, written from its start in blocks. O_DIRECT where the file system takes it; else buffered, with what was
/// written pushed to the disk at once and dropped from the page cache, so that neither the cache nor a late flush stalls
/// anybody. Everything blocks. make_room() may be called by one thread while one other calls the rest: they share no state.
class DirectFile {
 public:
  static constexpr std::size_t kAlign = 4096;
  /// Reserved behind what the file holds where `min_free_bytes` is less, and given back by finish(): the run's record finds room on a disk that its
  /// events have filled.
  static constexpr std::uint64_t kKeptForRecord = 256 << 10;

  struct Settings {
    bool direct = true;                     ///< try O_DIRECT
    std::uint64_t reserve_step = 64 << 20;  ///< bytes reserved at once; 0: nothing is reserved
    std::uint64_t min_free_bytes = 0;       ///< stop while so much is still free on the file system
  };

  /// Fails if the file is there already or cannot be made (readout.cannot_write).
  static Result<DirectFile> create(const std::string& path, const Settings& settings);

  const std::string& path() const { return path_; }
  bool direct() const { return direct_; }

  /// Sees to it that the file may grow to `bytes`. Reserves a step ahead, so that most calls compare two numbers; a smaller one where the
  /// disk has not so much left.
  Room make_room(std::uint64_t bytes);

  struct Written {
    std::size_t bytes = 0;  ///< of the block that are in the file
    int error = 0;          ///< errno; 0: all of them
    bool earlier = false;   ///< the error is one of blocks that were written before, which may not be on the disk
  };
  /// Appends a block: a multiple of kAlign, aligned to it, all but the last one of a file.
  Written write(std::span<const std::byte> block);

  /// The next block is written at `offset`, a multiple of kAlign that was written before: over what is there.
  void go_back_to(std::uint64_t offset);

  /// Waits until all that was written is on the disk. The errno, or 0.
  int sync();

  /// Cuts the file to its true size and gives back what was reserved beyond; no block may follow. The errno, or 0.
  int finish(std::uint64_t size);

  /// After finish(): writes a few bytes at the end or over old ones. The errno, or 0.
  int patch(std::uint64_t offset, std::span<const std::byte> bytes);

  /// Bytes that this user may still write to the file system.
  std::uint64_t free_bytes() const;

  int descriptor() const { return fd_.get(); }

 private:
  DirectFile(std::string path, base::UniqueFd fd, bool direct, const Settings& settings)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        direct_(direct),
        can_reserve_(settings.reserve_step > 0),
        settings_(settings),
        step_(settings.reserve_step) {}

  void go_through_cache();

  std::string path_;
  base::UniqueFd fd_;
  bool direct_ = false;
  bool can_reserve_ = true;
  Settings settings_;
  std::uint64_t step_ = 0;  // reserved ahead
  std::uint64_t reserved_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t flushed_ = 0;  // buffered: up to here on disk and out of the cache
};

/// True for the errors that mean that no more fits on the disk: no space, quota. A file at its size limit is no full disk: it reserves no more, the
/// next one does.
bool means_full(int error);

}  // namespace rodeo::storage
