// Readouts as the supervisor sees them: clears that they are told, what they hold, and which of them are away or dead.
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
  bool lives = true;           ///< it is waited for
  bool ended = false;          ///< it says that no fragment comes any more
  std::uint64_t behind = 0;    ///< batches of clears that it has not answered
  std::uint64_t answered = 0;  ///< batches that it has answered
  std::string trouble = {};    ///< why it is not connected
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
    {"surveys", "surveys", "Times that a readout was asked for all that it holds, and has said it."},
    {"readouts_lost", "readouts",
     "Times that a readout was away, or silent, for so long that nothing waits for it any more."},
    {"readouts_back", "readouts", "Times that such a readout came back."},
    {"bad_answers", "answers", "Answers of readouts that could not be decoded, or named more than a readout can hold."},
}};

/// One thread, that of the Requester. Time is an argument.
class Readouts {
 public:
  /// Told of each id that a readout holds, as it says it, several times if need be.
  using OnHeld = std::function<void(std::uint32_t readout, std::uint64_t id)>;

  Readouts(const SupervisorSettings& settings, transport::Requester& requester, dispatch::ClearBook& clears,
           dispatch::CommonSpan& span, OnHeld held);

  /// Before the run: asks those that are there what they are.
  void describe(std::uint64_t now_ns);
  /// All that live have said what they are.
  bool all_described() const;
  /// A readout whose ids count something else than those of the run.
  std::optional<Error> other_numbering() const { return other_numbering_; }

  /// Looks who is there, tells clears, asks. Thousands of times a second.
  void poll(std::uint64_t now_ns);
  /// An ended request; false: it is not one of these.
  bool take(const transport::Requester::Reply& reply, std::uint64_t now_ns);

  /// Where the run is, as far as the trigger says: readouts that join it learn from it what their ids lack.
  void set_run_at(std::optional<std::uint64_t> id) { run_at_ = id; }
  /// Every readout that is there is asked for what it holds, from this id on.
  void survey(std::uint64_t from);
  /// Ids below this one were not told, all of them; UINT64_MAX: none was told since. What comes to a readout only now is found as well: it is asked again and
  /// again, until it has had events behind them, and for readout_grace more.
  void watch(std::uint64_t below);
  /// No readout that is there may have something of them on its way still, as far as it says itself.
  bool watched() const;
  /// All that are there have answered, and all have been there once or are dead.
  bool surveyed() const;
  /// Asked one after the other for new events: where there is no trigger to tell of them.
  void follow(bool follows) { follows_ = follows; }
  /// Every one that lives has said that no fragment comes any more; one has been there.
  bool all_ended() const;

  std::vector<SupervisedReadout> status() const;
  std::vector<NamedCounter> counters() const;
  std::vector<std::string> take_messages() { return std::exchange(messages_, {}); }

 private:
  using Request = transport::Requester::Request;
  struct Readout {
    std::string name;
    transport::Requester::Service service = 0;
    std::uint32_t number = 0;       // in the book of clears
    std::uint64_t connections = 0;  // seen
    std::uint64_t answered = 0;     // batches of clears
    bool connected = false;
    bool surveyed = false;                   // since begin_survey()
    std::uint64_t survey = 0;                // which it is
    std::uint64_t named = 0;                 // ids, in the answers of one survey
    std::uint64_t away_ns = 0;               // since when; while it is not connected
    std::optional<std::uint64_t> from = {};  // to be asked for what it holds, from this id on
    bool asked = false;                      // a survey is under way
    std::uint64_t next_ask_ns = 0;
    std::uint64_t next_describe_ns = 0;
    std::uint64_t newest = 0;         // that it has told on this connection
    std::uint64_t watched_below = 0;  // it is asked again and again for lower ids
    std::uint64_t watch_end_ns = 0;   // until then; UINT64_MAX: it has not had an event behind them
    unsigned clears = 0;              // under way
    bool more = false;                // clears, perhaps, that could not be told yet
    std::uint64_t told_again_ns = 0;  // when a refused clear is told again; 0: none was
    bool ended = false;
    bool described = false;      // on this connection
    std::uint64_t instance = 0;  // the process that it was
    bool other_version = false;  // it has said so
  };
  enum class Asked : std::uint8_t { clear, holdings, describe };
  struct Pending {
    std::uint32_t readout = 0;
    Asked what = Asked::clear;
    std::uint64_t sequence = 0;  // of clears
    std::uint64_t from = 0;      // of holdings
    std::uint64_t survey = 0;    // the same
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
  std::shared_ptr<const std::vector<std::byte>> encoded_;  // of one batch, the same for all readouts
  std::uint64_t encoded_sequence_ = UINT64_MAX;
  std::uint64_t looked_ns_ = 0;
  std::uint64_t batches_ = UINT64_MAX;
  bool follows_ = false;
  formats::Numbering numbering_;  // of the run; with a trigger, its events
  std::string numbering_of_;      // the readout that said it first
  std::optional<Error> other_numbering_;
  std::optional<std::uint64_t> run_at_;
  std::vector<std::byte> whole_;
  std::vector<std::byte> request_;
  std::vector<std::string> messages_;
  base::CounterBlock<ReadoutsCounter> counters_;
};

}  // namespace rodeo::farm
