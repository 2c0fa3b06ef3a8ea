// A snapshot of a router process, read from its readers while they run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/named_counters.h"
#include "process/phase.h"
#include "rodeo/ids.h"
#include "rodeo/input.h"
#include "transport/publisher.h"

namespace rodeo::router {

using base::counter_value;
using process::Phase;
using transport::kLinkCounters;
using transport::LinkTally;

/// Counters of a reader, in addition to those of its publisher.
enum class ReaderCounter : std::uint8_t { pages_read, polls, polls_empty, polls_full, not_taken, not_taken_bytes, count };
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(ReaderCounter::count)> kReaderCounters{{
    {"pages_read", "pages", "Pages that the input handed to the reader."},
    {"polls", "times", "Times that the reader asked its input for a page."},
    {"polls_empty", "times", "Times that the reader asked its input for a page and there was none."},
    {"polls_full", "times", "Times that the reader asked and all memory of the input was in use."},
    {"not_taken", "chunks", "Chunks dropped at the end of the run, because a subscriber of data took nothing for `grace`."},
    {"not_taken_bytes", "bytes", "Bytes of these chunks."},
}};

/// Sums over the links of a reader, in the order of kLinkCounters.
inline constexpr std::array<base::CounterInfo, kLinkCounters.size()> kReaderSums{{
    {"chunks_read", "chunks", "Chunks that the reader has read and given on, or given up."},
    {"bytes_read", "bytes", "Bytes of these chunks."},
    {"error_chunks", "chunks", "Chunks of the input that came with a status: truncated, malformed, CRC, busy."},
}};

struct LinkStatus {
  Fid fid;
  LinkTally tally;
};

struct ReaderStatus {
  std::string name;  ///< name of its publisher
  bool trigger_list = false;
  std::vector<LinkStatus> links = {};
  std::vector<NamedCounter> counters = {};  ///< counters of the reader and its publisher
  std::vector<transport::Publisher::Subscriber> subscribers = {};
  double input_memory_fill = 0;  ///< fraction of the input's memory with unread data, or pages in use by the reader, 0 to 1
  double cpu_seconds = 0;

  std::uint64_t operator[](std::string_view counter) const { return counter_value(counters, counter); }
};

enum class FrontEndCounter : std::uint8_t {
  messages_sent,
  message_bytes_sent,
  messages_failed,
  packet_bytes_lost,
  refused_senders,
  rate_waits,
  count
};
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(FrontEndCounter::count)> kFrontEndCounters{{
    {"messages_sent", "messages", "Messages to front-ends that were given to a card."},
    {"message_bytes_sent", "bytes", "Bytes of these messages."},
    {"messages_failed", "messages",
     "Messages to front-ends that were answered as failed, or whose sender went before a card had room for them."},
    {"packet_bytes_lost", "bytes",
     "Bytes of packets to front-ends that a card had not taken a second after the router's end."},
    {"refused_senders", "peers",
     "Peers turned away from the front-ends: no secret, a link that has an owner, messages that "
     "cannot be read."},
    {"rate_waits", "messages", "Messages to front-ends that waited because their link had reached its rate limit."},
}};

/// The connection to the front-ends.
struct FrontEndStatus {
  struct Owner {
    std::string name;  ///< name that the sender gave itself
    std::string peer;  ///< address and port
    std::size_t links = 0;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };
  std::size_t links = 0;
  std::vector<NamedCounter> counters = {};
  double cpu_seconds = 0;
  std::vector<Owner> owners = {};
};

/// Totals since the start of the input.
struct RouterStatus {
  Phase phase = Phase::prepared;
  bool waiting = false;      ///< waits for subscribers; the input has not started
  double seconds = 0;        ///< time from the start of the input to its end, or until now
  std::string failure = {};  ///< reason why the run must stop; empty: no failure
  std::vector<NamedCounter> input = {};
  double input_cpu_seconds = 0;
  std::vector<ReaderStatus> readers = {};
  std::optional<FrontEndStatus> front_ends = {};  ///< set if front-ends are enabled

  /// Returns the sum over the readers of links.
  std::uint64_t sum(std::string_view counter) const {
    std::uint64_t sum = 0;
    for (const ReaderStatus& reader : readers) sum += reader.trigger_list ? 0 : reader[counter];
    return sum;
  }
  std::size_t links() const {
    std::size_t sum = 0;
    for (const ReaderStatus& reader : readers) sum += reader.trigger_list ? 0 : reader.links.size();
    return sum;
  }
};

}  // namespace rodeo::router
