// Publisher: sends the links of one stream to every subscriber.
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
  std::string name;                         ///< unique on the bus among living publishers: "felix0.0"
  std::filesystem::path bus;                ///< directory of the bus
  std::string address = "127.0.0.1";        ///< numerical address at which it listens
  std::vector<std::string> providers = {};  ///< offered providers; empty: offered_providers()
  std::string secret = {};                  ///< required if `address` is not a loopback address
  std::uint32_t page_bytes = 64U << 10;
  std::uint32_t max_chunk_bytes = 0;   ///< the longest chunk that subscribers join from parts; 0: unknown
  std::uint32_t pages = 64;            ///< limit of pages in flight for one subscription
  std::size_t most_subscribers = 256;  ///< limit of subscribers at a time; each has memory for its pages
  std::chrono::nanoseconds flush = std::chrono::milliseconds{1};
  std::chrono::nanoseconds grace = std::chrono::seconds{5};
  /// Returns the losses of this process so far, on any link. END sends them to subscribers. The publisher's thread calls it.
  std::function<std::vector<NamedCounter>()> losses = {};
};

/// The counters that counters() returns. A chunk in parts counts with its last part. Every chunk given to publish() is
/// either wanted or without a subscriber.
inline constexpr std::array<base::CounterInfo, 19> kPublisherCounters{{
    {"chunks_wanted", "chunks", "Chunks that went into pages, of one subscriber or more."},
    {"chunks_published", "chunks", "Chunks in pages, once for each subscriber."},
    {"no_subscriber", "chunks", "Chunks in no page: no subscriber wanted them, or the monitors that did had no room."},
    {"undelivered", "chunks", "Chunks in pages for subscribers of data that did not come back for them."},
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
     "Peers that were turned away or cut off: no secret, another version, unknown links or networks, another subscriber's "
     "session, too many "
     "subscribers, unreadable messages."},
    {"refused_version", "peers", "Of these, peers that speak another version."},
    {"refused_secret", "peers", "Of these, peers without the secret."},
    {"refused_unreadable", "peers", "Of these, peers that sent an unreadable or unexpected message, or none."},
    {"wanted_bytes", "bytes", "Bytes of chunks that went into pages, of one subscriber or more."},
    {"no_subscriber_bytes", "bytes",
     "Bytes of chunks in no page: no subscriber wanted them, or the monitors that did had no room."},
}};

/// One thread, the reader of the stream, calls all functions except tally(), counters() and subscribers().
///
///     for (;;) {
///       if (page == nullptr) status = stream.poll(page);
///       if (page != nullptr && publisher.publish(page->runs)) { page->drop(); page = nullptr; }
///       publisher.progress(now_ns, clock_ns);     // clock_ns: taken from the stream when it had no page under way
///     }
class Publisher {
 public:
  /// Listens, and enters itself on the bus. Throws SetupError if the address is foreign, if a secret is missing, or if the
  /// name is taken. `trigger_list`: its one link is the trigger list, and subscribers ask for the trigger list instead of
  /// links.
  Publisher(PublisherSettings settings, std::span<const Fid> links, bool trigger_list = false);
  ~Publisher();

  /// Copies the chunks of these runs into the pages of their subscribers. False: a subscriber of data has no room; call it
  /// again later with the same runs, and it continues where it stopped. Chunks without a subscriber are counted.
  bool publish(std::span<const ChunkRun> runs);
  /// Replaces publish() at the end, and waits for no subscriber. The rest of these runs is sent to no subscriber, and only
  /// the tallies of its links count it. Returns its chunks and bytes.
  LinkTally give_up(std::span<const ChunkRun> runs);

  /// Does all other work: subscribers that come and go, credit, full and old pages, clock pages. Everything that the stream
  /// sent until its time `clock_ns` must be published. Does not block.
  void progress(std::uint64_t now_ns, std::uint64_t clock_ns);

  /// True if a subscriber wants the link, or may come back for it.
  bool wanted(LinkIndex link) const;
  /// Changes with every change of wanted() for any link.
  std::uint64_t wanted_changes() const;
  /// True if a subscriber of data wants the link: publish() waits for that subscriber.
  bool wanted_as_data(LinkIndex link) const;
  /// Counts chunks of a link that were lost before they arrived here, so that subscribers see the gap. Must not be called
  /// while publish() returns false.
  void skip(LinkIndex link, std::uint32_t chunks);
  /// True if every link has a connected subscriber of data.
  bool all_links_subscribed() const;

  /// Says that no more runs will come. progress() then sends the rest and the end.
  void end();
  /// True if everything has been sent, or has no subscriber left.
  bool ended() const;

  /// The number of pages taken by the subscriber that publish() waits for or, if it waits for none, by all present
  /// subscribers. While this number stands still, there is no progress.
  std::uint64_t pages_taken() const;

  /// The chunks of a link that publish() has taken, with or without subscribers. Any thread may call it.
  LinkTally tally(std::size_t link) const;
  /// The values of kPublisherCounters, by name. Any thread may call it.
  std::vector<NamedCounter> counters() const;

  struct Subscriber {
    std::string name;  ///< as the subscriber named itself
    std::string peer;  ///< address and port
    std::string provider;
    bool monitor = false;
    bool connected = false;
    bool gone = false;  ///< the subscriber does not come back; the latest of these stay in the list
    std::size_t links = 0;
    std::uint64_t chunks = 0;
    std::uint64_t bytes = 0;
    std::uint64_t pages = 0;
    std::uint32_t page_slots = 0;    ///< pages for which there is memory
    std::uint32_t pages_filled = 0;  ///< pages that the subscriber has not acknowledged
    std::uint64_t page_bytes = 0;    ///< memory of one page
    std::uint64_t dropped_chunks = 0;
    std::uint64_t waits = 0;           ///< how often publish() returned false because this subscriber had no room
    std::uint64_t pending_chunks = 0;  ///< part of `chunks`: chunks in pages that the subscriber has not acknowledged
  };
  /// Any thread may call it.
  std::vector<Subscriber> subscribers() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace rodeo::transport
