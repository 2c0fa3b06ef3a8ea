#include "network/laboratory/agent.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "network/laboratory/line_process.h"
#include "network/laboratory/node_emulator.h"
#include "network/laboratory/readout_emulator.h"
#include "network/laboratory/run_order.h"
#include "network/laboratory/schedule.h"
#include "network/laboratory/settings.h"
#include "network/laboratory/sockets.h"

namespace rodeo::network::laboratory {

namespace {

constexpr std::size_t kLongestLine = 64 * 1024;
constexpr std::size_t kValuesPerLine = 500;

void say(const Json& object) {
  const std::string text = object.dump(0) + "\n";
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);  // the laboratory is gone
    done += static_cast<std::size_t>(n);
  }
}

void print_values(const char* of, std::span<const std::uint64_t> values) {
  for (; !values.empty(); values = values.subspan(std::min(kValuesPerLine, values.size())))
    say(Json::object({{"values", of}, {"list", Json::array_of(values.first(std::min(kValuesPerLine, values.size())))}}));
}

class Agent {
 public:
  int run() {
    while (wait_for_line()) answer_all();
    return 0;
  }

 private:
  /// Blocks until there is a line; a readout serves requests while it waits.
  bool wait_for_line() {
    if (!readout_) return fill();
    bool more = true;
    readout_->serve(STDIN_FILENO, [&] {
      more = fill();
      if (more) answer_all();
      return more;
    });
    return more;
  }

  bool fill() {
    std::array<char, 4096> some{};
    const ssize_t n = read(STDIN_FILENO, some.data(), some.size());
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0 || text_.size() > kLongestLine) return false;
    text_.append(some.data(), static_cast<std::size_t>(n));
    return true;
  }

  void answer_all() {
    for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      auto question = Json::parse(std::string_view(text_).substr(0, end));
      text_.erase(0, end + 1);
      const auto said = question ? answer(*question) : question;
      say(said ? *said
               : Json::object({{"error", said.error().what}, {"code", said.error().code}, {"next", said.error().next}}));
    }
  }

  Result<Json> answer(const Json& question) {
    const std::string& what = member_of(question, "do").string();
    if (what == "hello") return Json::object({{"version", kAgentVersion}});
    if (what == "clock") return Json::object({{"ns", base::steady_now_ns()}});
    if (what == "readout" && !readout_) return become_readout(question);
    if (what == "mark" && readout_) {
      readout_->mark();
      return Json::object();
    }
    if (what == "counters" && readout_) return counters();
    if (what == "node") {
      std::vector<std::string> readouts;
      for (const Json& readout : member_of(question, "readouts").elements()) readouts.push_back(readout.string());
      RODEO_TRY(node_.connect(readouts, member_of(question, "tcp").string()));
      return Json::object();
    }
    if (what == "run") return run_node(question);
    return std::unexpected(Error{"network.agent", "an agent does not understand `" + what + "`"});
  }

  Result<Json> become_readout(const Json& question) {
    auto listener = RODEO_TRY(listen_at(member_of(question, "address").string(),
                                        static_cast<std::uint16_t>(member_of(question, "port").unsigned_integer()),
                                        member_of(question, "tcp").string()));
    const std::uint16_t taken = port_of(listener.get());
    become_real_time();
    readout_.emplace(std::move(listener));
    return Json::object({{"port", taken}});
  }

  Json counters() const {
    const ReadoutEmulator::Counters counters = readout_->counters();
    base::LatencySummary lateness;
    readout_->lateness().add_to(lateness);
    return Json::object({{"answers", counters.answers},
                         {"retransmits", counters.retransmits},
                         {"timeouts", counters.timeouts},
                         {"loss_probes", counters.loss_probes},
                         {"bad_requests", counters.bad_requests},
                         {"machine_drops", counters.machine_drops},
                         {"lateness_p99_ns", lateness.percentile_ns(0.99)},
                         {"lateness_max_ns", lateness.max_ns()},
                         {"smallest_round_trip_ns", readout_->smallest_round_trip_ns()}});
  }

  Result<Json> run_node(const Json& question) {
    const auto order = RODEO_TRY(run_order_of(question));
    const auto schedule = schedule_of(order.node, order.scenario, warm_up_seconds(order.scenario));
    const auto result = RODEO_TRY(node_.run(schedule, order.start_ns, order.scenario.duration_ns, order.drain_ns,
                                            order.scenario.traffic.events_in_flight, STDIN_FILENO));
    print_values("latency_ns", result.latencies_ns);
    print_values("lateness_ns", result.lateness_ns);
    return Json::object({{"scheduled", result.scheduled},
                         {"requested", result.requested},
                         {"held", result.held},
                         {"completed", result.completed},
                         {"completed_in_time", result.completed_in_time},
                         {"real_time", result.real_time}});
  }

  std::string text_;
  std::optional<ReadoutEmulator> readout_;
  NodeEmulator node_;
};

}  // namespace

int run_agent() {
  std::signal(SIGPIPE, SIG_IGN);
  return Agent().run();
}

}  // namespace rodeo::network::laboratory
