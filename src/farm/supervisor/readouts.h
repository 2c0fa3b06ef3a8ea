// The supervisor's view of readouts: the clears for them, the events that they hold, and which readouts are away or dead.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "base/named_counters.h"
#include "dispatch/clear_book.h"
#include "dispatch/common_span.h"
#include "farm/supervisor/settings.h"
#include "formats/fragment_request.h"
#include "transport/requester.h"

namespace rodeo::farm {

struct SupervisedReadout {
  std::string name;
  bool connected = false;
  bool lives = true;           ///< The farm waits for this readout.
  bool ended = false;          ///< The readout says that no more fragments come.
  std::uint64_t behind = 0;    ///< Batches of clears without an answer.
  std::uint64_t answered = 0;  ///< Batches of clears with an answer.
  std::string trouble = {};    ///< Reason why the readout is not connected.
};

enum class ReadoutsCounter : std::uint8_t {
  clears,
  clears_refused,
  surveys,
  readouts_lost,
  readouts_back,
  bad_answers,
  count
};
inline constexpr std::array<base::CounterInfo, 6> kReadoutsCounters{{
    {"clears", "requests", "Batches of clears that readouts have answered, once for each readout."},
    {"clears_refused", "requests", "Batches of clears that a readout refused; they are sent again."},
    {"surveys", "surveys", "Times that a readout has listed all that it holds."},
    {"readouts_lost", "readouts",
     "Times that a readout was away, or silent, for so long that the farm no longer waits for it."},
    {"readouts_back", "readouts", "Times that such a readout came back."},
    {"bad_answers", "answers", "Answers of readouts that could not be decoded, or named more than a readout can hold."},
}};

/// One thread, which also owns the Requester. Time is an argument.
class Readouts {
 public:
  /// Called for each id that a readout says it holds; an id may come several times.
  using OnHeld = std::function<void(std::uint32_t readout, std::uint64_t id)>;

  Readouts(const SupervisorSettings& settings, transport::Requester& requester, dispatch::ClearBook& clears,
           dispatch::CommonSpan& span, OnHeld held);

  /// Asks connected readouts for their description, before the run.
  void ask_descriptions(std::uint64_t now_ns);
  /// True if all living readouts have described themselves.
  bool all_described() const;
  /// An error if the ids of a readout do not count the same thing as those of the run.
  std::optional<Error> other_numbering() const { return other_numbering_; }

  /// Checks which readouts are connected, sends clears, and asks for holdings. Called thousands of times a second.
  void poll(std::uint64_t now_ns);
  /// Handles the end of a request. False: another part made the request.
  bool on_reply(const transport::Requester::Reply& reply, std::uint64_t now_ns);

  /// Sets the last id of the trigger, which is where the run is. Readouts that join the run complete their ids with it.
  void set_run_at(std::optional<std::uint64_t> id) { run_at_ = id; }
  /// Asks every connected readout for what it holds, from this id on.
  void survey(std::uint64_t from);
  /// Searches late fragments, because some ids below this one were not announced (UINT64_MAX: all were, since the last
  /// call). Asks each readout again and again until it has had events behind these ids, and for readout_grace more.
  void watch(std::uint64_t below);
  /// True if no connected readout reports that such events may still be on their way in it.
  bool watch_is_over() const;
  /// True if each readout has answered the last survey or is dead.
  bool surveyed() const;
  /// Sets whether readouts are asked for new events all the time, as without a trigger.
  void follow(bool follows) { follows_ = follows; }
  /// True if each living readout has said that no more fragments come, and at least one was ever connected.
  bool all_ended() const;

  std::vector<SupervisedReadout> status() const;
  std::vector<NamedCounter> counters() const;
  std::vector<std::string> take_messages() { return std::exchange(messages_, {}); }

