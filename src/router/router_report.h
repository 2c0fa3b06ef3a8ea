// The totals of a router's run: the numbers of the report, computed once from the last status, and the balances that must
// add up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/router_status.h"
#include "router/settings.h"

namespace rodeo::router {

using process::Condition;

struct RouterReport {
  std::string name;
  double seconds = 0;
  Condition condition = Condition::good;
  std::string failure;

  std::size_t links = 0;
  std::size_t links_unread = 0;  ///< links without a chunk; the balances leave out those without a subscriber
  // Numbers of chunks.
  std::uint64_t sent = 0;           ///< the input's count or, if it has none, the chunks that the readers got
  std::uint64_t published = 0;      ///< chunks that at least one subscriber got
  std::uint64_t no_subscriber = 0;  ///< chunks that no subscriber wanted
  std::uint64_t not_taken = 0;      ///< chunks dropped at the end, because a subscriber of data took nothing
  std::uint64_t pending = 0;  ///< published chunks that a subscriber of data did not take before it left or the run ended
  /// Packets of the trigger list that a subscriber of data did not take. The numbers above do not include them.
  std::uint64_t list_not_delivered = 0;
  bool no_data = false;  ///< the run is over, and no chunk arrived
  bool adds_up() const {
    return sent == published + no_subscriber + not_taken &&
           bytes_in == bytes_published + bytes_no_subscriber + bytes_not_taken + bytes_cut;
  }

  // Numbers of bytes of these chunks.
  std::uint64_t bytes_in = 0;  ///< includes the bytes that the input cut off
  std::uint64_t bytes_published = 0;
  std::uint64_t bytes_no_subscriber = 0;
  std::uint64_t bytes_not_taken = 0;
  std::uint64_t bytes_cut = 0;   ///< bytes that the input cut off chunks that are too long
  std::uint64_t bytes_sent = 0;  ///< bytes of pages, once for each subscriber
  double router_cpu_seconds = 0;
  double input_cpu_seconds = 0;
  std::string limited_by;
  std::vector<NamedCounter> input;
  std::vector<ReaderStatus> readers;
  std::optional<FrontEndStatus> front_ends;

  /// Missing or unreadable data that the input reported, by name.
  std::vector<NamedCounter> input_losses() const;
};

/// Computes the totals. `aborted`: the user did not wait for the end.
RouterReport make_report(const RouterSettings& settings, const RouterStatus& status, bool aborted);

/// Returns the name of the subscriber of data that delayed the readers most often, or "nothing".
std::string limited_by(const RouterStatus& status);

}  // namespace rodeo::router
