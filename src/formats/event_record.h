// What a filter node asks a recorder, and what it is answered: the service `events` (docs/formats/event-records.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/decode_error.h"

namespace rodeo::formats {

inline constexpr std::uint16_t kEventRecordVersion = 2;
inline constexpr std::uint16_t kHaveVersion = 2;  ///< of HAVE and its answer

/// Kinds of requests of the service `events`.
namespace event_request {
inline constexpr std::uint16_t kRecord = 1;    ///< a RecordHead, then the full event
inline constexpr std::uint16_t kHave = 2;      ///< ids; answered with the stream of each that is recorded
inline constexpr std::uint16_t kTakeOver = 3;  ///< the same; what is not recorded will not be, for a node that had it before
}  // namespace event_request

/// Status of a reply to RECORD. Those from kFirstRefusal on are refusals: this request has put the event into no file.
enum class RecordStatus : std::uint16_t {
  recorded = 0,           ///< safe on disk, by the policy of the recorder
  had_already = 1,        ///< the same: a copy of this id came before
  had_already_debug = 2,  ///< the same, and that copy is in streams for debugging alone
  malformed = 16,         ///< cannot be read, or is no event: never send it again
  other_run = 17,         ///< of another run than the recorder's
  not_ready = 18,         ///< the recorder has not read back the files of its run, which may have the event, or ends
  disk_full = 19,
  write_failed = 20,
  unknown_request = 21,  ///< of a kind that it does not know
  taken_over = 22,       ///< the event is another node's by now, which asked here or sent it: it is let go
};
inline constexpr std::uint16_t kFirstRefusal = 16;

/// As `rodeo explain` knows it: "recorded", "disk_full". Any number.
const char* record_status_name(std::uint16_t status);

// Bounds. Texts are letters, digits, `_` and `-`.
inline constexpr std::size_t kMostRecordStreams = 16;
inline constexpr std::size_t kMostStreamName = 32;
inline constexpr std::size_t kMostStreamType = 16;
inline constexpr std::size_t kMostHaveIds = 4000;  ///< in one request

/// One stream that an event goes to: a file of its own.
struct RecordStream {
  std::string type = "physics";
  std::string name = "Main";
  bool obeys_lumi_block = true;  ///< false: its files are of luminosity block 0
  bool operator==(const RecordStream&) const = default;
};

/// What stands before the event.
struct RecordHead {
  std::uint64_t global_id = 0;
  std::vector<RecordStream> streams = {};  ///< one at least, none twice
  bool assigned_again = false;             ///< it was another node's, which may not know that it is no longer
  bool operator==(const RecordHead&) const = default;
};

/// Whether a text can be the name or the type of a stream: it stands in names of files.
bool good_stream_text(std::string_view text, std::size_t most);

/// A whole number of words. The head is within its bounds.
void append_record_head(std::vector<std::byte>& to, const RecordHead& head);

struct TakenRecordHead {
  RecordHead head;
  std::size_t bytes = 0;  ///< the event begins behind them
};
inline constexpr std::size_t kMostRecordHeadBytes = 16 + kMostRecordStreams * (4 + kMostStreamType + kMostStreamName + 4);

/// The head at the start of `bytes`, of which kMostRecordHeadBytes are enough. Survives any bytes.
Decoded<TakenRecordHead> decode_record_head(std::span<const std::byte> bytes);

/// At most kMostHaveIds.
void append_have(std::vector<std::byte>& to, std::span<const std::uint64_t> ids);
/// Survives any bytes.
Decoded<std::vector<std::uint64_t>> decode_have(std::span<const std::byte> bytes);

inline constexpr std::size_t kMostHaveStreams = 255;  ///< in one answer

/// The answer to HAVE: which of the ids are recorded, and to which stream.
struct HaveAnswer {
  struct Stream {
    std::string type;
    std::string name;
    bool operator==(const Stream&) const = default;
  };
  std::vector<Stream> streams = {};   ///< those that `of` needs
  std::vector<std::uint8_t> of = {};  ///< of each id: 0, it is not recorded; else one more than the place of its stream

  bool has(std::size_t id) const { return of[id] != 0; }
  const Stream& stream(std::size_t id) const { return streams[of[id] - 1U]; }  ///< of one that is recorded
  bool operator==(const HaveAnswer&) const = default;
};
/// Within its bounds.
void append_have_answer(std::vector<std::byte>& to, const HaveAnswer& answer);
Decoded<HaveAnswer> decode_have_answer(std::span<const std::byte> bytes, std::size_t ids);

}  // namespace rodeo::formats
