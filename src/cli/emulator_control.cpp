#include "cli/emulator_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "process/control_request.h"
#include "process/counters_json.h"
#include "process/standing_json.h"

namespace rodeo::cli {

using namespace emulator;
using process::answer_line;
using process::ask_process;
using process::refusal;
using process::reply;
using process::text_of;

namespace {

constexpr process::ControlledProcess kEmulator{
    .noun = "emulator", .extension = ".emulator", .which_code = "process.which_emulator", .start = "rodeo emulate CONFIG"};

double number_of(const Json& request, std::string_view key) {
  const Json* value = request.find(key);
  return value == nullptr ? 0 : value->number();
}

std::string inject(Emulator& emulator, const Json& request) {
  const std::string name = text_of(request, "kind");
  const auto kind = fault_kind(name);
  if (!kind) {
    std::string names;
    for (const auto& info : fault_infos()) names += (names.empty() ? "" : ", ") + std::string(info.name);
    return refusal({"emulator.no_such_fault", fmt::format("there is no fault `{}`", name), "", "there are: " + names});
  }
  const double link = number_of(request, "link");
  const double duration_s = number_of(request, "duration_s");
  const Fault fault{.kind = *kind,
                    .link = link >= 0 && link < 1000 ? static_cast<unsigned>(link) : 1000,
                    .value = number_of(request, "value"),
                    .duration = std::chrono::nanoseconds{
                        duration_s > 0 && duration_s < 1e6 ? static_cast<std::int64_t>(duration_s * 1e9) : 0}};
  if (const auto done = emulator.inject(text_of(request, "id"), fault); !done) return refusal(done.error());
  return reply(Json::object());
}

std::string release(Emulator& emulator, const Json& request) {
  constexpr double kMost = 1000;  // as emulator.trigger.wait_for
  std::optional<unsigned> wait_for;
  if (const Json* const wanted = request.find("wait_for"); wanted != nullptr && !wanted->is_null()) {
    const double number = wanted->is_number() ? wanted->number() : -1;
    if (!(number >= 0 && number <= kMost && number == static_cast<double>(static_cast<unsigned>(number))))
      return refusal({"emulator.bad_trigger", "`wait_for` must be a number of functions", "",
                      fmt::format("a whole number from 0 (all of this process) to {:.0f}", kMost)});
    wait_for = static_cast<unsigned>(number);
  }
  if (const auto done = emulator.release_triggers(wait_for); !done) return refusal(done.error());
  const trigger::TriggerReport trigger = emulator.report().trigger;
  return reply(Json::object({{"held", false}, {"wait_for", trigger.wait_for}, {"awaited_functions", trigger.awaited}}));
}

/// A member that must be true (the next number) or a number.
Result<bool> read_advance(const Json& request, const char* key, std::optional<std::uint16_t>& to) {
  constexpr double kMost = 65535;
  const Json* const wanted = request.find(key);
  if (wanted == nullptr || wanted->is_null()) return false;
  if (wanted->is_boolean()) return wanted->boolean();
  const double number = wanted->is_number() ? wanted->number() : -1;
  if (!(number >= 0 && number <= kMost && number == static_cast<double>(static_cast<unsigned>(number))))
    return std::unexpected(Error{"emulator.bad_trigger", fmt::format("`{}` must be true or a number from 0 to 65535", key),
                                 "", "true means the next number"});
  to = static_cast<std::uint16_t>(number);
  return false;
}

std::string advance(Emulator& emulator, const Json& request) {
  trigger::TriggerAuthority::Advance advance;
  for (const auto& [key, next, to] : {std::tuple{"lumi_block", &advance.next_lumi_block, &advance.lumi_block},
                                      std::tuple{"scan_step", &advance.next_scan_step, &advance.scan_step}}) {
    const auto read = read_advance(request, key, *to);
    if (!read) return refusal(read.error());
    *next = *read;
  }
  const auto done = emulator.advance_marks(advance);
  if (!done) return refusal(done.error());
  return reply(
      Json::object({{"sequence", done->sequence}, {"lumi_block", done->lumi_block}, {"scan_step", done->scan_step}}));
}

Json marks_json(const trigger::TriggerReport& trigger) {
  Json json = Json::array();
  for (const trigger::TriggerMark& mark : trigger.marks)
    json.push_back(Json::object(
        {{"id", mark.id}, {"lumi_block", mark.lumi_block}, {"scan_step", mark.scan_step}, {"sequence", mark.sequence}}));
  return json;
}

/// Cards serve as soon as they exist; they run while a reader takes their data.
const char* phase_of(const ControlledEmulator& controlled, const EmulatorReport& report) {
  if (controlled.stop) return process::phase_name(process::Phase::draining);
  const bool running = std::ranges::any_of(report.functions, &FunctionReport::running);
  return process::phase_name(running && !report.trigger.held ? process::Phase::running : process::Phase::ready);
}

/// Null for a follower: only the process that assigns the triggers knows the value.
Json where_assigned(const trigger::TriggerReport& trigger, Json value) { return trigger.link ? Json() : std::move(value); }

Json followers_json(const trigger::TriggerReport& trigger) {
  Json json = Json::array();
  for (const trigger::TriggerFollowerReport& follower : trigger.followers) {
    json.push_back(Json::object({{"name", follower.name},
                                 {"peer", follower.peer},
                                 {"connected", follower.connected},
                                 {"ready", follower.ready},
                                 {"triggers", follower.triggers},
                                 {"missed", follower.missed},
                                 {"busy_seconds", follower.busy_seconds},
                                 {"vetoed", follower.held_up},
                                 {"vetoed_alone", follower.held_up_alone},
                                 {"dead_time_fraction", follower.dead_time}}));
  }
  return json;
}

/// Null if the authority is in this process.
Json link_json(const trigger::TriggerReport& trigger) {
  if (!trigger.link) return {};
  const trigger::TriggerLinkReport& link = *trigger.link;
  return Json::object({{"follows", link.address},
                       {"authority", link.authority},
                       {"connected", link.connected},
                       {"connections", link.connections},
                       {"lost", link.lost},
                       {"why", link.why}});
}

}  // namespace

Json emulator_report_json(const EmulatorReport& report) {
  const trigger::TriggerReport& trigger = report.trigger;
  Json json = Json::object({
      {"seconds", report.seconds},
      {"cpu_seconds", report.cpu_seconds},
      {"faults", report.faults},
      {"trigger",
       Json::object({{"seconds", trigger.seconds},
                     {"offering_seconds", trigger.offering_seconds},
                     {"offered", trigger.offered},
                     {"accepted", trigger.accepted},
                     {"rate_hz", trigger.seconds > 0 ? static_cast<double>(trigger.accepted) / trigger.seconds : 0},
                     {"dead_time_fraction", trigger.dead_time_fraction()},
                     {"vetoed", Json::object({{"busy", trigger.vetoed_busy},
                                              {"simple", trigger.vetoed_simple},
                                              {"complex", trigger.vetoed_complex}})},
                     {"ecr", trigger.ecrs},
                     {"lumi_block", trigger.lumi_block},
                     {"scan_step", trigger.scan_step},
                     {"marks", marks_json(trigger)},
                     {"held", where_assigned(trigger, trigger.held)},
                     {"wait_for", where_assigned(trigger, trigger.wait_for)},
                     {"awaited_functions", trigger.awaited},
                     {"busy_card", trigger.busy_follower},
                     {"followers", followers_json(trigger)},
                     {"counters", process::counters_json(trigger.counters)},
                     {"link", link_json(trigger)}})},
      {"functions", Json::array()},
  });
  for (const FunctionReport& function : report.functions) {
    json["functions"].push_back(
        Json::object({{"name", function.name},
                      {"type", function.type},
                      {"address", function.address},
                      {"endpoint", function.endpoint},
                      {"running", function.running},
                      {"clients", static_cast<std::uint64_t>(function.clients)},
                      {"requests", function.requests},
                      {"triggers", function.triggers},
                      {"chunks", function.chunks},
                      {"superpages", function.superpages},
                      {"bytes", function.bytes},
                      {"busy_seconds", function.busy_seconds},
                      {"vetoed", function.vetoed},
                      {"vetoed_alone", function.vetoed_alone},
                      {"dead_time_fraction", function.dead_time ? Json(*function.dead_time) : Json()},
                      {"counters", process::counters_json(function.counters)}}));
  }
  return json;
}

std::vector<process::WatchedPart> WatchedTriggers::parts(const trigger::TriggerReport& trigger) {
  if (trigger.link && !trigger.link->connected) return {{"the trigger", "the authority at " + trigger.link->address, 0}};
  if (trigger.accepted != accepted_ || trigger.held || trigger.awaited > 0) {
    accepted_ = trigger.accepted;
    offered_ = trigger.offered;
  }
  if (trigger.offered <= offered_) return {};
  const std::string& busy = trigger.busy_follower;
  return {{"the trigger", busy.empty() ? "room in a card" : busy + ", which is busy", trigger.accepted}};
}

std::string answer_emulator(ControlledEmulator& controlled, const std::string& line) {
  Emulator& emulator = *controlled.emulator;
  return answer_line(line, [&](const Json& request) {
    const std::string command = text_of(request, "command");
    if (command == "status") {
      const EmulatorReport report = emulator.report();
      Json json = emulator_report_json(report);
      json["standing"] = process::standing_json(controlled.watchdog.standing());
      json["process"] = process::process_json(controlled.identity, phase_of(controlled, report));
      return reply(std::move(json));
    }
    if (command == "stop") {
      controlled.stop = true;
      return reply(Json::object());
    }
    if (command == "trigger_hold") {
      const auto accepted = emulator.hold_triggers();
      return accepted ? reply(Json::object({{"held", true}, {"accepted", *accepted}})) : refusal(accepted.error());
    }
    if (command == "trigger_release") return release(emulator, request);
    if (command == "trigger_advance") return advance(emulator, request);
    if (command == "fault") return inject(emulator, request);
    return refusal({"process.unknown_command", fmt::format("an emulator has no command `{}`", command), "",
                    "the commands are status, stop, fault, trigger_hold, trigger_release and trigger_advance"});
  });
}

std::string emulator_socket_name(const std::string& name) { return name + std::string(kEmulator.extension); }

Result<Json> ask_emulator(const std::string& name, const Json& request) { return ask_process(kEmulator, name, request); }

}  // namespace rodeo::cli
