// Subscriber: some links of one publisher, for one stream. Finds the publisher, again if it goes, and has the pages that come.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "rodeo/ids.h"
#include "transport/bus.h"
#include "transport/control_socket.h"
#include "transport/fabric.h"
#include "transport/handshake.h"
#include "transport/provider_choice.h"

namespace rodeo::transport {

struct SubscriberSettings {
  std::string name;              ///< as publishers show it
  std::filesystem::path bus;     ///< where publishers are found
  std::string provider = "tcp";  ///< that is asked for; "auto": the fastest that both sides have
  std::string secret = {};       ///< empty: publishers are believed
  std::uint32_t pages = 64;      ///< that may be under way; a publisher may give less
  bool monitor = false;          ///< loses chunks rather than hold the publisher up
  bool unbuffered = false;       ///< pages go as soon as they have something
  bool trigger_list = false;     ///< the trigger's list, which is no link
  std::string publisher = {};    ///< of this name; empty: whoever has the links
  Here here = Here::look();      ///< what can be had on this machine
};

/// The ports of one thread, by provider.
class FabricPorts {
 public:
  explicit FabricPorts(std::string listen = {}, PortSize size = PortSize::few) : listen_(std::move(listen)), size_(size) {}
  Result<FabricPort*> of(const std::string& provider);

  /// What has happened at all of them. False: there may be more.
  template <typename Take>
  bool poll(Take&& take) {
    FabricPort::Event events[128];
    bool all = true;
    for (const auto& [name, port] : ports_) {
      const std::size_t count = port->poll(events);
      for (std::size_t i = 0; i < count; ++i) take(*port, events[i]);
      all = all && count < std::size(events);
    }
    return all;
  }

 private:
  std::string listen_;
  PortSize size_;
  std::map<std::string, std::unique_ptr<FabricPort>> ports_;
};

/// One thread.
class Subscriber {
 public:
  /// The ports must live longer.
  Subscriber(SubscriberSettings settings, std::vector<Fid> links, FabricPorts& ports);
  ~Subscriber();
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  /// Looks for the publisher, greets it, subscribes; takes what it says, and gives it credit. Does not block, but for a look at the bus.
  void progress(std::uint64_t now_ns);

  /// True if the event is of this subscriber's connection; it is taken then.
  bool take(const FabricPort& port, const FabricPort::Event& event);

  /// The next page that has come. Its slot is the caller's until give_back().
  struct Received {
    std::uint32_t slot = 0;
    std::span<const std::byte> bytes;
    std::uint64_t session = 0;  ///< as sessions() was then
  };
  std::optional<Received> next();
  void give_back(std::uint32_t slot);
  /// What was given back may be used again: to be called now and then, best after several.
  void replenish() {
    if (state_ == State::flowing) give_credit(quarter());
  }

  /// While held no credit is given: the publisher waits.
  void hold(bool held) { held_ = held; }

  /// What has come is no page: the connection is made anew, if it is there still.
  void refuse(const std::string& why);

  /// Asks the publisher for what it still has, then for the end; one that sends nothing for two seconds is not waited for; nor
  /// are consumers who have all pages, and have given none back for ten.
  void leave();

  /// The publisher has said that no more comes, or nobody is to come; and all has been taken.
  bool ended() const { return state_ == State::ended && received_.empty(); }
  bool flowing() const { return state_ == State::flowing; }

  /// What the publisher's process has lost, as it has said with the end.
  const std::vector<formats::ControlLoss>& losses() const { return losses_; }

