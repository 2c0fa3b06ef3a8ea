#include "network/laboratory/switch_program.h"

#include "network/laboratory/line_process.h"
#include "settings/json.h"

namespace rodeo::network::laboratory {

using settings::Json;

namespace {

using network::SwitchBuffer;
using network::laboratory::LineProcess;
using network::laboratory::SwitchCounters;

constexpr std::chrono::seconds kPatience{120};  // a switch may commit a configuration for a minute

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

class SwitchProgram final : public network::laboratory::SwitchDriver {
 public:
  explicit SwitchProgram(LineProcess process) : process_(std::move(process)) {}

  Result<std::string> describe() override {
    const auto answer = RODEO_TRY(ask(Json::object({{"do", "describe"}})));
    const Json* text = answer.find("description");
    if (text == nullptr || !text->is_string()) return bad("its answer to `describe` has no text `description`");
    return text->string();
  }

  Result<void> set_buffer(const SwitchBuffer& buffer) override {
    if (buffer.cell_bytes != 0)
      return std::unexpected(Error{"network.unsupported", "the cells of a switch are as they are", process_.name(),
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
    const Json* drops = answer.find("drops");
    if (drops == nullptr || !drops->is_number() || drops->number() < 0)
      return bad("its answer to `counters` has no number `drops`");
    SwitchCounters counters{.drops = drops->unsigned_integer()};
    if (const Json* most = answer.find("max_buffer_bytes"); most != nullptr && most->is_number())
      counters.max_buffer_bytes = most->unsigned_integer();
    if (const Json* ports = answer.find("ports"); ports != nullptr) {
      for (const Json& port : ports->elements()) {
        const Json* name = port.find("name");
        const Json* lost = port.find("drops");
        if (name != nullptr && lost != nullptr) counters.ports.push_back({name->string(), lost->unsigned_integer()});
      }
    }
    return counters;
  }

 private:
  std::unexpected<Error> bad(std::string what) const {
    return std::unexpected(
        Error{"network.driver", std::move(what), process_.name(), "the protocol is in docs/network-laboratory.md"});
  }

  Result<Json> ask(const Json& question) {
    RODEO_TRY(process_.send(question.dump(0)));
    const auto line = RODEO_TRY(process_.receive(kPatience, {}));
    auto answer = Json::parse(line);
    if (!answer || !answer->is_object()) return bad("its answer is no JSON object: " + line.substr(0, 200));
    if (const Json* error = answer->find("error"); error != nullptr)
      return std::unexpected(Error{"network.driver", error->string(), process_.name()});
    return answer;
  }

  LineProcess process_;
};

}  // namespace

Result<std::unique_ptr<network::laboratory::SwitchDriver>> switch_program(const std::string& program,
                                                                          const std::vector<std::string>& options) {
  std::vector<std::string> command{program};
  command.insert(command.end(), options.begin(), options.end());
  auto process = RODEO_TRY(LineProcess::start(program, "network.driver", command));
  return std::make_unique<SwitchProgram>(std::move(process));
}

}  // namespace rodeo::network::laboratory