 private:
  using Request = transport::Requester::Request;
  struct Readout {
    std::string name;
    transport::Requester::Service service = 0;
    std::uint32_t number = 0;       // Number in the book of clears.
    std::uint64_t connections = 0;  // Number of connections so far.
    std::uint64_t answered = 0;     // Number of answered batches of clears.
    bool connected = false;
    bool surveyed = false;                   // The readout has answered the survey since begin_survey().
    std::uint64_t survey = 0;                // Number of the survey.
    std::uint64_t named = 0;                 // Ids in the answers of one survey.
    std::uint64_t away_ns = 0;               // Begin of the time without a connection.
    std::optional<std::uint64_t> from = {};  // The next request for holdings begins at this id.
    bool asked = false;                      // A request for holdings is under way.
    std::uint64_t next_ask_ns = 0;
    std::uint64_t next_describe_ns = 0;
    std::uint64_t newest = 0;         // Newest id that the readout named on this connection.
    std::uint64_t watched_below = 0;  // The readout is asked again and again for ids below this one.
    std::uint64_t watch_end_ns = 0;   // End of these requests; UINT64_MAX: the readout has had no event behind these ids.
    unsigned clears = 0;              // Clears under way.
    bool more = false;                // Some clears may still have to be sent.
    std::uint64_t resend_ns = 0;      // Time at which a refused clear is sent again; 0: none was refused.
    bool ended = false;
    bool described = false;      // The readout has described itself on this connection.
    std::uint64_t instance = 0;  // Instance of its last process.
    bool other_version = false;  // The readout's other version was reported.
  };
  enum class Asked : std::uint8_t { clear, holdings, describe };
  struct Pending {
    std::uint32_t readout = 0;
    Asked what = Asked::clear;
    std::uint64_t sequence = 0;  // Sequence number of clears.
    std::uint64_t from = 0;      // First id of holdings.
    std::uint64_t survey = 0;    // Number of the survey of holdings.
    std::shared_ptr<const std::vector<std::byte>> bytes = {};
  };

  void check_connection(Readout& readout, std::uint64_t now_ns);
  void send_clears(std::uint32_t index);
  void ask_holdings(std::uint32_t index, std::uint64_t now_ns);
  void ask_description(std::uint32_t index, std::uint64_t now_ns);
  void on_description(std::uint32_t index, const formats::DescribeReply& description);
  std::optional<std::uint64_t> run_at(const Readout& asked) const;
  void extend_watch(Readout& readout, std::uint64_t now_ns) const;
  void begin_survey(Readout& readout, std::uint64_t from);
  void on_holdings(Readout& readout, const Pending& asked, const transport::Requester::Reply& reply, std::uint64_t now_ns);
  std::uint64_t pause_ns(const Readout& readout) const;
  void lose_readout(Readout& readout);
  const std::shared_ptr<const std::vector<std::byte>>& bytes_of(const dispatch::ClearBook::Batch& batch);

  const SupervisorSettings& settings_;
  transport::Requester& requester_;
  dispatch::ClearBook& clears_;
  dispatch::CommonSpan& span_;
  const OnHeld on_held_;
  std::vector<Readout> readouts_;
  std::unordered_map<Request, Pending> pending_;
  std::shared_ptr<const std::vector<std::byte>> encoded_;  // One batch in bytes, the same for all readouts.
  std::uint64_t encoded_sequence_ = UINT64_MAX;
  std::uint64_t checked_ns_ = 0;
  std::uint64_t batches_ = UINT64_MAX;
  bool follows_ = false;
  formats::Numbering numbering_;  // Numbering of the run; with a trigger, of its events.
  std::string numbering_of_;      // The readout that gave the numbering first.
  std::optional<Error> other_numbering_;
  std::optional<std::uint64_t> run_at_;
  std::vector<std::byte> whole_;
  std::vector<std::byte> request_;
  std::vector<std::string> messages_;
  base::CounterBlock<ReadoutsCounter> counters_;
};

}  // namespace rodeo::farm
