// Checks of event headers in an event file: a CRC-16 for each, in a record after a group of events
// (docs/reference/formats/eventstorage-file.md, "Checks of event headers").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rodeo::formats {

inline constexpr std::uint32_t kHeaderChecksMarker = 0x1234cccd;
inline constexpr std::size_t kMostHeaderChecks = 256;  ///< checks in one record

/// The check of one event: CRC-16 over the number of its data block and its header, whose size is in the header; at most
/// over the whole event. The event is given in pieces.
std::uint16_t header_check(std::uint32_t block_number, std::span<const std::span<const std::byte>> pieces);
inline std::uint16_t header_check(std::uint32_t block_number, std::span<const std::byte> event) {
  return header_check(block_number, {&event, 1});
}

/// A record, read in place.
class HeaderChecks {
 public:
  /// Decodes exactly these bytes; nothing if they are not a record, or are damaged.
  static std::optional<HeaderChecks> decode(std::span<const std::byte> record);

  std::uint32_t first() const { return first_; }  ///< number of the data block of the first event
  std::size_t count() const {
    return count_;
  }  ///< 1 to kMostHeaderChecks; the last event is in the same block as the record
  std::uint16_t operator[](std::size_t i) const;
  /// The check of a block's event, if the record has it.
  std::optional<std::uint16_t> of(std::uint32_t block_number) const;

 private:
  std::span<const std::byte> checks_;
  std::uint32_t first_ = 0;
  std::size_t count_ = 0;
};

/// The parts of a data block.
struct BlockParts {
  std::span<const std::byte> event;
  std::span<const std::byte> checks;  ///< the record behind the event; usually empty
};
/// Looks for a record only if the event does not fill the block.
BlockParts split_block(std::span<const std::byte> block);

/// Collects checks for the next record. One thread.
class HeaderCheckList {
 public:
  HeaderCheckList() { checks_.reserve(kMostHeaderChecks); }

  static constexpr std::size_t record_bytes(std::size_t checks) { return 4 * (4 + (checks + 1) / 2); }

  void add(std::uint32_t block_number, std::uint16_t check) {
    if (checks_.empty()) first_ = block_number;
    checks_.push_back(check);
  }
  std::size_t size() const { return checks_.size(); }
  bool full() const { return checks_.size() >= kMostHeaderChecks; }

  /// Returns the record of all checks added, and forgets them. Valid until the next call.
  std::span<const std::byte> record();

 private:
  std::vector<std::uint16_t> checks_;
  std::vector<std::byte> record_;
  std::uint32_t first_ = 0;
};

/// A record with its place in a file.
struct PlacedHeaderChecks {
  std::uint64_t offset = 0;
  HeaderChecks checks;
};
/// All records of a file, in order, also between damaged parts.
std::vector<PlacedHeaderChecks> find_header_checks(std::span<const std::byte> file);

/// The result of the records of a file for one event.
enum class HeaderProof : std::uint8_t { none, holds, wrong };
/// Checks the event at `offset`, in the data block with this number. `records`: of the same file.
HeaderProof prove_header(std::span<const PlacedHeaderChecks> records, std::uint64_t offset, std::uint32_t block_number,
                         std::span<const std::byte> event);

}  // namespace rodeo::formats
