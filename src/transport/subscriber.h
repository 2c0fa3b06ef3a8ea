// Subscriber: receives some links of one publisher, for one stream. Finds the publisher, also after it disappeared.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "rodeo/ids.h"
#include "transport/caller.h"
#include "transport/fabric_ports.h"
#include "transport/provider_choice.h"

namespace rodeo::transport {

struct SubscriberSettings {
  std::string name;              ///< name that publishers show
  std::filesystem::path bus;     ///< directory of the bus
  std::string provider = "tcp";  ///< the provider to ask for; "auto": the fastest that both sides have
  std::string secret = {};       ///< empty: publishers need not prove theirs
  std::uint32_t pages = 64;      ///< limit of pages in flight; a publisher may allow fewer
  bool monitor = false;          ///< a monitor loses chunks instead of delaying the publisher
  bool unbuffered = false;       ///< pages are sent as soon as they contain a run
  bool trigger_list = false;     ///< subscribes to the trigger list instead of links
  std::string publisher = {};    ///< name of the wanted publisher; empty: any publisher of the links
  Here here = Here::detect();    ///< networks of this machine
};

/// One thread.
class Subscriber {
 public:
  /// The ports must outlive it.
  Subscriber(SubscriberSettings settings, std::vector<Fid> links, FabricPorts& ports);
  ~Subscriber();
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  /// Finds the publisher, connects, subscribes, reads its messages and gives it credit. Blocks only while it reads the bus.
  void progress(std::uint64_t now_ns);

  /// Handles the event if it belongs to this subscriber's connection, and then returns true.
  bool on_event(const FabricPort& port, const FabricPort::Event& event);

  /// A received page. The caller owns its slot until give_back().
  struct Received {
    std::uint32_t slot = 0;
    std::span<const std::byte> bytes;
    std::uint64_t session = 0;  ///< sessions() when the page arrived
  };
  std::optional<Received> next();
  void give_back(std::uint32_t slot);
  /// Posts the slots that were given back. Call it now and then, best after several pages.
  void replenish() {
    if (state_ == State::flowing) give_credit(quarter());
  }

  /// While held, the subscriber gives no credit, so the publisher waits.
  void hold(bool held) { held_ = held; }

  /// Reports a malformed page. Makes the connection of that page anew, if it still exists.
  void refuse(const std::string& why);

  /// Asks the publisher for the rest and the end. Stops waiting for a publisher that sends nothing for two seconds, and for
  /// consumers that hold all pages and return none for ten seconds.
  void leave();

  /// True if all pages are taken, and the publisher has sent its end or the wait for it is over.
  bool ended() const { return state_ == State::ended && received_.empty(); }
  bool flowing() const { return state_ == State::flowing; }

  /// The losses of the publisher's process, as its END gives them.
  const std::vector<formats::ControlLoss>& losses() const { return losses_; }

  /// Changes when a new session begins. The counts, clock and page numbers of a new session begin at 0.
  std::uint64_t sessions() const { return sessions_; }
  std::uint64_t connections() const { return connections_; }  ///< number of connections so far
  /// The number of sessions that ended without the publisher's END, because the publisher died, gave this subscriber up, or
  /// took too long.
  std::uint64_t cut_off() const { return cut_off_; }
  /// The number of slots of the memory; 0 before the first session.
  std::uint32_t pages() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t page_bytes() const { return page_bytes_; }
  /// The time of the last sign of life, in the clock of progress().
  std::uint64_t last_heard_ns() const { return heard_ns_; }
  const std::string& publisher() const { return publisher_; }
  /// The reason why there is no connection now, as text for people; empty while there is one.
  const std::string& trouble() const { return trouble_; }
  /// The reason why the last connection ended, if no other followed. A publisher that refuses this subscriber gives it.
  const std::optional<Error>& last_end() const { return last_end_; }
  /// A publisher on the bus that refuses this subscriber for a permanent reason (secret, version, network).
  struct Refusal {
    std::string publisher;
    Error why;
  };
  const std::optional<Refusal>& refusal() const { return refusal_; }

 private:
  enum class State : std::uint8_t {
    away,        ///< searches the bus
    greeting,    ///< TCP connect and handshake
    subscribed,  ///< waits for ACCEPT
    connecting,  ///< waits for the fabric's connection
    flowing,
    ended,
  };

  void call(std::uint64_t now_ns);
  bool greet(const BusEntry& entry);
  void next_publisher();
  void read();
  Result<void> on_message(const formats::ControlMessage& message);
  Result<void> subscribe();
  Result<void> on_accept(const formats::ControlAccept& accept);
  std::uint64_t quarter() const { return window_ < 8 ? 1 : window_ / 4; }
  void give_credit(std::uint64_t step);
  void acknowledge_pages();
  void mark_heard() {
    heard_ns_ = now_ns_;
    heard_ = true;
  }
  void end_if_complete();
  void broken(Error why);
  void close();

  const SubscriberSettings settings_;
  const std::vector<Fid> links_;
  FabricPorts& ports_;
  std::string publisher_;
  bool asked_provider_ = false;
  std::size_t attempts_ = 0;                   // failures since data flowed last; selects the publisher to try
  std::map<std::string, std::string> logged_;  // code of the last trouble in the log, for each publisher

  State state_ = State::away;
  struct Wish {
    std::uint64_t session = 0;
    std::uint64_t taken = 0;
  };
  Wish wish_;  // the session that is asked for; session_ takes it over when it is accepted
  std::uint64_t session_;
  std::uint64_t instance_ = 0;  // publisher's instance in this session
  bool anew_ = false;           // the publisher did not know the last session
  bool flowed_ = false;         // data have flowed in this session
  std::uint64_t cut_off_ = 0;
  std::uint64_t sessions_ = 0;
  std::uint64_t connections_ = 0;
  Caller caller_;
  FabricPort* port_ = nullptr;
  FabricPort::Connection connection_ = 0;
  base::Arena memory_;
  std::uint32_t page_bytes_ = 0;

  std::deque<Received> received_;
  enum class Slot : std::uint8_t { free, posted, taken };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;  // slots that can be posted
  std::uint64_t window_ = 0;         // limit of pages in flight: the smaller one of both sides
  std::uint64_t posted_ = 0;         // receives on this connection
  std::uint64_t known_posted_ = 0;   // part of posted_ that the publisher knows
  std::uint64_t arrived_ = 0;        // pages on this connection
  std::uint64_t taken_ = 0;          // pages of this session
  std::uint64_t known_taken_ = 0;    // part of taken_ that the publisher knows
  std::vector<formats::ControlLoss> losses_;
  std::optional<std::uint64_t> last_;  // number of all pages, from END
  std::uint64_t called_ns_ = 0;
  std::uint64_t now_ns_ = 0;
  std::uint64_t heard_ns_ = 0;
  std::uint64_t gave_back_ns_ = 0;
  bool heard_ = false;      // progress() clears it
  bool gave_back_ = false;  // progress() clears it
  bool held_ = false;
  bool leaving_ = false;
  std::uint64_t left_ns_ = 0;
  std::string trouble_;
  std::optional<Error> last_end_;
  std::optional<Refusal> refusal_;
};

}  // namespace rodeo::transport
