// One file that is written in large aligned blocks past the page cache, with space reserved for its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "base/fd_socket.h"

namespace rodeo::storage {

/// The result of a request for space.
enum class Room : std::uint8_t {
  reserved,  ///< the disk holds the space for this file
  unknown,   ///< this file system cannot reserve; the space is free now, but a write may fail
  full,      ///< too little space (disk, quota, or the minimum that must stay free)
};

/// A new file, written from its start in blocks. Uses O_DIRECT if the file system supports it; else buffered: written blocks
/// go to the disk at once and leave the page cache, so that neither the cache nor a late flush delays other processes. Every
/// call blocks. make_room() may be called by one thread while another calls the rest: they share no state.
class DirectFile {
 public:
  static constexpr std::size_t kAlign = 4096;
  /// Reserved behind the file's contents if `min_free_bytes` is smaller, and given back by finish(): so the run's record
  /// fits on a disk that the events have filled.
  static constexpr std::uint64_t kKeptForRecord = 256 << 10;

  struct Settings {
    bool direct = true;                     ///< try O_DIRECT
    std::uint64_t reserve_step = 64 << 20;  ///< bytes reserved at a time; 0: none
    std::uint64_t min_free_bytes = 0;       ///< stop when less than this would stay free on the file system
  };

  /// Error readout.cannot_write: the file exists or cannot be created.
  static Result<DirectFile> create(const std::string& path, const Settings& settings);

  const std::string& path() const { return path_; }
  bool direct() const { return direct_; }

  /// Makes sure that the file may grow to `bytes`. Reserves a step ahead, so most calls only compare two numbers; a smaller
  /// step if the disk has less left.
  Room make_room(std::uint64_t bytes);

  struct Written {
    std::size_t bytes = 0;  ///< bytes of the block that were written
    int error = 0;          ///< errno; 0: all bytes are written
    bool earlier = false;   ///< the error concerns earlier blocks, which may not be on the disk
  };
  /// Appends a block, aligned to kAlign; its size is a multiple of kAlign, except the last one of a file.
  Written write(std::span<const std::byte> block);

  /// The next block overwrites the file from `offset` on, a multiple of kAlign that was written before.
  void rewind_to(std::uint64_t offset);

  /// Waits until everything written is on the disk. Returns the errno, or 0.
  int sync();

  /// Cuts the file to its true size and releases the reserved space behind it; no write() may follow. Returns the errno, or
  /// 0.
  int finish(std::uint64_t size);

  /// After finish(): writes a few bytes at the end or over old ones. Returns the errno, or 0.
  int patch(std::uint64_t offset, std::span<const std::byte> bytes);

  /// Bytes that this user can still write to the file system.
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

  void use_cache();
  /// Used if space cannot be reserved: checks whether the disk has space for the file up to `bytes`, and a step ahead.
  Room check_space(std::uint64_t bytes);

  std::string path_;
  base::UniqueFd fd_;
  bool direct_ = false;
  bool can_reserve_ = true;
  Settings settings_;
  std::uint64_t step_ = 0;  // bytes to reserve ahead
  // End of the reserved space; if space cannot be reserved, end of the space that was free at the last check.
  std::uint64_t reserved_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t flushed_ = 0;  // buffered mode: the bytes up to here are on the disk and out of the cache
};

/// True for errors of a full disk: no space, quota. False for a file at its size limit: this file reserves no more space
/// then, but the next file does.
bool means_full(int error);

}  // namespace rodeo::storage