  /// Changes when a new session begins, whose counts, clock and page numbers are from 0.
  std::uint64_t sessions() const { return sessions_; }
  std::uint64_t connections() const { return connections_; }  ///< so far
  /// Sessions that ended without the publisher's word that this was all: it died, gave this subscriber up, or was not waited for.
  std::uint64_t cut_off() const { return cut_off_; }
  /// Slots of the memory; 0 before the first session.
  std::uint32_t pages() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t page_bytes() const { return page_bytes_; }
  /// By the clock of progress().
  std::uint64_t last_heard_ns() const { return heard_ns_; }
  const std::string& publisher() const { return publisher_; }
  /// Why there is no connection now, for people; empty while there is one.
  const std::string& trouble() const { return trouble_; }
  /// What ended the last connection, if there was one and no other followed: a publisher that refuses says why.
  const std::optional<Error>& last_end() const { return last_end_; }
  /// Who refuses this subscriber, for what does not change by itself (secret, version, network), and is still on the bus.
  struct Refusal {
    std::string publisher;
    Error why;
  };
  const std::optional<Refusal>& refusal() const { return refusal_; }

 private:
  enum class State : std::uint8_t {
    away,        ///< looks at the bus
    greeting,    ///< TCP connects, both show who they are
    subscribed,  ///< waits for ACCEPT
    connecting,  ///< the fabric's connection
    flowing,
    ended,
  };

  void call(std::uint64_t now_ns);
  bool greet(const BusEntry& entry);
  void next_publisher();
  void talk(std::uint64_t now_ns);
  Result<void> take(const formats::ControlMessage& message);
  Result<void> subscribe();
  Result<void> accepted(const formats::ControlAccept& accept);
  std::uint64_t quarter() const { return window_ < 8 ? 1 : window_ / 4; }
  void give_credit(std::uint64_t step);
  void say_what_came();
  void hear() {
    heard_ns_ = now_ns_;
    heard_ = true;
  }
  void end_once_all_came();
  void broken(Error why);
  void close();

  const SubscriberSettings settings_;
  const std::vector<Fid> links_;
  FabricPorts& ports_;
  std::string publisher_;
  std::string provider_;      // of the publisher's, that is tried
  std::size_t choices_ = 1;   // providers that there are to try
  std::size_t failures_ = 0;  // of providers: the next attempt is with the next
  bool asked_provider_ = false;
  std::size_t attempts_ = 0;                 // at publishers since one of them flowed: the next is at the next of them
  std::map<std::string, std::string> said_;  // of each of these: the code that the log has

  State state_ = State::away;
  struct Wish {
    std::uint64_t session = 0;
    std::uint64_t taken = 0;
  };
  Wish wish_;  // what was asked for; ours once it is accepted
  std::uint64_t session_;
  std::uint64_t instance_ = 0;  // of the publisher that has it
  bool anew_ = false;           // it, or another in its place, knew nothing of the session before
  bool flowed_ = false;         // this session
  std::uint64_t cut_off_ = 0;
  std::uint64_t sessions_ = 0;
  std::uint64_t connections_ = 0;
  ControlSocket socket_;
  std::optional<Handshake> handshake_;
  std::optional<BusEntry> entry_;
  FabricPort* port_ = nullptr;
  FabricPort::Connection connection_ = 0;
  base::Arena memory_;
  std::uint32_t page_bytes_ = 0;

  std::deque<Received> received_;
  enum class Slot : std::uint8_t { free, posted, taken };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;  // of them, those that can be posted
  std::uint64_t window_ = 0;         // pages that may be under way, of both sides the fewer
  std::uint64_t posted_ = 0;         // receives on this connection
  std::uint64_t told_ = 0;           // of which the publisher knows
  std::uint64_t came_ = 0;           // pages on this connection
  std::uint64_t taken_ = 0;          // pages of this session
  std::uint64_t told_taken_ = 0;     // of which the publisher knows
  std::vector<formats::ControlLoss> losses_;
  std::optional<std::uint64_t> last_;  // pages in all, once the publisher has said so
  std::uint64_t called_ns_ = 0;
  std::uint64_t now_ns_ = 0;
  std::uint64_t heard_ns_ = 0;
  std::uint64_t gave_back_ns_ = 0;
  bool heard_ = false;      // since progress()
  bool gave_back_ = false;  // since then
  bool held_ = false;
  bool leaving_ = false;
  std::uint64_t left_ns_ = 0;
  std::string trouble_;
  std::optional<Error> last_end_;
  std::optional<Refusal> refusal_;
};

}  // namespace rodeo::transport
