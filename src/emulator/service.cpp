#include "emulator/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

#include "base/sentence.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "process/control_request.h"
#include "process/counters_json.h"

namespace rodeo::emulator {

using process::Phase;
using process::text_of;

namespace {

double bytes_of(const EmulatorReport& report) {
  double bytes = 0;
  for (const auto& function : report.functions) bytes += static_cast<double>(function.bytes);
  return bytes;
}

std::string live_line(const EmulatorReport& before, const EmulatorReport& now) {
  const double seconds = std::max(now.seconds - before.seconds, 1e-9);
  const auto rate = static_cast<double>(now.trigger.accepted - before.trigger.accepted) / seconds;
  std::size_t clients = 0, running = 0;
  for (const auto& function : now.functions) {
    clients += function.clients;
    running += function.running ? 1 : 0;
  }
  return fmt::format("{:>6.0f} s  {}/{} running  {}  triggers {}  dead time {:.1f} %  data {}", now.seconds, running,
                     now.functions.size(), base::counted(clients, "client"), base::format_quantity(rate, "Hz"),
                     now.trigger.dead_time_fraction() * 100,
                     base::format_quantity((bytes_of(now) - bytes_of(before)) / seconds, "B/s"));
}

/// Followers that held triggers back, and for how long.
std::string busy_lines(const EmulatorReport& report) {
  std::string lines;
  for (const auto& one : report.trigger.followers) {
    if (one.held_up > 0)
      lines +=
          fmt::format("{} was busy for {:.3f} s: {} vetoed, {} of them for it alone; {:.2f} % of those offered\n", one.name,
                      one.busy_seconds, base::counted(one.held_up, "trigger"), one.held_up_alone, one.dead_time * 100);
  }
  return lines;
}

/// The losses of the cards, by name.
std::string loss_lines(const EmulatorReport& report) {
  std::string lines;
  for (const auto& function : report.functions) {
    std::string lost;
    for (const auto& [name, value] : function.counters) {
      if (name.starts_with("chunks_") || name.starts_with("frames_")) lost += fmt::format(" {} {}", name, value);
    }
    if (!lost.empty())
      lines += fmt::format("{}:{} sent {}, and lost:{}\n", function.name, function.endpoint,
                           base::counted(function.chunks, "chunk"), lost);
  }
  return lines;
}

double number_of(const Json& request, std::string_view key) {
  const Json* value = request.find(key);
  return value == nullptr ? 0 : value->number();
}

Result<Json> inject(Emulator& emulator, const Json& request) {
  const std::string name = text_of(request, "kind");
  const auto kind = fault_kind(name);
  if (!kind) {
    std::string names;
    for (const auto& info : fault_infos()) names += (names.empty() ? "" : ", ") + std::string(info.name);
    return std::unexpected(
        Error{"emulator.no_such_fault", fmt::format("there is no fault `{}`", name), "", "there are: " + names});
  }
  const double link = number_of(request, "link");
  const double duration_s = number_of(request, "duration_s");
  const Fault fault{.kind = *kind,
                    .link = link >= 0 && link < 1000 ? static_cast<unsigned>(link) : 1000,
                    .value = number_of(request, "value"),
                    .duration = std::chrono::nanoseconds{
                        duration_s > 0 && duration_s < 1e6 ? static_cast<std::int64_t>(duration_s * 1e9) : 0}};
  if (const auto done = emulator.inject(text_of(request, "id"), fault); !done) return std::unexpected(done.error());
  return Json::object();
}

Result<Json> release(Emulator& emulator, const Json& request) {
  constexpr double kMost = 1000;  // as emulator.trigger.wait_for
  std::optional<unsigned> wait_for;
  if (const Json* const wanted = request.find("wait_for"); wanted != nullptr && !wanted->is_null()) {
    const double number = wanted->is_number() ? wanted->number() : -1;
    if (!(number >= 0 && number <= kMost && number == static_cast<double>(static_cast<unsigned>(number))))
      return std::unexpected(Error{"emulator.bad_trigger", "`wait_for` must be a number of functions", "",
                                   fmt::format("a whole number from 0 (all of this process) to {:.0f}", kMost)});
    wait_for = static_cast<unsigned>(number);
  }
  if (const auto done = emulator.release_triggers(wait_for); !done) return std::unexpected(done.error());
  const trigger::TriggerReport trigger = emulator.report().trigger;
  return Json::object({{"held", false}, {"wait_for", trigger.wait_for}, {"awaited_functions", trigger.awaited}});
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

Result<Json> advance(Emulator& emulator, const Json& request) {
  trigger::TriggerAuthority::Advance advance;
  for (const auto& [key, next, to] : {std::tuple{"lumi_block", &advance.next_lumi_block, &advance.lumi_block},
                                      std::tuple{"scan_step", &advance.next_scan_step, &advance.scan_step}}) {
    const auto read = read_advance(request, key, *to);
    if (!read) return std::unexpected(read.error());
    *next = *read;
  }
  const auto done = emulator.advance_marks(advance);
  if (!done) return std::unexpected(done.error());
  return Json::object({{"sequence", done->sequence}, {"lumi_block", done->lumi_block}, {"scan_step", done->scan_step}});
}

Json marks_json(const trigger::TriggerReport& trigger) {
  Json json = Json::array();
  for (const trigger::TriggerMark& mark : trigger.marks)
    json.push_back(Json::object(
        {{"id", mark.id}, {"lumi_block", mark.lumi_block}, {"scan_step", mark.scan_step}, {"sequence", mark.sequence}}));
  return json;
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

/// The report as `rodeo emulate --json` writes it (docs/reference/emulator.md).
Json report_json(const EmulatorReport& report) {
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

}  // namespace

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

EmulatorService::EmulatorService(EmulatorSettings settings)
    : Service({.kind = process::kEmulator,
               .name = settings.name,
               .configuration_sha256 = settings.configuration_sha256,
               .stop_limit = settings.stop_limit,
               .ending = "the cards send nothing more"}),
      settings_(std::move(settings)) {}

void EmulatorService::prepare() {
  emulator_ = std::make_unique<Emulator>(settings_);
  for (const auto& function : emulator_->report().functions) {
    base::say_folded(fmt::format("{} {} ({}, endpoint {}) is there\n", function.type, function.address, function.name,
                                 function.endpoint));
  }
  if (const std::string where = emulator_->serves_at(); !where.empty())
    base::say_folded(fmt::format("triggers are served at {}\n", where));
}

void EmulatorService::step() {
  if (phase_ == Phase::draining) phase_ = Phase::stopped;
  emulator_->poll();
  if (const auto failure = emulator_->failure()) throw SetupError(*failure);
}

process::Service::Report EmulatorService::conclude(bool) {
  emulator_->finish();
  const EmulatorReport report = emulator_->report();
  return {report_json(report), live_line({}, report) + "\n" + busy_lines(report) + loss_lines(report)};
}

Json EmulatorService::status(const Json&) {
  const EmulatorReport report = emulator_->report();
  const bool running = std::ranges::any_of(report.functions, &FunctionReport::running);
  if (phase_ < Phase::draining) phase_ = running && !report.trigger.held ? Phase::running : Phase::ready;
  return report_json(report);
}

std::optional<Result<Json>> EmulatorService::command(const std::string& command, const Json& request) {
  if (command == "trigger_hold") {
    const auto accepted = emulator_->hold_triggers();
    if (!accepted) return std::unexpected(accepted.error());
    return Json::object({{"held", true}, {"accepted", *accepted}});
  }
  if (command == "trigger_release") return release(*emulator_, request);
  if (command == "trigger_advance") return advance(*emulator_, request);
  if (command == "fault") return inject(*emulator_, request);
  return std::nullopt;
}

std::vector<std::string> EmulatorService::view_lines(double seconds, process::ViewStyle) { return {view_line(seconds)}; }

std::string EmulatorService::view_line(double) {
  EmulatorReport now = emulator_->report();
  std::string line = live_line(viewed_, now);
  viewed_ = std::move(now);
  return line;
}

}  // namespace rodeo::emulator
