#include "network/laboratory/agent.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string>

#include "base/clock.h"
#include "network/laboratory/node_emulator.h"
#include "network/laboratory/readout_emulator.h"
#include "network/laboratory/sockets.h"
#include "network/laboratory/traffic_line.h"

namespace rodeo::network::laboratory {

namespace {

constexpr std::size_t kLongestLine = 64 * 1024;
constexpr std::size_t kValuesPerLine = 500;

void say(const Line& line) {
  const std::string text = line.str() + "\n";
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);  // nobody listens
    done += static_cast<std::size_t>(n);
  }
}

void say_values(const std::string& key, const std::vector<std::uint64_t>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += std::to_string(values[i]);
    if ((i + 1) % kValuesPerLine != 0 && i + 1 != values.size()) {
      text += ',';
      continue;
    }
    say(Line("values").set("of", key).set("list", text));
    text.clear();
  }
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

class Agent {
 public:
  int run() {
    while (wait_for_line()) answer_all();
    return 0;
  }

 private:
  /// Blocks until there is a line; serves requests meanwhile if this is a readout.
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
      const Line line = Line::parse(std::string_view(text_).substr(0, end));
      text_.erase(0, end + 1);
      if (auto done = answer(line); !done)
        say(Line("error " + done.error().code + " " + done.error().what +
                 (done.error().next.empty() ? "" : "; " + done.error().next)));
    }
  }

  Result<void> answer(const Line& line) {
    if (line.verb() == "hello") return ok(Line("ok").set("version", kAgentVersion));
    if (line.verb() == "clock") return ok(Line("ok").set("ns", base::steady_now_ns()));
    if (line.verb() == "readout" && !readout_) return become_readout(line);
    if (line.verb() == "mark" && readout_) {
      readout_->mark();
      return ok(Line("ok"));
    }
    if (line.verb() == "counters" && readout_) return report_counters();
    if (line.verb() == "node") {
      RODEO_TRY(node_.connect(split(line.text("readouts")), line.text("tcp")));
      return ok(Line("ok"));
    }
    if (line.verb() == "run") return run_node(line);
    return std::unexpected(Error{"network.agent", "an agent does not understand `" + line.verb() + "`"});
  }

  static Result<void> ok(const Line& line) {
    say(line);
    return {};
  }

  Result<void> become_readout(const Line& line) {
    const auto port = RODEO_TRY(line.integer("port"));
    auto listener = RODEO_TRY(listen_at(line.text("address"), static_cast<std::uint16_t>(port), line.text("tcp")));
    const std::uint32_t taken = port_of(listener.get());
    become_real_time();
    readout_.emplace(std::move(listener));
    return ok(Line("ok").set("port", taken));
  }

  Result<void> report_counters() {
    const ReadoutEmulator::Counters counters = readout_->counters();
    base::LatencySummary lateness;
    readout_->lateness().add_to(lateness);
    return ok(Line("ok")
                  .set("answers", counters.answers)
                  .set("retransmits", counters.retransmits)
                  .set("timeouts", counters.timeouts)
                  .set("loss_probes", counters.loss_probes)
                  .set("bad_requests", counters.bad_requests)
                  .set("machine_drops", counters.machine_drops)
                  .set("lateness_p99_ns", lateness.percentile_ns(0.99))
                  .set("lateness_max_ns", lateness.max_ns())
                  .set("smallest_round_trip_ns", readout_->smallest_round_trip_ns()));
  }

  Result<void> run_node(const Line& line) {
    const auto order = RODEO_TRY(run_order_of(line));
    const Settings& settings = order.settings;
    const auto schedule = schedule_of(order.node, settings.topology, settings.traffic, warm_up_seconds(settings),
                                      settings.seconds, settings.seed);
    auto result = RODEO_TRY(node_.run(schedule, order.start_ns, static_cast<std::uint64_t>(settings.seconds * 1e9),
                                      static_cast<std::uint64_t>(order.drain_seconds * 1e9),
                                      settings.traffic.events_in_flight, STDIN_FILENO));
    say_values("latency_ns", result.latencies_ns);
    say_values("lateness_ns", result.lateness_ns);
    return ok(Line("done")
                  .set("scheduled", result.scheduled)
                  .set("requested", result.requested)
                  .set("held", result.held)
                  .set("completed", result.completed)
                  .set("completed_in_time", result.completed_in_time)
                  .set("real_time", std::uint64_t{result.real_time}));
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
