// Checks of event headers in the records of an event file: a CRC-16 of each, in a record behind every so many events (docs/formats/eventstorage-file.md,
// "Checks of event headers").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rodeo::formats {

inline constexpr std::uint32_t kHeaderChecksMarker = 0x1234cccd;
inline constexpr std::size_t kMostHeaderChecks = 256;  ///< of one record

/// The check of one event: CRC-16 over the number of its data block and its header, which is as long as the header says, or all of the event if that is
/// shorter. The event is given in pieces.
std::uint16_t header_check(std::uint32_t block_number, std::span<const std::span<const std::byte>> pieces);
inline std::uint16_t header_check(std::uint32_t block_number, std::span<const std::byte> event) {
  return header_check(block_number, {&event, 1});
}

/// A record, read in place.
class HeaderChecks {
 public:
  /// Of exactly these bytes; nothing if they are none, or are damaged.
  static std::optional<HeaderChecks> decode(std::span<const std::byte> record);

  std::uint32_t first() const { return first_; }  ///< number of the data block of the first event
  std::size_t count() const {
    return count_;
  }  ///< from 1 to kMostHeaderChecks; the last event is that of the block with the record
  std::uint16_t operator[](std::size_t i) const;
  /// The check of a block's event, if it is here.
  std::optional<std::uint16_t> of(std::uint32_t block_number) const;

 private:
  std::span<const std::byte> checks_;
  std::uint32_t first_ = 0;
  std::size_t count_ = 0;
};

/// A data block taken apart.
struct BlockParts {
  std::span<const std::byte> event;
  std::span<const std::byte> checks;  ///< the record behind the event; mostly empty
};
/// Looks at the end of a block only where its event does not fill it.
BlockParts split_block(std::span<const std::byte> block);

/// Gathers checks for the next record. One thread.
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

  /// The record of all that were added, which are forgotten. Valid until the next call.
  std::span<const std::byte> take();

 private:
  std::vector<std::uint16_t> checks_;
  std::vector<std::byte> record_;
  std::uint32_t first_ = 0;
};

/// Where a record lies in a file.
struct PlacedHeaderChecks {
  std::uint64_t offset = 0;
  HeaderChecks checks;
};
/// All records of a file, in order, wherever they lie: damage around one does not hide it.
std::vector<PlacedHeaderChecks> find_header_checks(std::span<const std::byte> file);

/// What the records of a file say of one event.
enum class HeaderProof : std::uint8_t { none, holds, wrong };
/// Of the event at `offset`, in the data block with this number. `records` are those of its file.
HeaderProof prove_header(std::span<const PlacedHeaderChecks> records, std::uint64_t offset, std::uint32_t block_number,
                         std::span<const std::byte> event);

}  // namespace rodeo::formats
