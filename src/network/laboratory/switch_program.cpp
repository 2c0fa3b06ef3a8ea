#include "network/laboratory/switch_program.h"

#include "network/laboratory/line_process.h"

namespace rodeo::network::laboratory {

namespace {

constexpr std::chrono::seconds kPatience{120};  // a switch may commit a configuration for a minute

class SwitchProgram final : public SwitchDriver {
 public:
  explicit SwitchProgram(LineProcess process) : process_(std::move(process)) {}

  Result<std::string> describe() override {
    const auto answer = RODEO_TRY(ask(Json::object({{"do", "describe"}})));
    const Json& text = member_of(answer, "description");
    if (!text.is_string()) return bad("its answer to `describe` has no text `description`");
    return text.string();
  }

  Result<void> set_buffer(const SwitchBuffer& buffer) override {
    if (buffer.cell_bytes != 0)
      return std::unexpected(Error{"network.unsupported", "the cells of a real switch cannot be changed", process_.name(),
                                   "leave --cell and --cell-metadata out"});
    Json question = Json::object({{"do", "set_buffer"},
                                  {"shared_bytes", or_null(buffer.shared_bytes)},
                                  {"port_bytes", or_null(buffer.port_limit_bytes)}});
    if (buffer.dynamic_threshold > 0) question["dynamic_threshold"] = buffer.dynamic_threshold;
    if (buffer.dedicated_bytes_per_port > 0) question["dedicated_bytes_per_port"] = buffer.dedicated_bytes_per_port;
    RODEO_TRY(ask(question));
    return {};
  }

  Result<void> start() override {
    RODEO_TRY(ask(Json::object({{"do", "start"}})));
    return {};
  }

  Result<SwitchCounters> counters() override {
    const auto answer = RODEO_TRY(ask(Json::object({{"do", "counters"}})));
    const Json& drops = member_of(answer, "drops");
    if (!drops.is_number() || drops.number() < 0) return bad("its answer to `counters` has no number `drops`");
    SwitchCounters counters{.drops = drops.unsigned_integer()};
    if (const Json& most = member_of(answer, "max_buffer_bytes"); most.is_number())
      counters.max_buffer_bytes = most.unsigned_integer();
    for (const Json& port : member_of(answer, "ports").elements())
      counters.ports.push_back({member_of(port, "name").string(), member_of(port, "drops").unsigned_integer()});
    return counters;
  }

 private:
  std::unexpected<Error> bad(std::string what) const {
    return std::unexpected(Error{"network.driver", std::move(what), process_.name(),
                                 "the protocol is in docs/explanation/network-laboratory.md"});
  }

  Result<Json> ask(const Json& question) { return process_.ask(question, kPatience, {}); }

  LineProcess process_;
};

}  // namespace

Result<std::unique_ptr<SwitchDriver>> switch_program(const std::string& program, const std::vector<std::string>& options) {
  std::vector<std::string> command{program};
  command.insert(command.end(), options.begin(), options.end());
  auto process = RODEO_TRY(LineProcess::start(program, "network.driver", command));
  return std::make_unique<SwitchProgram>(std::move(process));
}

}  // namespace rodeo::network::laboratory
