// Publisher: the links of one stream, for anybody who subscribes to them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "rodeo/chunk.h"
#include "rodeo/input.h"
#include "transport/link_counters.h"

namespace rodeo::transport {

struct PublisherSettings {
  std::string name;                         ///< on the bus, where no other living publisher has it: "felix0.0"
  std::filesystem::path bus;                ///< the directory
  std::string address = "127.0.0.1";        ///< numerical, at which it listens
  std::vector<std::string> providers = {};  ///< that it offers; empty: all there are
  std::string secret = {};                  ///< required where `address` is no loopback
  std::uint32_t page_bytes = 64U << 10;
  std::uint32_t max_chunk_bytes = 0;   ///< the longest chunk of its links, for subscribers, who join its parts; 0: not known
  std::uint32_t pages = 64;            ///< that a subscription may have under way
  std::size_t most_subscribers = 256;  ///< at a time, with the memory of their pages
  std::chrono::nanoseconds flush = std::chrono::milliseconds{1};
  std::chrono::nanoseconds grace = std::chrono::seconds{5};
  /// What this process has lost so far, of any link; subscribers are told with the end. Called by the publisher's thread.
  std::function<std::vector<NamedCounter>()> losses = {};
};

/// Errors transport.no_secret: other hosts reach it, and anybody there could; transport.address: it is no address to connect to, as 0.0.0.0.
Result<void> refuse_open_address(const PublisherSettings& settings);

/// What counters() has. A chunk in parts counts with its last. All chunks given to publish() are wanted or without a subscriber.
inline constexpr std::array<base::CounterInfo, 19> kPublisherCounters{{
    {"chunks_wanted", "chunks", "Chunks that went into pages, of one subscriber or more."},
    {"chunks_published", "chunks", "Chunks in pages, once for each subscriber."},
    {"no_subscriber", "chunks", "Chunks that no subscriber wanted, or only monitors without room."},
    {"undelivered", "chunks", "Chunks in pages for subscribers of data who did not come back for them."},
    {"monitor_chunks_dropped", "chunks", "Chunks that a monitor had no room for, or had not taken when it left."},
    {"pages_sent", "pages", "Pages sent to subscribers."},
    {"pages_full", "pages", "Pages closed because the next chunk had no room."},
    {"pages_by_time", "pages", "Pages closed because their first chunk had waited for `flush`."},
    {"pages_of_clock", "pages", "Pages closed to tell the time: there was little or nothing to send."},
    {"pages_at_end", "pages", "Pages closed because the subscriber left or no more came."},
    {"pages_unbuffered", "pages", "Pages closed after each run, as the subscriber wanted."},
    {"bytes_sent", "bytes", "Bytes of the pages sent, headers included."},
    {"waits", "times", "Times that a subscriber of data had no room, so that the reader had to wait."},
    {"refused_peers", "peers",
     "Peers that were turned away or cut off: no secret, another version, links or networks that there are not, another's "
     "session, too many "
     "subscribers, messages that cannot be read."},
    {"refused_version", "peers", "Of these, peers that speak another version."},
    {"refused_secret", "peers", "Of these, peers without the secret."},
    {"refused_unreadable", "peers", "Of these, peers that said what cannot be read, or has no place, or nothing."},
    {"wanted_bytes", "bytes", "Bytes of chunks that went into pages, of one subscriber or more."},
    {"no_subscriber_bytes", "bytes", "Bytes of chunks that no subscriber wanted, or only monitors without room."},
}};

/// All functions by one thread, that which reads the stream, but for tally(), counters() and subscribers().
///
///     for (;;) {
///       if (page == nullptr) status = stream.poll(page);
///       if (page != nullptr && publisher.publish(page->runs)) { page->drop(); page = nullptr; }
///       publisher.progress(now_ns, clock_ns);     // clock_ns: taken from the stream when it had no page under way
///     }
class Publisher {
 public:
  /// Listens, and puts itself on the bus. Throws SetupError: an address that is not ours, no secret, a name that is taken.
  /// `trigger_list`: its one link is the trigger's list, which subscribers ask for as such.
  Publisher(PublisherSettings settings, std::span<const Fid> links, bool trigger_list = false);
  ~Publisher();

  /// Copies the chunks of these runs into the pages of whoever wants them. False: a subscriber of data has no room; call it again later with the
  /// same runs, it goes on where it stopped. Chunks that nobody wants are counted.
  bool publish(std::span<const ChunkRun> runs);
  /// At the end, for publish(): nobody is waited for any longer. What has not been taken of these runs goes to nobody, and is in the tallies of its links
  /// alone. Its chunks and their bytes.
  LinkTally give_up(std::span<const ChunkRun> runs);

  /// Moves on what is to be done besides: subscribers that come and go, credit, pages that are full or old, pages that tell the clock.
  /// `clock_ns`: of the stream; all that it sent by then has been published. Does not block.
  void progress(std::uint64_t now_ns, std::uint64_t clock_ns);

  /// Somebody wants it, or may come back for it.
  bool wanted(LinkIndex link) const;
  /// Changes whenever wanted() of some link does.
  std::uint64_t wanted_changes() const;
  /// By a subscriber of data: publish() waits for it.
  bool wanted_as_data(LinkIndex link) const;
  /// So many chunks of a link were lost before they came here: subscribers see that they lack them. Not while publish() returns false.
  void skip(LinkIndex link, std::uint32_t chunks);
  /// Every link has a subscriber of data that is there.
  bool all_links_subscribed() const;

  /// No more runs will come. progress() then sends what is left and says so to subscribers.
  void end();
  /// Everything has been sent, or has nobody to go to.
  bool ended() const;

  /// Pages that have been taken by whom publish() waits for, or, where it waits for nobody, by all who subscribe now: while it stands still, nothing goes on.
  std::uint64_t pages_taken() const;

  /// What publish() has taken of a link, whoever wanted it. Any thread.
  LinkTally tally(std::size_t link) const;
  /// kPublisherCounters, by name. Any thread.
  std::vector<NamedCounter> counters() const;

  struct Subscriber {
    std::string name;  ///< as it calls itself
    std::string peer;  ///< address and port
    std::string provider;
    bool monitor = false;
    bool connected = false;
    bool gone = false;  ///< for good; the last of these stay in the list
    std::size_t links = 0;
    std::uint64_t chunks = 0;
    std::uint64_t bytes = 0;
    std::uint64_t pages = 0;
    std::uint32_t page_slots = 0;    ///< pages that there is memory for
    std::uint32_t pages_filled = 0;  ///< of these: not said to be taken yet
    std::uint64_t page_bytes = 0;    ///< memory of one
    std::uint64_t dropped_chunks = 0;
    std::uint64_t waits = 0;           ///< publish() that returned false since this one had no room
    std::uint64_t pending_chunks = 0;  ///< of `chunks`: in pages that it has not taken
  };
  /// Any thread.
  std::vector<Subscriber> subscribers() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace rodeo::transport
