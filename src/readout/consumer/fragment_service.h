// FragmentService: keeps fragments until they are cleared, and answers requests for them
// (docs/reference/formats/fragment-requests.md).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "base/log.h"
#include "formats/event_ids.h"
#include "formats/fragment_request.h"
#include "readout/consumer/fragment_reply.h"
#include "readout/retention/retention.h"
#include "readout/retention/waiting_requests.h"
#include "transport/replier.h"

namespace rodeo::readout {

struct FragmentServiceSettings {
  transport::ReplierSettings replier = {};
  std::vector<SourceId> robs = {};
  FragmentBook::Settings book = {};
  std::size_t most_waiting = 4096;             ///< requests for fragments that have not arrived yet
  std::size_t most_sending = 1024;             ///< ROBs in unsent replies; one client may have an eighth of them
  std::uint64_t patience_ns = 10'000'000'000;  ///< time without progress after which a client is cut off
  formats::RobFrame frame = {};
  formats::IdLayout ids = {};  ///< layout of L1 ids, for absent ROBs
  formats::Numbering numbering = {};
};

enum class ServiceCounter : std::size_t {
  fetches,
  fetched,
  pending,
  lost,
  clears,
  clear_gaps,
  held_back,
  dropped,
  cut_off,
  unreadable,
  unknown_kind,
  old_version,
  unknown_rob,
  busy,
  count
};

inline constexpr base::CounterInfo kServiceInfo[] = {
    {"fetches", "requests", "Requests for fragments that were answered."},
    {"fragments_fetched", "fragments", "Fragments in these answers."},
    {"robs_pending", "ROBs", "ROBs in these answers that had not come yet."},
    {"robs_lost", "ROBs", "ROBs in these answers that were released, or never came."},
    {"clears", "requests", "Requests that cleared ids."},
    {"clear_gaps", "requests", "Clears that a client numbered and that never arrived."},
    {"requests_held_back", "requests", "Requests that waited until enough earlier replies had been sent."},
    {"requests_dropped", "requests", "Requests that waited when their client cancelled them or went away."},
    {"clients_cut_off", "clients", "Clients that were cut off because they took nothing of their replies for `patience`."},
    {"refused_unreadable", "requests", "Refused: not in the format of a request."},
    {"refused_unknown_kind", "requests", "Refused: of an unknown kind."},
    {"refused_old_version", "requests",
     "Refused: from a node or supervisor of an older version, which names events by L1 ids, and these repeat."},
    {"refused_unknown_rob", "requests", "Refused: for a ROB that the readout does not have."},
    {"refused_busy", "requests", "Refused: the limit of waiting requests was reached."},
};
static_assert(std::size(kServiceInfo) == static_cast<std::size_t>(ServiceCounter::count));

/// One thread calls all functions except counters(). Nothing blocks.
class FragmentService final : private transport::ReplyOwner {
 public:
  /// Listens, and registers on the bus. Throws SetupError like transport::Replier.
  explicit FragmentService(FragmentServiceSettings settings);
  /// Releases all fragments.
  ~FragmentService();
  FragmentService(const FragmentService&) = delete;
  FragmentService& operator=(const FragmentService&) = delete;

  /// Sets the run number in replies. Call it before the first fragment.
  void set_run(std::uint32_t run_number) { settings_.frame.run_number = run_number; }

  /// Like FragmentBook::keep(); also answers the requests that wait for the fragment.
  FragmentBook::Outcome keep(std::size_t rob, FragmentPtr& fragment, std::uint64_t now_ns);

  /// Handles the network and the passing of time. True if a request arrived or a reply was sent.
  bool serve(std::uint64_t now_ns);

  /// Says that all fragments have arrived: a fragment that is not here is lost.
  void end();

  Retention& retention() { return retention_; }
  const Retention& retention() const { return retention_; }
  /// True once any request has arrived.
  bool was_requested() const { return was_requested_; }
  /// Time of the last fetch or clear; 0: never. Other requests do not count: a supervisor may ask for holdings for ever.
  std::uint64_t used_ns() const { return used_ns_; }
  std::size_t sending() const { return sending_; }
  std::size_t waiting() const { return waiting_.size(); }

  const base::CounterBlock<ServiceCounter>& counters() const { return counters_; }
  std::vector<NamedCounter> network_counters() const { return replier_->counters(); }

 private:
  using Request = transport::Replier::Request;
  struct Client {
    std::size_t sending = 0;        ///< ROBs in unsent replies
    std::uint64_t progress_ns = 0;  ///< the last time at which the client had no such replies, or at which bytes were sent
    std::uint64_t sent_bytes = 0;   ///< bytes sent up to the last look
    std::optional<std::uint64_t> clear_sequence{};  ///< sequence number of the client's last clear
  };
  struct Sending {
    FragmentReply reply;
    std::size_t robs = 0;
    transport::Replier::Client client = 0;
  };

  void sent(std::uint64_t tag) noexcept override;
  void handle(Request& request, std::uint64_t now_ns);
  bool may_send(transport::Replier::Client client) const;
  void fetch(Request& request, std::uint64_t arrival_ns);
  bool answer(const WaitingRequest& request, bool now);
  void clear(const Request& request, std::uint64_t now_ns);
  void describe(const Request& request);
  void holdings(const Request& request);
  void refuse(const Request& request, formats::FragmentRefusal why, ServiceCounter counter);
  void check_waiting(std::uint64_t now_ns);
  void drop(const transport::Replier::Dropped& dropped);

  FragmentServiceSettings settings_;
  Retention retention_;
  WaitingRequests waiting_;
  std::unordered_map<transport::Replier::Client, Client> clients_;
  struct HeldBack {
    Request request;
    std::uint64_t arrival_ns = 0;
  };
  std::deque<HeldBack> held_back_;
  std::vector<std::unique_ptr<Sending>> replies_;  // unsent replies, by tag
  std::vector<std::uint64_t> free_replies_;
  std::size_t sending_ = 0;
  bool reply_was_sent_ = false;  // a reply has been sent since the last serve()
  bool ended_ = false;
  bool was_requested_ = false;
  std::uint64_t used_ns_ = 0;
  std::uint64_t now_ns_ = 0;
  std::uint64_t next_check_ns_ = 0;
  base::CounterBlock<ServiceCounter> counters_;
  base::LogThrottle unreadable_log_;

  // Buffers that are reused:
  std::vector<Request> requests_;
  std::vector<transport::Replier::Dropped> dropped_;
  std::vector<std::byte> scratch_;
  std::vector<std::byte> answer_;
  std::vector<std::span<const std::byte>> list_;
  std::vector<std::uint64_t> named_in_;  // for each ROB: the last FETCH that named it
  std::uint64_t fetch_ = 0;
  formats::FetchRequest fetch_request_;
  formats::ClearRequest clear_request_;
  WaitingRequest parsed_request_;

  std::unique_ptr<transport::Replier> replier_;  // destroyed first: its destructor calls sent()
};

}  // namespace rodeo::readout
