// The service `events`: requests of a filter node to a recorder, and the answers (docs/reference/formats/event-records.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/decode_error.h"

namespace rodeo::formats {

inline constexpr std::uint16_t kEventRecordVersion = 2;
inline constexpr std::uint16_t kHaveVersion = 2;  ///< version of HAVE and its answer

/// Kinds of requests of the service `events`.
namespace event_request {
inline constexpr std::uint16_t kRecord = 1;  ///< a RecordHead, then the full event
inline constexpr std::uint16_t kHave = 2;    ///< ids; the answer has the stream of each recorded id
/// ids, as in HAVE; from then on the recorder refuses the other ids to the node that had these events before
inline constexpr std::uint16_t kTakeOver = 3;
}  // namespace event_request

/// Status of a reply to RECORD. From kFirstRefusal on, the request was refused: it has put the event into no file.
enum class RecordStatus : std::uint16_t {
  recorded = 0,           ///< safe on disk, by the policy of the recorder
  had_already = 1,        ///< an earlier copy of this id is recorded
  had_already_debug = 2,  ///< an earlier copy of this id is recorded, in debug streams only
  malformed = 16,         ///< cannot be decoded as an event: never send it again
  other_run = 17,         ///< the event belongs to another run than the recorder's
  not_ready = 18,         ///< the recorder still reads the files of its run, which may contain the event, or it ends
  disk_full = 19,
  write_failed = 20,
  unknown_request = 21,  ///< the recorder does not know this kind of request
  taken_over = 22,       ///< another node, which asked here or sent the event, has the event now: give it up
};
inline constexpr std::uint16_t kFirstRefusal = 16;

/// The name of a status for `rodeo explain`: "recorded", "disk_full". Accepts any number.
const char* record_status_name(std::uint16_t status);

// Limits. Texts consist of letters, digits, `_` and `-`.
inline constexpr std::size_t kMostRecordStreams = 16;
inline constexpr std::size_t kMostStreamName = 32;
inline constexpr std::size_t kMostStreamType = 16;
inline constexpr std::size_t kMostHaveIds = 4000;  ///< ids in one request

/// One stream of an event; each stream has its own files.
struct RecordStream {
  std::string type = "physics";
  std::string name = "Main";
  bool obeys_lumi_block = true;  ///< false: its files have luminosity block 0
  bool operator==(const RecordStream&) const = default;
};

/// The head before the event.
struct RecordHead {
  std::uint64_t global_id = 0;
  std::vector<RecordStream> streams = {};  ///< at least one stream; no stream occurs twice
  bool assigned_again = false;             ///< the event was assigned to another node before, and that node may not know yet
  bool operator==(const RecordHead&) const = default;
};

/// True if a text can be the name or type of a stream: it becomes part of file names.
bool good_stream_text(std::string_view text, std::size_t most);

/// Appends a whole number of words. The head must be within its limits.
void append_record_head(std::vector<std::byte>& to, const RecordHead& head);

struct TakenRecordHead {
  RecordHead head;
  std::size_t bytes = 0;  ///< offset of the event in the request
};
inline constexpr std::size_t kMostRecordHeadBytes = 16 + kMostRecordStreams * (4 + kMostStreamType + kMostStreamName + 4);

/// Decodes the head at the start of `bytes`; kMostRecordHeadBytes are enough. Accepts any bytes.
Decoded<TakenRecordHead> decode_record_head(std::span<const std::byte> bytes);

/// Appends at most kMostHaveIds ids.
void append_have(std::vector<std::byte>& to, std::span<const std::uint64_t> ids);
/// Accepts any bytes.
Decoded<std::vector<std::uint64_t>> decode_have(std::span<const std::byte> bytes);

inline constexpr std::size_t kMostHaveStreams = 255;  ///< streams in one answer

/// The answer to HAVE: the recorded ids, and the stream of each.
struct HaveAnswer {
  struct Stream {
    std::string type;
    std::string name;
    bool operator==(const Stream&) const = default;
  };
  std::vector<Stream> streams = {};   ///< the streams in `of`
  std::vector<std::uint8_t> of = {};  ///< for each id: 0 if it is not recorded; else the index of its stream plus 1

  bool has(std::size_t id) const { return of[id] != 0; }
  const Stream& stream(std::size_t id) const { return streams[of[id] - 1U]; }  ///< stream of a recorded id
  bool operator==(const HaveAnswer&) const = default;
};
/// The answer must be within its limits.
void append_have_answer(std::vector<std::byte>& to, const HaveAnswer& answer);
Decoded<HaveAnswer> decode_have_answer(std::span<const std::byte> bytes, std::size_t ids);

}  // namespace rodeo::formats
