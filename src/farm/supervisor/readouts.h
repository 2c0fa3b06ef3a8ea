// Readouts as the supervisor sees them: the clears for them, what they hold, and which of them are away or dead.
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
  bool lives = true;           ///< The farm waits for it.
  bool ended = false;          ///< It says that no more fragments come.
  std::uint64_t behind = 0;    ///< Batches of clears that it has not answered.
  std::uint64_t answered = 0;  ///< Batches that it has answered.
  std::string trouble = {};    ///< Why it is not connected.
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
    {"clears_refused", "requests", "Batches of clears that a readout refused: told again."},
    {"surveys", "surveys", "Times that a readout has said all that it holds."},
    {"readouts_lost", "readouts",
     "Times that a readout was away, or silent, for so long that the farm no longer waits for it."},
    {"readouts_back", "readouts", "Times that such a readout came back."},
    {"bad_answers", "answers", "Answers of readouts that could not be decoded, or named more than a readout can hold."},
}};

/// One thread, the one of the Requester. Time is an argument.
class Readouts {
 public:
  /// Called for each id that a readout says it holds; an id may come several times.
  using OnHeld = std::function<void(std::uint32_t readout, std::uint64_t id)>;

  Readouts(const SupervisorSettings& settings, transport::Requester& requester, dispatch::ClearBook& clears,
           dispatch::CommonSpan& span, OnHeld held);

  /// Before the run: asks connected readouts for their description.
  void describe(std::uint64_t now_ns);
  /// All living readouts have described themselves.
  bool all_described() const;
  /// The error, if a readout's ids count something else than those of the run.
  std::optional<Error> other_numbering() const { return other_numbering_; }

  /// Looks which readouts are there, sends clears, asks for holdings. Called thousands of times a second.
  void poll(std::uint64_t now_ns);
  /// Takes the end of a request. False: the request is not one of these.
  bool take(const transport::Requester::Reply& reply, std::uint64_t now_ns);

  /// Where the run is, from the trigger: readouts that join the run complete their ids with it.
  void set_run_at(std::optional<std::uint64_t> id) { run_at_ = id; }
  /// Asks every connected readout for what it holds, from this id on.
  void survey(std::uint64_t from);
  /// Some ids below this one were not announced; UINT64_MAX: none was since. To find late fragments, each readout is asked
  /// again and again until it has had events behind these ids, and for readout_grace more.
  void watch(std::uint64_t below);
  /// True if no connected readout says that such events may still be on their way in it.
  bool watched() const;
  /// True if each readout has answered the last survey or is dead.
  bool surveyed() const;
  /// Without a trigger: readouts are asked for new events all the time.
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
    std::uint32_t number = 0;       // In the book of clears.
    std::uint64_t connections = 0;  // Connections so far.
    std::uint64_t answered = 0;     // Batches of clears.
    bool connected = false;
    bool surveyed = false;                   // Since begin_survey().
    std::uint64_t survey = 0;                // Number of the survey.
    std::uint64_t named = 0;                 // Ids in the answers of one survey.
    std::uint64_t away_ns = 0;               // Time since when it is not connected.
    std::optional<std::uint64_t> from = {};  // It is to be asked for what it holds, from this id on.
    bool asked = false;                      // A request for holdings is under way.
    std::uint64_t next_ask_ns = 0;
    std::uint64_t next_describe_ns = 0;
    std::uint64_t newest = 0;         // Newest id that it named on this connection.
    std::uint64_t watched_below = 0;  // It is asked again and again for lower ids.
    std::uint64_t watch_end_ns = 0;   // End of that; UINT64_MAX: it has had no event behind them.
    unsigned clears = 0;              // Under way.
    bool more = false;                // There may be clears that could not be sent yet.
    std::uint64_t told_again_ns = 0;  // When a refused clear is sent again; 0: none was refused.
    bool ended = false;
    bool described = false;      // On this connection.
    std::uint64_t instance = 0;  // The process that it was.
    bool other_version = false;  // Its other version was reported.
  };
  enum class Asked : std::uint8_t { clear, holdings, describe };
  struct Pending {
    std::uint32_t readout = 0;
    Asked what = Asked::clear;
    std::uint64_t sequence = 0;  // Of clears.
    std::uint64_t from = 0;      // Of holdings.
    std::uint64_t survey = 0;    // Of holdings.
    std::shared_ptr<const std::vector<std::byte>> bytes = {};
  };

  void look_after(Readout& readout, std::uint64_t now_ns);
  void tell_clears(std::uint32_t index);
  void ask_holdings(std::uint32_t index, std::uint64_t now_ns);
  void ask_describe(std::uint32_t index, std::uint64_t now_ns);
  void described(std::uint32_t index, const formats::DescribeReply& said);
  std::optional<std::uint64_t> run_at(const Readout& asked) const;
  void watch_on(Readout& readout, std::uint64_t now_ns) const;
  void begin_survey(Readout& readout, std::uint64_t from);
  void holdings(Readout& readout, const Pending& asked, const transport::Requester::Reply& reply, std::uint64_t now_ns);
  std::uint64_t pause_ns(const Readout& readout) const;
  void silent(Readout& readout);
  const std::shared_ptr<const std::vector<std::byte>>& bytes_of(const dispatch::ClearBook::Batch& batch);

  const SupervisorSettings& settings_;
  transport::Requester& requester_;
  dispatch::ClearBook& clears_;
  dispatch::CommonSpan& span_;
  const OnHeld held_;
  std::vector<Readout> readouts_;
  std::unordered_map<Request, Pending> pending_;
  std::shared_ptr<const std::vector<std::byte>> encoded_;  // Of one batch, the same for all readouts.
  std::uint64_t encoded_sequence_ = UINT64_MAX;
  std::uint64_t looked_ns_ = 0;
  std::uint64_t batches_ = UINT64_MAX;
  bool follows_ = false;
  formats::Numbering numbering_;  // Of the run; with a trigger, of its events.
  std::string numbering_of_;      // The readout that said it first.
  std::optional<Error> other_numbering_;
  std::optional<std::uint64_t> run_at_;
  std::vector<std::byte> whole_;
  std::vector<std::byte> request_;
  std::vector<std::string> messages_;
  base::CounterBlock<ReadoutsCounter> counters_;
};

}  // namespace rodeo::farm
